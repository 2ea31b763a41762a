"""`streamdedup produce`: lines of files, or of the demonstration's feed, into the input topic.

Lines go out as they are.  The command reads, says what it did not send and counts; that a line
arrives is the sender's business.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from streamdedup.cli.exit_codes import ExitCode
from streamdedup.cli.interrupts import Interrupted, Interrupts
from streamdedup.cli.lines import Line, LineSource, Pause, total_bytes
from streamdedup.cli.options import config_options, input_topic, load
from streamdedup.cli.pace import Pace
from streamdedup.cli.terminal import printable
from streamdedup.errors import InputError, KafkaFailed, StreamdedupError

if TYPE_CHECKING:
    from streamdedup.cli.display import ProgressBar
    from streamdedup.config import Config
    from streamdedup.kafka.sender import Sender

_SHOWN_FAILURES = 10
_SLICE_SECONDS = 0.2
# After Ctrl-C, what is under way may still arrive.
_LEAVE_SECONDS = 3.0


@click.command()
@click.argument(
    "files",
    nargs=-1,
    metavar="[FILE...]",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@click.option("--topic", metavar="NAME", help="Instead of the topic that kafka.input names.")
@click.option("--demo", is_flag=True, help="Instead of files: a made-up feed, without end.")
@click.option(
    "--rate",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    metavar="R",
    help="Lines a second; 0 for no limit.",
)
@click.option("--check", is_flag=True, help="Do not send what is no article; exit with 3 then.")
@config_options
@click.option("--json", "as_json", is_flag=True, help="The summary as one JSON object.")
def produce(
    files: tuple[str, ...],
    topic: str | None,
    demo: bool,
    rate: float,
    check: bool,
    config_file: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Send JSON lines (plain or gzipped, - for standard input) into the input topic.

    Every line becomes a record, byte for byte, good or bad; its key is the article's id.  Blank
    lines are left out.  Exits with 6 if a line did not arrive, with 3 if one was not sent.
    """
    if demo is bool(files):
        raise click.UsageError("produce sends files, or with --demo the demonstration's feed")
    config = load(config_file, overrides)
    topic = topic or input_topic(config, "choose one with --topic NAME")
    from streamdedup.kafka.connect import kafka_errors, largest_batch_bytes, partition_counts
    from streamdedup.kafka.sender import Sender

    partition_counts(config.kafka, topic)
    report = _Report(config, topic)
    failure: BaseException | None = None
    with Interrupts() as interrupts, kafka_errors(config.kafka):
        limit = largest_batch_bytes(config.kafka, topic)
        sender = Sender(config.kafka, topic, report.not_delivered, largest_batch_bytes=limit)
        try:
            reading = _Reading(files, config, sender, report, interrupts, check=check, rate=rate)
            reading.run_demo() if demo else reading.run()
        except (Interrupted, StreamdedupError, OSError) as error:
            # What was sent before still gets its summary.
            failure = error
            sender.wait(_LEAVE_SECONDS)
    click.echo(report.text(sender, as_json=as_json))
    if failure is not None:
        raise failure
    if report.failed:
        raise KafkaFailed(f"{report.failed:,} lines did not arrive in {topic}")
    if report.bad_lines:
        raise click.exceptions.Exit(ExitCode.BAD_INPUT)


class _Place(NamedTuple):
    file: str
    number: int

    def __str__(self) -> str:
        return f"{printable(self.file)}:{self.number}"


class _Report:
    """What became of the lines."""

    def __init__(self, config: Config, topic: str) -> None:
        self._where = f"{topic} at {config.kafka.bootstrap}"
        self._topic = topic
        self._started = perf_counter()
        self.bad_lines = 0
        self.failed = 0

    def bad_line(self, place: _Place, error: InputError) -> None:
        """A line that is not sent."""
        self.bad_lines += 1
        click.echo(f"{place}: {error.reason}: {printable(error.detail)}", err=True)

    def not_delivered(self, place: _Place, reason: str) -> None:
        """A line that was sent and did not arrive."""
        self.failed += 1
        if self.failed <= _SHOWN_FAILURES:
            click.echo(f"{place}: not delivered: {printable(reason)}", err=True)

    def text(self, sender: Sender[_Place], *, as_json: bool) -> str:
        """The summary."""
        seconds = perf_counter() - self._started
        figures: dict[str, Any] = {
            "topic": self._topic,
            "delivered": sender.delivered,
            "bytes": sender.delivered_bytes,
            "not_delivered": self.failed + sender.waiting,
            "bad_lines": self.bad_lines,
            "seconds": round(seconds, 3),
            "lines_per_second": round(sender.delivered / seconds, 1),
        }
        if as_json:
            return json.dumps(figures)
        rows = [f"{sender.delivered:,} lines ({sender.delivered_bytes:,} bytes) into {self._where}"]
        if figures["not_delivered"]:
            rows.append(f"{figures['not_delivered']:,} not delivered")
        if self.bad_lines:
            rows.append(f"{self.bad_lines:,} not sent")
        rows.append(f"in {seconds:,.2f} s, {figures['lines_per_second']:,.0f} lines a second")
        return "\n".join(rows)


class _Reading:
    """Reads the files in order and hands their lines over."""

    def __init__(
        self,
        files: tuple[str, ...],
        config: Config,
        sender: Sender[_Place],
        report: _Report,
        interrupts: Interrupts,
        *,
        check: bool,
        rate: float,
    ) -> None:
        from streamdedup.cli.keys import ArticleKey

        self._pace = Pace(rate)
        self._files = files
        self._key = ArticleKey(config.input, check=check)
        self._sender = sender
        self._report = report
        self._interrupts = interrupts

    def run(self) -> None:
        from streamdedup.cli.display import ProgressBar

        with ProgressBar(total_bytes(self._files), shown=sys.stderr.isatty()) as bar:
            finished_bytes = 0
            for file in self._files:
                with LineSource(file) as source:
                    self._read(source, bar, finished_bytes)
                    finished_bytes += source.position_bytes()
            while not self._sender.wait(_SLICE_SECONDS):
                bar.advance(finished_bytes, self._sender.delivered)
                with self._interrupts.allowed():
                    pass

    def run_demo(self) -> None:
        from streamdedup.demo.feed import Feed

        # The news stay of today however long it goes on: older ones would leave the window.
        feed = Feed(end_ms=lambda: time.time_ns() // 1_000_000)
        for number, line in enumerate(feed.lines(), 1):
            self._send(_Place("demo", number), Line(number, line.content, len(line.content)))

    def _read(self, source: LineSource, bar: ProgressBar, before_bytes: int) -> None:
        lines = source.lines(self._key.max_line_bytes)
        while True:
            with self._interrupts.allowed():
                line = next(lines, None)
                if line is None:
                    return
            if not isinstance(line, Pause):
                self._send(_Place(source.name, line.number), line)
            bar.advance(before_bytes + source.position_bytes(), self._sender.delivered)

    def _send(self, place: _Place, line: Line) -> None:
        if line.content is None:
            error = InputError("too_large", f"a line of {line.length_bytes:,} bytes")
            self._report.bad_line(place, error)
        elif line.content.strip():
            try:
                key = self._key.of(line.content)
            except InputError as error:
                self._report.bad_line(place, error)
                return
            with self._interrupts.allowed():
                self._pace.wait()
            while not self._sender.offer(place, line.content, key):
                with self._interrupts.allowed():
                    pass
