"""What state an instance is in, worked out of what the service tells and of the time alone.

It is pure: the clock and the look at the disk are given to it, and it has no thread.  HTTP, metrics
and the page read it from other threads, so every change is one assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock

from streamdedup.kafka.report import BatchReport, Listener, ReplicaReport, RestoreProgress, Role


class State(StrEnum):
    """What an operator asks first."""

    STARTING = "starting"  # compiles, or no broker answers
    RESTORING = "restoring"  # the index is not complete yet
    OWNER = "owner"
    STANDBY = "standby"
    BLOCKED = "blocked"  # the disk is full or fails
    STUCK = "stuck"  # the loop has not gone round for too long
    STOPPED = "stopped"


READY = frozenset({State.OWNER, State.STANDBY})
_SILENT_SECONDS = 20.0  # more than a broker that is only slow, or being replaced, takes to answer
DiskTrouble = Callable[[], str]
"""Why the state directory cannot be written, or nothing."""


@dataclass(frozen=True)
class Health:
    """One answer: the state and the reason, for people and for probes."""

    state: State
    why: str
    role: str
    tick_age_seconds: float
    alive: bool

    @property
    def ready(self) -> bool:
        """Whether the instance does, or could at once do, its work."""
        return self.state in READY


class HealthWatch(Listener):
    """Hears the service and answers at any time."""

    def __init__(
        self,
        clock: Callable[[], float],
        disk_trouble: DiskTrouble,
        *,
        stuck_seconds: float,
    ) -> None:
        self._clock = clock
        self._disk_trouble = disk_trouble
        self._stuck_seconds = stuck_seconds
        self._lock = Lock()
        self._role = Role.CONNECTING
        self._begun = False
        self._caught_up = False
        self._heard = clock()
        self._restored = ""
        self._trouble = ""
        self._ticked = clock()

    # -- from the loop -----------------------------------------------------------------------

    def on_tick(self) -> None:
        """The loop goes round."""
        self._ticked = self._clock()

    def on_role(self, role: Role) -> None:
        """The instance does something else now."""
        with self._lock:
            self._ticked = self._clock()
            if self._role is Role.CONNECTING:
                self._heard = self._ticked  # Kafka has answered, or it would still try
            self._role, self._begun = role, True

    def on_batch(self, report: BatchReport) -> None:
        """Kafka has taken it."""
        self._heard = self._clock()

    def on_restore(self, progress: RestoreProgress) -> None:
        """How far the index is."""
        with self._lock:
            self._restored = (
                f"{progress.next_offset:,} of {progress.end_offset:,} changelog offsets"
            )

    def on_replica(self, report: ReplicaReport) -> None:
        """Whether the index has been at the changelog's end, and could still be."""
        with self._lock:
            self._caught_up = report.caught_up
            # A time, not a length: whoever cannot report any more has not heard of Kafka either.
            self._heard = max(self._heard, self._clock() - report.silent_seconds)

    def on_trouble(self, text: str, kind: str = "trouble", **about: str) -> None:
        """The last of them explains a blocked instance."""
        self._trouble = text

    # -- for whoever asks --------------------------------------------------------------------

    def now(self) -> Health:
        """The state at this moment."""
        with self._lock:
            role, caught_up, restored = self._role, self._caught_up, self._restored
            now = self._clock()
            age, silent = max(0.0, now - self._ticked), now - self._heard
        state, why = self._judged(role, age, silent, caught_up=caught_up, restored=restored)
        return Health(state, why, role, age, alive=state is not State.STUCK)

    def _judged(
        self, role: Role, age: float, silent: float, *, caught_up: bool, restored: str
    ) -> tuple[State, str]:
        if role is Role.STOPPED:
            return State.STOPPED, "the service has ended"
        if age > self._stuck_seconds:
            return State.STUCK, f"the loop has not gone round for {age:.0f} seconds"
        if role is Role.BLOCKED:
            return State.BLOCKED, self._trouble or "the state directory cannot be used"
        if role is Role.CONNECTING:
            if not self._begun:
                return State.STARTING, "loops are being loaded, or compiled for this machine"
            return State.STARTING, self._trouble or "no broker has answered yet"
        if role in (Role.STANDBY, Role.WORKING) and silent > _SILENT_SECONDS:
            return State.STARTING, f"nothing was heard of Kafka for {silent:.0f} seconds"
        if role is Role.RESTORING or (role is Role.STANDBY and not caught_up):
            so_far = f": {restored}" if restored else ""
            return State.RESTORING, f"the index is being made complete from the changelog{so_far}"
        if trouble := self._disk_trouble():
            return State.BLOCKED, trouble
        if role is Role.WORKING:
            return State.OWNER, "owns the index and judges"
        return State.STANDBY, "follows the changelog, ready to take over"
