"""The index as a view of the changelog: made from it, followed along it, made again when in doubt.

Start, crash, lost disk, take-over and the return of a zombie are one thing here: read the changelog
from the index's mark to its end.  An index that does not belong to the changelog is set aside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from confluent_kafka import Message

from streamdedup.clock import Clock
from streamdedup.config import Config
from streamdedup.engine import Decision, Deduplicator
from streamdedup.errors import ChangelogMismatch, StateCorrupt, StateMismatch
from streamdedup.kafka.changelog import (
    UNKNOWN_MS,
    Changelog,
    Mark,
    digest,
    parameters_in,
    read_entry,
)
from streamdedup.kafka.ends import Ends
from streamdedup.kafka.every import Every
from streamdedup.kafka.outputs import LastWritten
from streamdedup.kafka.report import Listener, ReplicaReport, RestoreProgress
from streamdedup.kafka.set_aside import set_aside
from streamdedup.kafka.tail import ChangelogGone, Extent, Tail

_CHUNK = 4_000
_PROGRESS_SECONDS = 2.0
_REPORT_SECONDS = 2.0
_FIRST_RECORD_SECONDS = 10.0


@dataclass
class _CatchingUp:
    end: int
    records: int = 0
    started: float = field(default_factory=monotonic)
    told: float = field(default_factory=monotonic)


class Replica:
    """One index on disk and the consumer that keeps it up with the changelog."""

    def __init__(
        self,
        config: Config,
        changelog: Changelog,
        topic_id: str,
        tail: Tail,
        ends: Ends,
        listener: Listener,
    ) -> None:
        self._config = config
        self._changelog = changelog
        self._topic_id = topic_id
        self._tail = tail
        self._ends = ends
        self._listener = listener
        self._engine: Deduplicator | None = None
        self._oldest_ms: int | None = None
        self._catching_up: _CatchingUp | None = None
        self._tail_is_at_mark = False
        self._first = 0
        self._report = Every(_REPORT_SECONDS)

    @property
    def engine(self) -> Deduplicator:
        """The index; only between `open` and `close`."""
        assert self._engine is not None
        return self._engine

    @property
    def is_open(self) -> bool:
        """Whether there is an index."""
        return self._engine is not None

    def open(self) -> None:
        """Open the index and find its place in the changelog; sets aside what has none."""
        extent = self._tail.extent()
        # Before anything is touched: with wrong settings, the state directory is not at fault.
        self._check_parameters(extent)
        path = Path(self._config.state.path)
        try:
            self._engine = Deduplicator.open(path, self._config)
        except (StateCorrupt, StateMismatch) as error:
            self._set_aside(str(error).splitlines()[0])
            self._engine = Deduplicator.open(path, self._config)
        try:
            reason = self._not_ours(extent)
            self._tail_is_at_mark = False  # it was moved to look at single records
            if reason is not None:
                self.rebuild(reason)
            self.return_to_mark()
        except BaseException:
            self.close()  # an index that was not looked at to the end must not be used
            raise

    def rebuild(self, reason: str) -> None:
        """Begin again with an empty index at the beginning of the changelog."""
        self.close()
        self._set_aside(reason)
        self._engine = Deduplicator.open(Path(self._config.state.path), self._config)
        self._seek(None)

    def follow(self, timeout_seconds: float) -> None:
        """Take over what was committed since."""
        self.return_to_mark()
        try:
            messages = self._tail.read(_CHUNK, timeout_seconds)
        except ChangelogGone:
            self.rebuild("the changelog no longer holds what follows the state")
            return
        if messages:
            self._take_over(messages)
        if self._catching_up is not None:
            self._tell(self._catching_up, len(messages))

    def catch_up(self, may_go_on: Callable[[], bool]) -> bool:
        """Follow to the end of what is committed now; False if it was interrupted."""
        self.return_to_mark()
        end = self._tail.extent().end
        while self._tail.next_offset < end:
            self._listener.on_tick()
            if not may_go_on():
                return False
            self.follow(0.2)
            self.report()
        self._catching_up = None  # also where there was nothing to read
        self._warn_of_a_short_changelog()
        # What an owner writes it need not read.
        self._tail.rest()
        self._tail_is_at_mark = False
        return True

    def report(self) -> None:
        """Tell how the index is, if it was not told just now."""
        if not self._report.due():
            return
        place = (self._config.kafka.changelog, 0)
        self._ends.ask([place])
        mark = self._mark()
        position = self._tail.next_offset if mark is None else mark.next_offset
        self._listener.on_replica(
            ReplicaReport(
                store=self.engine.store.figures(),
                clock_ms=Clock.decoded(self.engine.store.clock).now_ms,
                window_ms=self._config.window.seconds * 1_000,
                changelog_first=min(self._first, position),
                changelog_next=position,
                changelog_end=max(position, self._ends.known.get(place, 0)),
                caught_up=self._catching_up is None,
                silent_seconds=min(self._ends.silent_seconds, self._tail.silent_seconds),
            )
        )

    def apply(self, decision: Decision, last: LastWritten | None) -> None:
        """Remember a batch that is out, with the changelog position that contains it."""
        if last is None:
            return  # nothing but dead letters: the changelog has not moved
        assert last.offset is not None
        mark = Mark.behind(self._topic_id, last.offset, last.value)
        self.engine.apply(decision, mark.encode())

    def return_to_mark(self) -> None:
        """Read on from what the index contains, if that is not where the last read ended."""
        if self._tail_is_at_mark:
            return
        mark = self._mark()
        self._seek(None if mark is None else mark.next_offset)

    def reconnect(self) -> None:
        """Read the changelog over a new connection."""
        self._tail.renew()
        self._tail_is_at_mark = False

    def close(self) -> None:
        """Let go of the state directory."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    # -- inside ------------------------------------------------------------------------------

    def _seek(self, offset: int | None) -> None:
        self._tail.seek(offset)
        self._tail_is_at_mark = True
        extent = self._tail.extent()
        self._first = extent.first
        if self._catching_up is None:
            self._catching_up = _CatchingUp(extent.end)
        self._catching_up.end = extent.end

    def _take_over(self, messages: list[Message]) -> None:
        entering: list[bytes] = []
        for message in messages:
            record = self._changelog.record(message.value() or b"")
            if record:
                entering.append(record)
        last = messages[-1]
        mark = Mark.behind(self._topic_id, last.offset() or 0, last.value() or b"")
        try:
            self.engine.restore(entering, mark.encode())
        except BaseException:
            self._tail_is_at_mark = False
            raise

    def _tell(self, catching_up: _CatchingUp, records: int) -> None:
        """Every few seconds, and at the end; afterwards a standby follows in silence."""
        catching_up.records += records
        now = monotonic()
        done = self._tail.next_offset >= catching_up.end
        if done:
            self._catching_up = None
        if (done and catching_up.records) or now - catching_up.told > _PROGRESS_SECONDS:
            catching_up.told = now
            self._listener.on_restore(
                RestoreProgress(
                    catching_up.records,
                    self._tail.next_offset,
                    max(catching_up.end, self._tail.next_offset),
                    now - catching_up.started,
                )
            )

    def _mark(self) -> Mark | None:
        return Mark.decode(self.engine.mark) if self.engine.mark else None

    def _not_ours(self, extent: Extent) -> str | None:
        """Why the index is not a part of this changelog; None if it is."""
        mark = self._mark()
        if mark is None:
            # An index without articles goes with every changelog.
            return "it was not made by this service" if self.engine.store.next_number else None
        if mark.topic_id != self._topic_id:
            return "it belongs to another changelog topic"
        if mark.next_offset > extent.end:
            return "it is ahead of the changelog"
        if mark.next_offset < extent.first:
            return "the changelog no longer holds what follows it"
        if mark.next_offset == extent.first:
            return None  # the record before is gone, and nothing is missing
        try:
            found = self._read_one(mark.next_offset - 1)
        except ChangelogGone:
            return "the changelog no longer holds what follows it"
        if found is None or digest(found) != mark.last_digest:
            return "the changelog was cut off and written anew"
        return None

    def _check_parameters(self, extent: Extent) -> None:
        """Refuse a changelog of other parameters, and learn when it begins."""
        if extent.end == extent.first:
            return
        value = self._read_one(None)
        if value is None:
            return
        try:
            self._changelog.record(value)
        except ChangelogMismatch:
            self._changelog.refuse(self._with_parameters(value))
        if extent.first > 0:
            self._oldest_ms = read_entry(value).event_ms

    def _read_one(self, offset: int | None) -> bytes | None:
        """The first committed record from an offset on; None if the end comes first."""
        self._tail.seek(offset)
        end = self._tail.extent().end
        until = monotonic() + _FIRST_RECORD_SECONDS
        while self._tail.next_offset < end and monotonic() < until:
            for message in self._tail.read(1, 0.2):
                if offset is not None and message.offset() != offset:
                    return None
                return message.value() or b""
        return None

    def _with_parameters(self, value: bytes) -> bytes:
        """A record of the same writer that carries its parameters, if one comes soon."""
        until = monotonic() + _FIRST_RECORD_SECONDS
        end = self._tail.extent().end
        while parameters_in(value) is None:
            found = self._tail.read(_CHUNK, 0.2)
            if monotonic() > until or (not found and self._tail.next_offset >= end):
                break
            value = next((m.value() or b"" for m in found if _carries(m.value())), value)
        return value

    def _set_aside(self, reason: str) -> None:
        moved = set_aside(Path(self._config.state.path))
        self._listener.on_trouble(
            f"the state was set aside as {moved}: {reason}; it is made again from the changelog",
            "state_set_aside",
            path=str(moved),
        )

    def _warn_of_a_short_changelog(self) -> None:
        window_ms = self._config.window.seconds * 1_000
        oldest_ms, self._oldest_ms = self._oldest_ms, None
        if oldest_ms is None or oldest_ms == UNKNOWN_MS:
            return
        begins_ms = self.engine.store.watermark_ms - window_ms
        if not window_ms or oldest_ms > begins_ms:
            hours = (oldest_ms - begins_ms) // 3_600_000
            self._listener.on_trouble(
                "the changelog's oldest record is younger than the window's start by "
                f"{hours:,} hours: an index made from it would not know what came before; "
                "raise the topic's retention.ms"
            )


def _carries(value: bytes | None) -> bool:
    return value is not None and parameters_in(value) is not None
