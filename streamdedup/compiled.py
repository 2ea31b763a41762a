"""The one place that says how our loops are compiled: natively, cached on disk, without the GIL.

Only array code is compiled; a compiled function never sees a Python object.  Loops melt into each
other across modules, so a cached one is good only as long as none of their sources has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile

Integer = int | np.int64  # one and the same inside a compiled loop
Function = TypeVar("Function", bound=Callable[..., object])

_OWN_IMPORT = b"streamdedup.compiled import"


class _Cache(FunctionCache):
    """numba's cache on disk; numba itself looks only at the file that a function stands in."""

    def __init__(self, function: Callable[..., object]) -> None:
        cast("Any", super()).__init__(function)
        self._cache_file = cast("Any", IndexDataCacheFile)(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_sources_digest(),
        )


def compiled(function: Function) -> Function:
    """Compile on first call; later processes load the machine code from the cache."""
    dispatcher: Any = numba.njit(nogil=True, boundscheck=False)(function)
    try:
        dispatcher._cache = _Cache(function)
    except RuntimeError:  # no directory to write to: every process compiles for itself
        return cast("Function", dispatcher)
    return cast("Function", dispatcher)


def inlined(function: Function) -> Function:
    """A small step of a kernel, melted into its callers."""
    return cast("Function", numba.njit(nogil=True, inline="always")(function))


@cache
def _sources_digest() -> str:
    """The sources of all compiled loops, wherever they stand in the package."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        source = file.read_bytes()
        if _OWN_IMPORT in source:
            digest.update(source)
    return digest.hexdigest()
