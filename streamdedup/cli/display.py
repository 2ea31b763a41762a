"""How a scan looks to a person: a coloured line an article, a progress bar.

Both are output only; what they show has been decided elsewhere.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

import msgspec
from rich.cells import set_cell_size
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from streamdedup.article import Article
from streamdedup.cli.terminal import printable
from streamdedup.verdict import Verdict

# Columns that the label, the similarity and two ids of a usual length need beside the title.
OTHER_CELLS = 52
TITLE_CELLS = range(24, 65)
_STYLES = {
    "new": "bold green",
    "near": "yellow",
    "exact": "magenta",
    "redelivery": "dim",
    "revision": "cyan",
}


class _Titled(msgspec.Struct):
    title: str | None = None


_TITLED = msgspec.json.Decoder(_Titled)


def headline(line: bytes, article: Article) -> str:
    """The title in the article's JSON line, or the start of its text."""
    try:
        title = _TITLED.decode(line).title
    except (msgspec.DecodeError, UnicodeDecodeError):
        title = None
    return " ".join((title or article.text[:200]).split())


class _Output(Console):
    def on_broken_pipe(self) -> None:
        # rich would end the process here, without closing the index.
        raise BrokenPipeError


class PrettyVerdicts:
    """Writes one line a verdict: what it is, how similar, the headline, and a copy of which."""

    def __init__(self) -> None:
        self._console = _Output(file=sys.stdout, highlight=False)
        # A file or a pipe has no width to cut to.
        room = self._console.width - OTHER_CELLS if self._console.is_terminal else TITLE_CELLS[-1]
        self._title_cells = min(max(room, TITLE_CELLS[0]), TITLE_CELLS[-1])

    def show(self, verdict: Verdict, headline: str | None = None) -> None:
        """A line; without a headline, where nobody knows it, the id stands in its place."""
        style = _STYLES[verdict.reason]
        label = "NEW" if verdict.reason == "new" else verdict.reason
        similarity = "" if verdict.similarity is None else f"{verdict.similarity:.0%}"
        line = Text.assemble((f"{label:<10}", style), (f"{similarity:>5}", style))
        if headline is not None:
            title = set_cell_size(printable(headline), self._title_cells)
            line.append(f"  {title}", "bold" if verdict.verdict == "unique" else "")
        line.append(f"  {printable(verdict.id)}", "dim" if headline is not None else "")
        if verdict.duplicate_of is not None:
            line.append(f" copies {printable(verdict.duplicate_of)}", style)
            line.append(f" ({verdict.measure})", "dim")
        self._print(line)

    def show_dead_letter(self, reason: str, exception: str) -> None:
        """A line about a record that could not be judged."""
        line = Text.assemble((f"{'dead':<10}", "red"), (f"       {printable(reason)}", "red"))
        line.append(f"  {printable(exception)}", "dim")
        self._print(line)

    def _print(self, line: Text) -> None:
        if self._console.is_terminal:
            self._console.print(line, no_wrap=True, overflow="ellipsis")
        else:
            self._console.print(line, soft_wrap=True)


class ProgressBar:
    """Bytes read and articles judged, on standard error; silent where nobody would see it."""

    def __init__(self, total_bytes: int | None, *, shown: bool) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[articles]:,} articles"),
            BarColumn(),
            TaskProgressColumn() if total_bytes else MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            disable=not shown,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=True,
        )
        self._task = self._progress.add_task("scan", total=total_bytes or None, articles=0)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def advance(self, read_bytes: int, articles: int) -> None:
        self._progress.update(self._task, completed=read_bytes, articles=articles)
