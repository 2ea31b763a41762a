"""The one place that says how our loops are compiled: natively, cached on disk, without the GIL.

Only array code is compiled; a compiled function never sees a Python object.  Loops melt into each
other across modules, and constants melt into them, so a cached one is good only as long as none of
their sources, nor of what these import, has changed.
A cache that NUMBA_CACHE_DIR names is also read where nothing may be written, as in an image.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserProvidedCacheLocator,
)

Integer = int | np.int64  # one and the same inside a compiled loop
Function = TypeVar("Function", bound=Callable[..., object])

_LOOP = re.compile(rb"^@(?:compiled|inlined|intrinsic)$", re.MULTILINE)
_OWN_IMPORT = re.compile(rb"^from streamdedup\.([\w.]+) import", re.MULTILINE)
_dispatchers: list[Any] = []


class _ShippedLocator(UserProvidedCacheLocator):
    """NUMBA_CACHE_DIR, where it cannot be written; numba itself would compile elsewhere, anew."""

    def ensure_cache_path(self) -> None:
        path = Path(cast("Any", self).get_cache_path())
        if not path.is_dir() or os.access(path, os.W_OK):
            raise FileNotFoundError(path)  # numba's own way to look somewhere else


class _Place(CompileResultCacheImpl):
    _locator_classes = [_ShippedLocator, *CompileResultCacheImpl._locator_classes]  # noqa: RUF012


class _Cache(FunctionCache):
    """numba's cache on disk; numba itself looks only at the file that a function stands in."""

    _impl_class = _Place

    def __init__(self, function: Callable[..., object]) -> None:
        cast("Any", super()).__init__(function)
        self._cache_file = cast("Any", IndexDataCacheFile)(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_sources_digest(),
        )
        self._is_shipped = isinstance(self._impl.locator, _ShippedLocator)

    def save_overload(self, sig: object, data: object) -> None:
        """What a shipped cache lacks is compiled for this process alone."""
        if not self._is_shipped:
            cast("Any", super()).save_overload(sig, data)


def compiled(function: Function) -> Function:
    """Compile on first call; later processes load the machine code from the cache."""
    dispatcher: Any = numba.njit(nogil=True, boundscheck=False)(function)
    _dispatchers.append(dispatcher)
    try:
        dispatcher._cache = _Cache(function)
    except RuntimeError:  # no directory to write to: every process compiles for itself
        return cast("Function", dispatcher)
    return cast("Function", dispatcher)


def compiled_here() -> list[str]:
    """The loops that this process has compiled, because no cache had them."""
    return [each.__name__ for each in _dispatchers if each.stats.cache_misses]


def inlined(function: Function) -> Function:
    """A small step of a kernel, melted into its callers."""
    return cast("Function", numba.njit(nogil=True, inline="always")(function))


@cache
def _sources_digest() -> str:
    """The sources of all compiled loops, and of all that they import: its constants are in them."""
    package = Path(__file__).parent
    sources = {file: file.read_bytes() for file in package.rglob("*.py")}
    seen = set[Path]()
    waiting = [file for file, source in sources.items() if _LOOP.search(source)]
    while waiting:
        file = waiting.pop()
        if file not in seen and file in sources:
            seen.add(file)
            names = (name.decode().split(".") for name in _OWN_IMPORT.findall(sources[file]))
            waiting += [package.joinpath(*name).with_suffix(".py") for name in names]
    digest = hashlib.sha256()
    for file in sorted(seen):
        digest.update(sources[file])
    return digest.hexdigest()
