"""`streamdedup dlq`: the records that could not be judged, to look at and to send again.

What stands in them is never shown: it is other people's text, and it may be secret or hostile.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamdedup.cli.interrupts import Interrupted, Interrupts
from streamdedup.cli.options import config_options, load
from streamdedup.cli.terminal import printable
from streamdedup.errors import ServiceError

if TYPE_CHECKING:
    from confluent_kafka import Message

    from streamdedup.config import Config
    from streamdedup.kafka.replay import Choice, Outcome

_LOOK_SECONDS = 0.2
_MOST = 500
_COLUMNS = ("topic", "partition", "offset", "stage", "reason", "exception", "key", "size")

_by_reason = click.option(
    "--reason", "reasons", multiple=True, metavar="WORD", help="Only of this reason; repeatable."
)
_by_stage = click.option(
    "--stage", "stages", multiple=True, metavar="WORD", help="Only of this stage: decode, judge."
)
_at_most = click.option("--limit", type=click.IntRange(1), metavar="N", help="At most so many.")


@click.group()
def dlq() -> None:
    """Look at dead letters, and send them again once their cause is mended."""


@dlq.command(name="list")
@_by_reason
@_by_stage
@_at_most
@config_options
@click.option("--json", "as_json", is_flag=True, help="JSON lines on a terminal, too.")
def list_letters(
    reasons: tuple[str, ...],
    stages: tuple[str, ...],
    limit: int | None,
    config_file: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Where each dead letter came from, and why it could not be judged; never its text.

    A table on a terminal, JSON lines in a pipe.
    """
    config = load(config_file, overrides)
    from streamdedup.kafka.replay import Choice

    choice = Choice(reasons=reasons, stages=stages, limit=limit)
    rows = _rows(config, choice)
    if as_json or not sys.stdout.isatty():
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False))
    else:
        _print_table(rows)


@dlq.command()
@_by_reason
@_by_stage
@_at_most
@click.option("--again", is_flag=True, help="Also those that were replayed before.")
@click.option("--dry-run", is_flag=True, help="Only count what would be sent.")
@config_options
@click.option("--json", "as_json", is_flag=True, help="The summary as one JSON object.")
def replay(
    reasons: tuple[str, ...],
    stages: tuple[str, ...],
    limit: int | None,
    again: bool,
    dry_run: bool,
    config_file: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Send dead letters back to the topics they came from, each exactly once.

    Key, value and headers are those of the record it was, the timestamp is new.  What was replayed
    is remembered in Kafka: a second replay sends only what has come since, or was not chosen.
    Letters whose cause still stands come back as new dead letters.
    """
    config = load(config_file, overrides)
    from streamdedup.kafka.connect import kafka_errors, partition_counts
    from streamdedup.kafka.replay import Choice, Replay

    choice = Choice(reasons=reasons, stages=stages, limit=limit, again=again)
    topics = partition_counts(config.kafka, config.kafka.dead_letters)
    failure: BaseException | None = None
    with Interrupts() as interrupts, kafka_errors(config.kafka):

        def check() -> None:
            with interrupts.allowed():
                pass

        run = Replay(config.kafka, choice, topics, dry_run=dry_run, check=check)
        try:
            run.run()
        except (Interrupted, ServiceError) as error:
            # What was sent before still gets its summary.
            failure = error
        finally:
            run.close()
    figures = _figures(run.outcome, dry_run=dry_run)
    click.echo(json.dumps(figures) if as_json else "\n".join(_text(run.outcome, dry_run=dry_run)))
    if failure is not None:
        raise failure


def _rows(config: Config, choice: Choice) -> Iterator[dict[str, Any]]:
    """What is to be told of each letter, from the oldest on, up to the end of the topic now."""
    from streamdedup.kafka.connect import kafka_errors, partition_counts
    from streamdedup.kafka.follow import Follower

    topic = config.kafka.dead_letters
    partitions = partition_counts(config.kafka, topic)[topic]
    found = 0
    with (
        kafka_errors(config.kafka),
        Follower(config.kafka, topic, partitions, from_beginning=True) as letters,
    ):
        while not letters.at_end:
            for record in letters.read(_MOST, _LOOK_SECONDS):
                row = _row(record, choice)
                if row is None:
                    continue
                yield row
                found += 1
                if found == choice.limit:
                    return


def _row(record: Message, choice: Choice) -> dict[str, Any] | None:
    from streamdedup.kafka.letters import read_letter

    letter = read_letter(record)
    if letter is None:
        place = f"{record.topic()}[{record.partition()}] offset {record.offset()}"
        click.echo(f"{place}: not written by streamdedup", err=True)
        return None
    if not choice.takes(letter):
        return None
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "stage": letter.stage,
        "reason": letter.reason,
        "exception": letter.exception,
        "key": None if letter.key is None else letter.key.decode("utf-8", "replace"),
        "size": letter.value_bytes,
    }


def _print_table(rows: Iterator[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in _COLUMNS:
        number = name in ("partition", "offset", "size")
        table.add_column(
            name,
            justify="right" if number else "left",
            # What tells a letter from others is never cut; the reason's detail takes what is left.
            no_wrap=name != "key",
            overflow="ellipsis" if name == "exception" else "fold",
            ratio=1 if name == "exception" else None,
            min_width=None if name in ("key", "exception") else len(name),
        )
    for row in rows:
        table.add_row(*(Text(_shown(row[name])) for name in _COLUMNS))
    if table.row_count:
        Console(file=sys.stdout, highlight=False).print(table)
    click.echo(_letters(table.row_count), err=True)


def _letters(count: int) -> str:
    return f"{count:,} dead letter" + ("" if count == 1 else "s")


def _shown(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if value is None else printable(str(value))


def _figures(outcome: Outcome, *, dry_run: bool) -> dict[str, Any]:
    topics: dict[str, dict[str, int]] = {}
    for (topic, kind), count in sorted(outcome.sent.items()):
        topics.setdefault(topic, {})[kind] = count
    return {
        "dry_run": dry_run,
        "replayed": outcome.sent.total(),
        "topics": topics,
        "replayed_before": outcome.before,
        "not_chosen": outcome.others,
        "skipped": dict(sorted(outcome.skipped.items())),
    }


def _text(outcome: Outcome, *, dry_run: bool) -> Iterator[str]:
    done = "would be replayed" if dry_run else "replayed"
    yield f"{_letters(outcome.sent.total())} {done}"
    for (topic, kind), count in sorted(outcome.sent.items()):
        yield f"  {count:>8,}  {printable(kind)} to {printable(topic)}"
    for reason, count in sorted(outcome.skipped.items()):
        yield f"{count:,} skipped: {printable(reason)}"
    if outcome.before:
        yield f"{outcome.before:,} were replayed before (--again sends them once more)"
