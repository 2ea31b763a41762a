"""What the service tells whoever watches it: plain values, a few times a second at most.

The loop fills them and hands them to one listener; logs, metrics and health are made of them at
the edge, without the loop knowing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Role(StrEnum):
    """What an instance is doing; only a `working` owner judges articles."""

    CONNECTING = "connecting"  # no broker answers yet
    STANDBY = "standby"  # follows the changelog, ready to take over
    RESTORING = "restoring"  # owns the index and reads what it lacks of the changelog
    WORKING = "working"  # owns the index and judges
    BLOCKED = "blocked"  # cannot go on: the disk is full or fails; tries again by itself
    STOPPED = "stopped"


@dataclass(frozen=True)
class StageSeconds:
    """Where the time of a batch went; the first two are spent beside the commit before."""

    gather: float = 0.0
    sketch: float = 0.0
    decide: float = 0.0
    produce: float = 0.0
    commit: float = 0.0
    apply: float = 0.0


@dataclass(frozen=True)
class BatchReport:
    """One committed and applied batch."""

    records: int
    input_bytes: int
    by_reason: Mapping[str, int]  # verdicts: new, near, exact, redelivery, revision
    dead_letters: Mapping[str, int]  # by reason
    candidates: int
    cut_entries: int
    oldest_record_ms: int  # Kafka's timestamp of the oldest record, 0 if it has none
    positions: Mapping[tuple[str, int], int]  # next input offset by topic and partition
    seconds: StageSeconds


@dataclass(frozen=True)
class RestoreProgress:
    """How far a restore or a catching up has come, in offsets of the changelog."""

    records: int
    next_offset: int
    end_offset: int
    seconds: float

    @property
    def done(self) -> bool:
        """Whether the index now contains the whole changelog."""
        return self.next_offset >= self.end_offset


class Listener(Protocol):
    """Hears everything in the thread of the loop, and must be quick."""

    def on_role(self, role: Role) -> None:
        """The instance does something else now."""

    def on_batch(self, report: BatchReport) -> None:
        """A batch is out and remembered."""

    def on_restore(self, progress: RestoreProgress) -> None:
        """Some of the changelog was read."""

    def on_event(self, text: str) -> None:
        """Something happened that belongs in a log."""

    def on_trouble(self, text: str) -> None:
        """Something went wrong that the service deals with by itself."""

    def on_connection(self, text: str) -> None:
        """A connection broke; librdkafka makes it again, and may say the same many times."""
