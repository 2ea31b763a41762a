"""`streamdedup scan`: articles from JSON lines in, one verdict a line out, in input order.

The command reads, calls the engine batch by batch and writes; every decision is the engine's.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from streamdedup.cli.exit_codes import ExitCode
from streamdedup.cli.interrupts import Interrupted, Interrupts
from streamdedup.cli.lines import DASH, total_bytes
from streamdedup.cli.options import config_options, load
from streamdedup.errors import InputError, StreamdedupError

if TYPE_CHECKING:
    from streamdedup.cli.display import PrettyVerdicts
    from streamdedup.cli.intake import BadLine, Incoming, Intake
    from streamdedup.cli.summary import ScanSummary
    from streamdedup.config import Config
    from streamdedup.verdict import Rejection, Verdict


@click.command()
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the index here and go on from it next time; without it the index is temporary.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    default=DASH,
    help="Write the verdicts here instead of standard output.",
)
@config_options
@click.option("--strict", is_flag=True, help="Stop at the first bad line, with exit code 3.")
@click.option("--json", "as_json", is_flag=True, help="The summary as one JSON object.")
@click.option("--pretty", is_flag=True, help="Show verdicts to a person instead of as JSON.")
@click.option(
    "--batch",
    "batch_articles",
    type=click.IntRange(1, 65_536),
    default=1_024,
    show_default=True,
    metavar="N",
    help="Articles judged at a time; changes the speed, never a verdict.",
)
def scan(
    files: tuple[str, ...],
    state: Path | None,
    output: str,
    config_file: Path | None,
    overrides: tuple[str, ...],
    strict: bool,
    as_json: bool,
    pretty: bool,
    batch_articles: int,
) -> None:
    """Judge every article of JSON-lines files (plain or gzipped, - for standard input).

    One verdict a line goes to standard output, in input order, and nothing else.  Bad lines are
    reported on standard error as FILE:LINE: reason: detail, and so is the summary at the end;
    with --json the summary is one JSON object on the last line of standard error.
    """
    config = load(config_file, overrides)
    _refuse_to_overwrite_input(files, output)
    from streamdedup.cli.intake import Intake
    from streamdedup.cli.summary import ScanSummary

    summary = ScanSummary()
    failure: BaseException | None = None
    with Interrupts() as interrupts:
        intake = Intake(
            files,
            config.input,
            batch_articles,
            strict=strict,
            wake_fd=interrupts.wake_fd,
            summary=summary,
        )
        try:
            _judge_all(intake, interrupts, config, state, output, pretty, summary)
        except BrokenPipeError:
            raise
        except (Interrupted, StreamdedupError, OSError) as error:
            # What was judged before still gets its summary.
            failure = error
    if summary or failure is None:
        click.echo(summary.as_json() if as_json else summary.as_text(), err=True)
    if isinstance(failure, InputError):
        raise click.exceptions.Exit(ExitCode.BAD_INPUT)
    if failure is not None:
        raise failure


def _judge_all(
    intake: Intake,
    interrupts: Interrupts,
    config: Config,
    state: Path | None,
    output: str,
    pretty: bool,
    summary: ScanSummary,
) -> None:
    from streamdedup import Deduplicator
    from streamdedup.cli.display import PrettyVerdicts, ProgressBar
    from streamdedup.cli.intake import Incoming

    with ExitStack() as stack:
        # First of all: a directory that is refused must not cost an earlier output.
        directory = state or stack.enter_context(_temporary_directory())
        engine = stack.enter_context(Deduplicator.open(directory, config))
        out = stack.enter_context(_VerdictFile(output)) if _writes_json(output, pretty) else None
        display = PrettyVerdicts() if pretty else None
        # A bar on the terminal that the verdicts also run over would be torn to pieces.
        shown = sys.stderr.isatty() and not (output == DASH and sys.stdout.isatty())
        bar = stack.enter_context(ProgressBar(total_bytes(intake.files), shown=shown))
        batches = intake.batches()
        judged = 0
        while True:
            with interrupts.allowed():
                batch = next(batches, None)
            if batch is None:
                return
            arrived = [line for line in batch if isinstance(line, Incoming)]
            decision = engine.decide(engine.sketch([incoming.article for incoming in arrived]))
            refused = _first_refused(decision.outcomes)
            if intake.strict and refused < len(arrived) - 1:
                # Nothing behind a bad line may enter the index.
                arrived = arrived[: refused + 1]
                decision = engine.decide(engine.sketch([incoming.article for incoming in arrived]))
            # Verdicts first: an article that the index knows has its verdict out.
            _write(arrived, decision.outcomes, out, display)
            engine.apply(decision)
            _account(batch, decision.outcomes, intake, summary)
            judged += len(arrived)
            bar.advance(intake.read_bytes(), judged)


def _first_refused(outcomes: list[Verdict | Rejection]) -> int:
    from streamdedup.verdict import Rejection

    refused = (at for at, outcome in enumerate(outcomes) if isinstance(outcome, Rejection))
    return next(refused, len(outcomes))


def _write(
    arrived: list[Incoming],
    outcomes: list[Verdict | Rejection],
    out: _VerdictFile | None,
    display: PrettyVerdicts | None,
) -> None:
    from streamdedup.cli.display import headline
    from streamdedup.verdict import Verdict, encode_verdict

    verdicts = [outcome for outcome in outcomes if isinstance(outcome, Verdict)]
    if out is not None:
        out.write(b"".join(encode_verdict(verdict) + b"\n" for verdict in verdicts))
    if display is None:
        return
    for incoming, outcome in zip(arrived, outcomes, strict=True):
        if isinstance(outcome, Verdict):
            display.show(outcome, headline(incoming.line, incoming.article))


def _account(
    batch: list[Incoming | BadLine],
    outcomes: list[Verdict | Rejection],
    intake: Intake,
    summary: ScanSummary,
) -> None:
    from streamdedup.cli.intake import BadLine
    from streamdedup.verdict import Verdict

    for outcome in outcomes:
        if isinstance(outcome, Verdict):
            summary.add(outcome)
    # Last, since a strict run ends here; in line order, whoever found a line to be bad.
    of_articles = iter(outcomes)
    for line in batch:
        if isinstance(line, BadLine):
            intake.report(line)
        elif not isinstance(outcome := next(of_articles), Verdict):
            intake.report(BadLine(line.place, InputError(outcome.reason, outcome.detail)))


class _VerdictFile:
    """The verdicts' file or standard output; every batch is handed on before the next is read."""

    def __init__(self, path: str) -> None:
        self._name = "standard output" if path == DASH else path
        self._is_stdout = path == DASH
        if self._is_stdout:
            self._file: BinaryIO = sys.stdout.buffer
        else:
            self._file = Path(path).open("wb")  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> _VerdictFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if self._is_stdout:
            return
        try:
            self._file.close()
        except OSError:
            # Closing tries a failed write once more; the first failure is the one to tell.
            if kind is None:
                raise

    def write(self, lines: bytes) -> None:
        try:
            self._file.write(lines)
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._name) from None


def _writes_json(output: str, pretty: bool) -> bool:
    """`--pretty` takes standard output for itself; a file always gets JSON."""
    return output != DASH or not pretty


@contextmanager
def _temporary_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="streamdedup-", ignore_cleanup_errors=True) as name:
        yield Path(name) / "state"


def _refuse_to_overwrite_input(files: tuple[str, ...], output: str) -> None:
    if output == DASH or not Path(output).is_file():
        return
    for file in files:
        if file != DASH and Path(file).samefile(output):
            raise click.UsageError(f"--output {output} would overwrite an input")
