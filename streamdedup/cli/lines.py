"""Lines of plain or gzipped files and of standard input, in bounded memory.

A line longer than the limit is counted and dropped while it is read, never held.  Nothing here
knows what a line means.
"""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast

from streamdedup.errors import SourceError

CHUNK_BYTES = 262_144
DASH = "-"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# No JSON text starts with this byte, so one is enough to know a gzip stream by.
_GZIP_START = b"\x1f"


class Line(NamedTuple):
    """A line without its end; `content` is None if it was longer than the limit."""

    number: int
    content: bytes | None
    length_bytes: int


class Pause:
    """In the place of a line: the writer of a pipe has nothing more for us at the moment."""


PAUSE = Pause()


class LineSource:
    """One input, by its path or `-`; use it as a context manager."""

    def __init__(self, path: str, wake_fd: int | None = None) -> None:
        """Waiting for input also ends when there is something to read from `wake_fd`."""
        self.name = "standard input" if path == DASH else path
        self._is_stdin = path == DASH
        self._gzip_by_name = path.endswith(".gz")
        if self._is_stdin and sys.stdin is None:
            raise SourceError("standard input is closed")
        if self._is_stdin:
            self._file = cast("io.BufferedReader", sys.stdin.buffer)
        else:
            self._file = Path(path).open("rb")  # noqa: SIM115 - closed by __exit__
        self._wake_fd = wake_fd
        self._ready = select.poll()
        self._ready.register(self._file.fileno(), select.POLLIN)
        self._ready_or_woken = select.poll()
        self._ready_or_woken.register(self._file.fileno(), select.POLLIN)
        if wake_fd is not None:
            self._ready_or_woken.register(wake_fd, select.POLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_stdin:
            self._file.close()

    def position_bytes(self) -> int:
        """How much of the file on disk has been read; 0 for a pipe."""
        return self._file.raw.tell() if self._file.seekable() else 0

    def lines(self, limit_bytes: int) -> Iterator[Line | Pause]:
        """The lines in order, with `PAUSE` where reading on would have to wait."""
        number, held, length = 1, list[bytes](), 0
        for chunk in self._chunks():
            if isinstance(chunk, Pause):
                yield chunk
                continue
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                length += len(piece)
                fits = length <= limit_bytes
                yield Line(number, b"".join((*held, piece)) if fits else None, length)
                number, length = number + 1, 0
                held.clear()
            length += len(rest)
            if length > limit_bytes:
                held.clear()
            elif rest:
                held.append(rest)
        if length:
            yield Line(number, b"".join(held) if length <= limit_bytes else None, length)

    def _chunks(self) -> Iterator[bytes | Pause]:
        try:
            stream = self._stream()
            at_start = True
            while True:
                if not self._ready.poll(0):
                    yield PAUSE
                # What a stream still holds itself would be waited for in vain.
                if not at_start and stream is self._file:
                    self._wait()
                chunk = stream.read1(CHUNK_BYTES)
                if not chunk:
                    return
                yield chunk.removeprefix(_BYTE_ORDER_MARK) if at_start else chunk
                at_start = False
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SourceError(
                f"{self.name}: the gzip data is damaged or cut off: {error}"
            ) from None
        except OSError as error:
            raise SourceError(f"{self.name}: cannot be read: {error.strerror}") from None

    def _wait(self) -> None:
        """Until there is input; a signal's handler runs, and may raise, in between."""
        while not self._ready.poll(0):
            self._ready_or_woken.poll()
            if self._wake_fd is not None:
                with suppress(BlockingIOError):
                    os.read(self._wake_fd, 64)

    def _stream(self) -> io.BufferedReader | gzip.GzipFile:
        self._wait()
        start = self._file.peek(1)[:1]
        if self._gzip_by_name and not start:
            raise EOFError("the file is empty")
        if self._gzip_by_name or start == _GZIP_START:
            return gzip.GzipFile(fileobj=self._file, mode="rb")
        return self._file


def total_bytes(paths: tuple[str, ...]) -> int | None:
    """The size of all inputs on disk, or None if one of them is a pipe."""
    total = 0
    for path in paths:
        if path == DASH:
            return None
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total
