"""Dead letters, read again: what stands in their headers, and the record they once were.

The counterpart of `dead_letters`, which writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from confluent_kafka import Message

from streamdedup.kafka.dead_letters import (
    CUT,
    EXCEPTION,
    OFFSET,
    PARTITION,
    REASON,
    STAGE,
    TIMESTAMP,
    TOPIC,
    Header,
)

_WORDS = (TOPIC, PARTITION, OFFSET, TIMESTAMP, STAGE, REASON, EXCEPTION)


@dataclass(frozen=True)
class Letter:
    """One dead letter; topic, partition and offset are those of the record it was."""

    topic: str
    partition: int
    offset: int
    stage: str
    reason: str
    exception: str
    value_bytes: int
    kept: bool  # whether the value is here; one that was too large is only in the input
    key: bytes | None
    value: bytes | None
    headers: list[Header]  # its own, without those that tell of its death

    @property
    def kind(self) -> str:
        """What it is counted and chosen by."""
        return "_".join(f"{self.stage}/{self.reason}".split())


def read_letter(message: Message) -> Letter | None:
    """None for a record that the service did not write."""
    own, said = _split(_headers(message))
    try:
        topic, partition, offset, _, stage, reason, exception, *more = (
            value.decode("utf-8", "replace") for value in said
        )
        value = message.value()
        return Letter(
            topic=topic,
            partition=int(partition),
            offset=int(offset),
            stage=stage,
            reason=reason,
            exception=exception,
            value_bytes=int(more[0]) if more else len(value or b""),
            kept=not more,
            key=message.key(),
            value=value,
            headers=own,
        )
    except ValueError:
        return None


def _split(headers: Sequence[Header]) -> tuple[list[Header], list[bytes]]:
    """The record's own headers, and the values of ours.

    Ours are the last ones.  A record that came through another streamdedup may have headers of the
    same names in front of them, and those are its own.
    """
    names = [name for name, _ in headers]
    for ours in ((*_WORDS, CUT), _WORDS):
        if tuple(names[-len(ours) :]) == ours:
            values = [_bytes(value) for _, value in headers[-len(ours) :]]
            return list(headers[: -len(ours)]), values
    return list(headers), []


def _headers(message: Message) -> Sequence[Header]:
    return cast("Sequence[Header]", message.headers() or ())


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""
