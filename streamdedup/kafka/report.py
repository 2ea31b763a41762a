"""What the service tells whoever watches it: plain values, a few times a second at most.

The loop fills them and hands them to one listener; logs, metrics and health are made of them at
the edge, without the loop knowing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from streamdedup.engine import Found
from streamdedup.schemes.contract import Traits
from streamdedup.store.figures import StoreFigures

Place = tuple[str, int]
"""An input partition: topic and number."""


class Role(StrEnum):
    """What an instance is doing; only a `working` owner judges articles."""

    CONNECTING = "connecting"  # no broker answers yet
    STANDBY = "standby"  # follows the changelog, ready to take over
    RESTORING = "restoring"  # owns the index and reads what it lacks of the changelog
    WORKING = "working"  # owns the index and judges
    BLOCKED = "blocked"  # cannot go on: the disk is full or fails; tries again by itself
    STOPPED = "stopped"


class Rebalance(StrEnum):
    """What the group told an instance."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


class CommitFailure(StrEnum):
    """How a transaction ended that is not known to be committed."""

    FAILED = "failed"  # what is true is read from the changelog
    FENCED = "fenced"  # another instance owns the index


@dataclass(frozen=True)
class StageSeconds:
    """Where the time of a batch went; the first four are spent beside the batch before."""

    gather: float = 0.0
    decode: float = 0.0
    sketch: float = 0.0
    foresee: float = 0.0
    probe: float = 0.0
    verify: float = 0.0
    decide: float = 0.0
    produce: float = 0.0
    commit: float = 0.0
    apply: float = 0.0


@dataclass(frozen=True)
class Refused:
    """A dead letter as it may be told: where it came from and why, never what stands in it.

    The id is empty where there is none or the record could not be read.
    """

    topic: str
    partition: int
    offset: int
    stage: str
    reason: str
    id: str


@dataclass(frozen=True)
class BatchReport:
    """One committed and applied batch."""

    records: int
    input_bytes: int
    verdicts: Mapping[tuple[str, str], int]  # by verdict and reason
    dead_letters: Mapping[tuple[str, str], int]  # by stage and reason
    refused: Sequence[Refused]  # the first few of them
    found: Found
    traits: Traits | None
    timestamps_ms: NDArray[np.int64]  # Kafka's, by record; -1 where there is none
    positions: Mapping[Place, int]  # next input offset
    seconds: StageSeconds

    @property
    def by_reason(self) -> Counter[str]:
        """How many verdicts of each reason."""
        counts: Counter[str] = Counter()
        for (_, reason), count in self.verdicts.items():
            counts[reason] += count
        return counts


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


@dataclass(frozen=True)
class ReplicaReport:
    """How the index is, as owner or as standby, told every few seconds."""

    store: StoreFigures
    clock_ms: int  # the stream's clock, 0 before the first dated article
    window_ms: int  # 0 for ever
    changelog_first: int  # what came before has left the topic
    changelog_next: int
    changelog_end: int
    caught_up: bool  # it has been at the changelog's end since it was opened
    silent_seconds: float  # since Kafka last told something of the changelog


@dataclass(frozen=True)
class InputReport:
    """How far the owner is in every input partition, told every few seconds."""

    ends: Mapping[Place, int]  # the last end that the broker told
    positions: Mapping[Place, int]  # before it there is nothing that is not committed


class Listener:
    """Hears everything and must be quick; this one does nothing.

    It is told in the thread of the loop, but of connections by whatever thread finds them broken.
    """

    def on_tick(self) -> None:
        """The loop goes round."""

    def on_role(self, role: Role) -> None:
        """The instance does something else now."""

    def on_released(self) -> None:
        """It owns no input any more."""

    def on_batch(self, report: BatchReport) -> None:
        """A batch is out and remembered."""

    def on_commit_failure(self, failure: CommitFailure) -> None:
        """A batch may or may not be out."""

    def on_rebalance(self, rebalance: Rebalance) -> None:
        """The group has decided something."""

    def on_restore(self, progress: RestoreProgress) -> None:
        """Some of the changelog was read."""

    def on_replica(self, report: ReplicaReport) -> None:
        """How the index is."""

    def on_input(self, report: InputReport) -> None:
        """How far the input is."""

    def on_event(self, text: str, kind: str = "event", **about: str) -> None:
        """Something happened that belongs in a log; kind, path and topic are for machines."""

    def on_trouble(self, text: str, kind: str = "trouble", **about: str) -> None:
        """Something went wrong that the service deals with by itself."""

    def on_connection(self, text: str) -> None:
        """A connection broke; librdkafka makes it again, and may say the same many times."""
