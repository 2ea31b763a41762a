"""Several listeners as one."""

from __future__ import annotations

from streamdedup.kafka.report import (
    BatchReport,
    CommitFailure,
    InputReport,
    Listener,
    Rebalance,
    ReplicaReport,
    RestoreProgress,
    Role,
)


class Listeners(Listener):
    """Passes everything on, in this order."""

    def __init__(self, *listeners: Listener) -> None:
        self._all = listeners

    def on_tick(self) -> None:
        """The loop goes round."""
        for one in self._all:
            one.on_tick()

    def on_role(self, role: Role) -> None:
        """The instance does something else now."""
        for one in self._all:
            one.on_role(role)

    def on_released(self) -> None:
        """It owns no input any more."""
        for one in self._all:
            one.on_released()

    def on_batch(self, report: BatchReport) -> None:
        """A batch is out and remembered."""
        for one in self._all:
            one.on_batch(report)

    def on_commit_failure(self, failure: CommitFailure) -> None:
        """A batch may or may not be out."""
        for one in self._all:
            one.on_commit_failure(failure)

    def on_rebalance(self, rebalance: Rebalance) -> None:
        """The group has decided something."""
        for one in self._all:
            one.on_rebalance(rebalance)

    def on_restore(self, progress: RestoreProgress) -> None:
        """Some of the changelog was read."""
        for one in self._all:
            one.on_restore(progress)

    def on_replica(self, report: ReplicaReport) -> None:
        """How the index is."""
        for one in self._all:
            one.on_replica(report)

    def on_input(self, report: InputReport) -> None:
        """How far the input is."""
        for one in self._all:
            one.on_input(report)

    def on_event(self, text: str, kind: str = "event", **about: str) -> None:
        """Something happened that belongs in a log."""
        for one in self._all:
            one.on_event(text, kind, **about)

    def on_trouble(self, text: str, kind: str = "trouble", **about: str) -> None:
        """Something went wrong that the service deals with by itself."""
        for one in self._all:
            one.on_trouble(text, kind, **about)

    def on_connection(self, text: str) -> None:
        """A connection broke."""
        for one in self._all:
            one.on_connection(text)
