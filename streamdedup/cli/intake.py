"""From files to batches of articles: decodes each line and reports the ones that are bad.

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


class Place(NamedTuple):
    """Where a line stands."""

    file: str
    number: int


class Incoming(NamedTuple):
    """An article on its way to the engine, with the line it came from."""

    place: Place
    article: Article
    line: bytes


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

    def batches(self) -> Iterator[list[Incoming]]:
        """Batches in input order.  What stood before a failure still comes, then it is raised."""
        batch: list[Incoming] = []
        failure: InputError | SourceError | None = None
        try:
            for incoming in self._articles():
                if isinstance(incoming, Incoming):
                    batch.append(incoming)
                full = len(batch) >= self._batch_articles
                if batch and (full or isinstance(incoming, Pause)):
                    yield batch
                    batch = []
        except (InputError, SourceError) as error:
            failure = error
        if batch:
            yield batch
        if failure is not None:
            raise failure

    def bad_line(self, place: Place, error: InputError) -> None:
        """Report and count a bad line; raises it again if the run is strict."""
        where = f"{printable(place.file)}:{place.number}"
        click.echo(f"{where}: {error.reason}: {printable(error.detail)}", err=True)
        self._summary.add_bad_line(error.reason)
        if self.strict:
            raise error

    def _articles(self) -> Iterator[Incoming | Pause]:
        for file in self.files:
            with LineSource(file, self._wake_fd) as source:
                self._source = source
                try:
                    for line in source.lines(self._decoder.max_line_bytes):
                        if isinstance(line, Pause):
                            yield line
                        elif incoming := self._decoded(Place(source.name, line.number), line):
                            yield incoming
                finally:
                    self._finished_bytes += source.position_bytes()
                    self._source = None

    def _decoded(self, place: Place, line: Line) -> Incoming | None:
        """The article of a line; None for a blank line and, once reported, for a bad one."""
        if line.content is None:
            self.bad_line(place, InputError("too_large", f"a line of {line.length_bytes:,} bytes"))
            return None
        if not line.content.strip():
            return None
        try:
            article = self._decoder.decode(line.content)
        except InputError as error:
            self.bad_line(place, error)
            return None
        return Incoming(place, article, line.content)
