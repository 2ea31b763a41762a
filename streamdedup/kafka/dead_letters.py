"""Records that cannot be judged: what is written about them, and when there are too many.

Key, value and headers go out as they came; what we have to say stands in headers of our own behind
them.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from confluent_kafka import Message

from streamdedup.errors import TooManyDeadLetters

STAGE_DECODE = "decode"
STAGE_JUDGE = "judge"

TOPIC = "streamdedup-topic"
PARTITION = "streamdedup-partition"
OFFSET = "streamdedup-offset"
TIMESTAMP = "streamdedup-timestamp"
STAGE = "streamdedup-stage"
REASON = "streamdedup-reason"
EXCEPTION = "streamdedup-exception"
CUT = "streamdedup-value-bytes"  # only where the value was too large to be kept

_DETAIL_CHARACTERS = 500
_WINDOW = 1_000

Header = tuple[str, str | bytes | None]


class DeadLetter(NamedTuple):
    """Why a record cannot be judged; `place` is its place in the batch."""

    place: int
    stage: str
    reason: str
    detail: str


def headers_of(message: Message) -> list[Header]:
    """The record's own headers."""
    headers = message.headers() or ()
    return list(headers.items() if isinstance(headers, dict) else headers)


def dead_letter_headers(message: Message, letter: DeadLetter) -> list[Header]:
    """The record's own headers, then ours."""
    detail = letter.detail[:_DETAIL_CHARACTERS].encode("utf-8", "replace")
    return [
        *headers_of(message),
        (TOPIC, message.topic() or ""),
        (PARTITION, str(message.partition())),
        (OFFSET, str(message.offset())),
        (TIMESTAMP, str(message.timestamp()[1])),
        (STAGE, letter.stage),
        (REASON, letter.reason),
        (EXCEPTION, detail),
    ]


class DeadLetterLimits:
    """Counts over batches; `check` before a batch is committed, `count` after."""

    def __init__(self, in_row: int, share: float) -> None:
        self._in_row = in_row
        self._share = share
        self._row = 0
        self._window: deque[bool] = deque(maxlen=_WINDOW)

    def check(self, records: int, letters: list[DeadLetter]) -> None:
        """Raise if this batch is the one too many; it stays in the input then."""
        if not letters or not (self._in_row or self._share):
            return
        bad = {letter.place: letter for letter in letters}
        row, window = self._row, deque(self._window, _WINDOW)
        for place in range(records):
            row = row + 1 if place in bad else 0
            window.append(place in bad)
            if self._in_row and row >= self._in_row:
                raise TooManyDeadLetters(
                    f"{row:,} records in a row cannot be judged, the last one because of "
                    f"{_shown(bad[place])}; nothing of this batch was taken from the input "
                    "(limit: kafka.dead_letters_in_row)"
                )
        bad_share = sum(window) / _WINDOW
        if self._share and len(window) == _WINDOW and bad_share > self._share:
            raise TooManyDeadLetters(
                f"{bad_share:.0%} of the last {_WINDOW:,} records cannot be judged, the last one "
                f"because of {_shown(letters[-1])}; nothing of this batch was taken from the input "
                "(limit: kafka.dead_letters_share)"
            )

    def count(self, records: int, letters: list[DeadLetter]) -> None:
        """Remember a batch that was committed."""
        bad = {letter.place for letter in letters}
        for place in range(max(0, records - _WINDOW), records):
            self._window.append(place in bad)
        last_good = next((n for n in range(records - 1, -1, -1) if n not in bad), None)
        self._row = self._row + records if last_good is None else records - 1 - last_good


def _shown(letter: DeadLetter) -> str:
    return f"{letter.reason} ({letter.stage})"
