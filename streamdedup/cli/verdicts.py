"""`streamdedup verdicts`: what the service says, as it says it.

For a person on a terminal, JSON lines in a pipe: byte for byte what stands in the topic.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdedup.cli.interrupts import Interrupted, Interrupts
from streamdedup.cli.options import config_options, load
from streamdedup.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

_LOOK_SECONDS = 0.2
_MOST = 1_000


@click.command()
@click.option("--from-beginning", is_flag=True, help="Also what was said before.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="End after so many verdicts.")
@click.option("--until-end", is_flag=True, help="End where the topic ends now.")
@config_options
@click.option("--json", "as_json", is_flag=True, help="JSON lines on a terminal, too.")
def verdicts(
    from_beginning: bool,
    limit: int | None,
    until_end: bool,
    config_file: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Follow the verdicts topic until Ctrl-C; only what is committed is shown.

    On a terminal one readable line a verdict, in a pipe the verdicts as they are, JSON, one a line.
    """
    config = load(config_file, overrides)
    from streamdedup.kafka.connect import kafka_errors, partition_counts
    from streamdedup.kafka.follow import Follower

    topic = config.kafka.verdicts
    partitions = partition_counts(config.kafka, topic)[topic]
    show = _json_lines if as_json or not sys.stdout.isatty() else _pretty()
    left = limit
    try:
        with (
            Interrupts() as interrupts,
            kafka_errors(config.kafka),
            Follower(config.kafka, topic, partitions, from_beginning=from_beginning) as following,
        ):
            while left != 0 and not (until_end and following.at_end):
                with interrupts.allowed():
                    records = following.read(min(_MOST, left or _MOST), _LOOK_SECONDS)
                left = None if left is None else left - len(records)
                show(records)
    except Interrupted as signal:
        # The usual end of a following: nothing to be said about it.
        raise click.exceptions.Exit(signal.exit_code) from None


def _json_lines(records: list[Message]) -> None:
    for record in records:
        value = record.value()
        if value is None or b"\n" in value:
            _no_verdict(record)
        else:
            sys.stdout.buffer.write(value + b"\n")
    sys.stdout.buffer.flush()


def _pretty() -> Callable[[list[Message]], None]:
    import msgspec

    from streamdedup.cli.display import PrettyVerdicts
    from streamdedup.verdict import decode_verdict

    display = PrettyVerdicts()

    def show(records: list[Message]) -> None:
        for record in records:
            try:
                verdict = decode_verdict(record.value() or b"")
            except (msgspec.DecodeError, UnicodeDecodeError):
                _no_verdict(record)
            else:
                display.show(verdict)

    return show


def _no_verdict(record: Message) -> None:
    place = f"{record.topic()}[{record.partition()}] offset {record.offset()}"
    click.echo(f"{printable(place)}: not a verdict", err=True)
