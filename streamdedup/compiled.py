"""The one place that says how our loops are compiled: natively, cached on disk, without the GIL.

Only array code is compiled; a compiled function never sees a Python object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np

Integer = int | np.int64  # one and the same inside a compiled loop
Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile on first call; later processes load the machine code from numba's cache."""
    return cast("Function", numba.njit(cache=True, nogil=True, boundscheck=False)(function))


def inlined(function: Function) -> Function:
    """A small step of a kernel, melted into its callers."""
    return cast("Function", numba.njit(cache=True, nogil=True, inline="always")(function))
