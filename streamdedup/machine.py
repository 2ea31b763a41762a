"""Machine instructions that array code has no word for, as functions for compiled loops.

Places in a buffer are counted in bytes and need no alignment; the caller sees to it that the eight
bytes from there are inside.  Bytes are little-endian, as on every machine that numba compiles for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from streamdedup.compiled import Integer

Bytes = NDArray[np.uint8]


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    buffer = context.make_array(signature.args[0])(context, builder, arguments[0])
    byte = cast("Any", cgutils).gep_inbounds(builder, buffer.data, arguments[1])
    return builder.bitcast(byte, ir.IntType(64).as_pointer())


@intrinsic
def _load(typing: Any, buffer: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_address(context, builder, signature, arguments), align=1)

    return types.uint64(buffer, types.int64), generate


@intrinsic
def _store(typing: Any, buffer: Any, at: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _address(context, builder, signature, arguments), align=1)
        return context.get_dummy_value()

    return types.void(buffer, types.int64, types.uint64), generate


@intrinsic
def _lowest_bit(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _bit_count(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def _prefetch(typing: Any, values: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        value = cast("Any", cgutils).gep_inbounds(builder, array.data, arguments[1])
        address = builder.bitcast(value, ir.IntType(8).as_pointer())
        flags = [ir.Constant(ir.IntType(32), flag) for flag in (0, 3, 1)]  # read, keep, data
        call = ir.FunctionType(ir.VoidType(), [address.type, *(flag.type for flag in flags)])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], call)
        builder.call(prefetch, [address, *flags])
        return context.get_dummy_value()

    return types.void(values, types.int64), generate


# Eight bytes of a buffer as one number, and back.
load_word = cast("Callable[[Bytes, Integer], np.uint64]", _load)
store_word = cast("Callable[[Bytes, Integer, np.uint64], None]", _store)
# Have the value at a place fetched from memory, for a later look; the place must be inside.
prefetch = cast("Callable[[NDArray[Any], Integer], None]", _prefetch)
# The place of the lowest set bit (64 if there is none), and how many bits are set.
lowest_bit = cast("Callable[[np.uint64], int]", _lowest_bit)
bit_count = cast("Callable[[np.uint64], int]", _bit_count)
