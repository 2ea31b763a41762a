"""From files to batches of lines: each is decoded to an article, or is bad and says why.

A batch ends when it is full, or as soon as a pipe has nothing more to give, so that a slow feed
gets its verdicts at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import click

from streamdedup.article import Article, ArticleDecoder
from streamdedup.cli.lines import Line, LineSource, Pause
from streamdedup.cli.summary import ScanSummary
from streamdedup.cli.terminal import printable
from streamdedup.config import InputConfig
from streamdedup.errors import InputError, SourceError

BATCH_BYTES = 32 << 20  # a batch of few but long articles is full, too


class Place(NamedTuple):
    """Where a line stands."""

    file: str
    number: int


class Incoming(NamedTuple):
    """An article on its way to the engine, with the line it came from."""

    place: Place
    article: Article
    line: bytes


class BadLine(NamedTuple):
    """A line that is no article."""

    place: Place
    error: InputError


class Intake:
    """Reads all files in order; `strict` makes the first bad line the end of the run."""

    def __init__(
        self,
        files: tuple[str, ...],
        config: InputConfig,
        batch_articles: int,
        *,
        strict: bool,
        wake_fd: int | None,
        summary: ScanSummary,
    ) -> None:
        self.files = files
        self._decoder = ArticleDecoder(config)
        self._batch_articles = batch_articles
        self.strict = strict
        self._wake_fd = wake_fd
        self._summary = summary
        self._finished_bytes = 0
        self._source: LineSource | None = None

    def read_bytes(self) -> int:
        """Progress over all files, in bytes on disk."""
        current = self._source.position_bytes() if self._source is not None else 0
        return self._finished_bytes + current

    def batches(self) -> Iterator[list[Incoming | BadLine]]:
        """Batches in input order.  What stood before a failure still comes, then it is raised."""
        batch: list[Incoming | BadLine] = []
        batch_bytes = 0
        failure: SourceError | None = None
        try:
            for line in self._lines():
                ends = isinstance(line, Pause) or (self.strict and isinstance(line, BadLine))
                if not isinstance(line, Pause):
                    batch.append(line)
                if isinstance(line, Incoming):
                    batch_bytes += len(line.line)
                ends |= len(batch) >= self._batch_articles or batch_bytes >= BATCH_BYTES
                if batch and ends:
                    yield batch
                    batch, batch_bytes = [], 0
        except SourceError as error:
            failure = error
        if batch:
            yield batch
        if failure is not None:
            raise failure

    def report(self, bad: BadLine) -> None:
        """Tell and count a bad line; raises its error if the run is strict."""
        where = f"{printable(bad.place.file)}:{bad.place.number}"
        click.echo(f"{where}: {bad.error.reason}: {printable(bad.error.detail)}", err=True)
        self._summary.add_bad_line(bad.error.reason)
        if self.strict:
            raise bad.error

    def _lines(self) -> Iterator[Incoming | BadLine | Pause]:
        for file in self.files:
            with LineSource(file, self._wake_fd) as source:
                self._source = source
                try:
                    for line in source.lines(self._decoder.max_line_bytes):
                        if isinstance(line, Pause):
                            yield line
                        elif decoded := self._decoded(Place(source.name, line.number), line):
                            yield decoded
                finally:
                    self._finished_bytes += source.position_bytes()
                    self._source = None

    def _decoded(self, place: Place, line: Line) -> Incoming | BadLine | None:
        """What stands in a line; nothing in a blank one."""
        if line.content is None:
            error = InputError("too_large", f"a line of {line.length_bytes:,} bytes")
            return BadLine(place, error)
        if not line.content.strip():
            return None
        try:
            return Incoming(place, self._decoder.decode(line.content), line.content)
        except InputError as error:
            return BadLine(place, error)
