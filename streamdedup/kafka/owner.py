"""One period of ownership: fence the owners before, make the index complete, then judge.

`run` is the loop, and the path of an article from top to bottom.  It ends when the group, the
operator or an error says so; whatever the error, the next period begins from the changelog.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event
from time import perf_counter
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamdedup.config import Config
from streamdedup.errors import StateDiskError, StateError
from streamdedup.kafka.ahead import Ahead
from streamdedup.kafka.changelog import Changelog
from streamdedup.kafka.clients import OnError
from streamdedup.kafka.commit import Committed
from streamdedup.kafka.dead_letters import DeadLetterLimits
from streamdedup.kafka.delivery import Commits, Delivery
from streamdedup.kafka.ends import Ends
from streamdedup.kafka.every import Every
from streamdedup.kafka.failpoints import Failpoints
from streamdedup.kafka.intake import Intake, Prepared
from streamdedup.kafka.membership import Member, Ownership
from streamdedup.kafka.outputs import JudgedBatch, judged_batch
from streamdedup.kafka.replica import Replica
from streamdedup.kafka.report import InputReport, Listener, Place, Role
from streamdedup.kafka.settled import settled
from streamdedup.kafka.source import Source
from streamdedup.kafka.told import StopWatch, batch_report
from streamdedup.kafka.topics import OutputTopics, input_partitions

Done = TypeVar("Done")

_WAIT_SECONDS = 0.1
_DISK_RETRY_SECONDS = 1.0
_LOOK_FOR_PARTITIONS_SECONDS = 30.0
_REPORT_SECONDS = 1.0


@dataclass(frozen=True)
class Surroundings:
    """What a period of ownership works with and does not own."""

    config: Config
    admin: AdminClient
    topics: OutputTopics
    changelog: Changelog
    replica: Replica
    limits: DeadLetterLimits
    listener: Listener
    failpoints: Failpoints
    stop: Event
    on_error: OnError
    skip_lost: bool
    delivery: Delivery


class Owner:
    """The one that judges, as long as the group lets it."""

    def __init__(self, surroundings: Surroundings, membership: Member) -> None:
        self._s = surroundings
        self._membership = membership
        self._positions: dict[Place, int] = {}
        self._judged = 0
        self._gone: set[Place] = set()
        self._ends = Ends(surroundings.admin)

    def run(self) -> None:
        """Judge until ownership ends; raises `CommitFailed` if a batch's fate is unknown."""
        s = self._s
        s.listener.on_role(Role.RESTORING)
        committer = s.delivery.committer(
            s.config.kafka,
            s.topics,
            s.changelog,
            self._membership,
            s.failpoints,
            s.stop,
            s.on_error,
        )
        source = Source(s.config.kafka, s.on_error, skip_lost=s.skip_lost)
        with closing(committer), closing(source):
            committer.fence_others()
            if not s.replica.catch_up(self._still_owner):
                return
            s.failpoints.reach("restored")
            source.assign(input_partitions(s.admin, s.config))
            self._tell_of_trouble(source)
            s.listener.on_role(Role.WORKING)
            self._judge(committer, source)

    def _judge(self, committer: Commits, source: Source) -> None:
        s = self._s
        engine = s.replica.engine
        intake = Intake(source, s.config.input, engine, s.config.kafka.batch_articles)
        look = Every(_LOOK_FOR_PARTITIONS_SECONDS, at_once=False)
        report = Every(_REPORT_SECONDS)
        with settled(), Ahead(intake) as ahead:
            while self._still_owner(goes_round=ahead.goes_round):
                prepared = ahead.take(_WAIT_SECONDS)
                if look.due():
                    self._look_for_partitions(source)
                if report.due():
                    self._tell(source)
                if prepared is None:
                    continue
                s.failpoints.reach("gathered")
                watch = StopWatch()
                batch = self._patiently(partial(self._decide, prepared, watch))
                if batch is None:
                    return
                s.limits.check(len(prepared.arrivals.records), batch.dead)
                s.failpoints.reach("decided")
                committed = committer.commit(batch, partial(self._prepare, batch))
                applied = self._patiently(partial(self._apply, batch, committed))
                if applied is None:
                    return
                s.failpoints.reach("applied")
                s.limits.count(len(prepared.arrivals.records), batch.dead)
                s.listener.on_batch(batch_report(batch, watch, committed, applied))
                self._positions.update(batch.positions)
                self._judged += 1

    def _decide(self, prepared: Prepared, watch: StopWatch) -> JudgedBatch:
        watch.start()
        decision = self._s.replica.engine.decide(prepared.sketch, watch.lap)
        batch = judged_batch(prepared, decision)
        watch.lap("decide")
        return batch

    def _prepare(self, batch: JudgedBatch) -> None:
        # A disk that fails now will fail again when it matters, and is dealt with there.
        with suppress(StateError):
            self._s.replica.engine.prepare(batch.decision)

    def _apply(self, batch: JudgedBatch, committed: Committed) -> float:
        started = perf_counter()
        self._s.replica.apply(batch.decision, committed.last)
        return perf_counter() - started

    def _still_owner(self, *, goes_round: bool = True) -> bool:
        """Hear what the group says; in the middle of a rebalance, wait for its end.

        Whoever owned the index in between has fenced our producer, so if it can still commit,
        nobody did, and everything at hand is still true.
        """
        timeout_seconds = 0.0
        while not self._s.stop.is_set():
            if goes_round:
                self._s.listener.on_tick()
            ownership = self._membership.poll(timeout_seconds)
            if ownership is not Ownership.UNDECIDED:
                return ownership is Ownership.OWNER
            timeout_seconds = _WAIT_SECONDS
        return False

    def _patiently(self, work: Callable[[], Done]) -> Done | None:
        """Until the disk lets it be done; None if ownership ends before that."""
        s = self._s
        blocked = False
        while True:
            try:
                done = work()
            except StateDiskError as error:
                if not blocked:
                    s.listener.on_role(Role.BLOCKED)
                    s.listener.on_trouble(
                        f"{error}; nothing is judged until it works again",
                        "disk",
                        path=s.config.state.path,
                    )
                blocked = True
                s.stop.wait(_DISK_RETRY_SECONDS)
                if not self._still_owner():
                    return None
            else:
                if blocked:
                    s.listener.on_event(
                        "the state directory works again", "disk", path=s.config.state.path
                    )
                    s.listener.on_role(Role.WORKING)
                return done

    def _tell(self, source: Source) -> None:
        self._tell_of_trouble(source)
        # An owner whose every commit fails must have a lag before its first one.
        self._ends.known = {**source.first_ends, **self._ends.known}
        self._ends.ask(source.starts)
        positions = {**source.starts, **self._positions}
        for place, end in source.passed(self._judged).items():
            positions[place] = max(positions.get(place, end), end)
        self._s.listener.on_input(InputReport(dict(self._ends.known), positions))
        self._s.replica.report()

    def _tell_of_trouble(self, source: Source) -> None:
        for trouble in source.troubles():
            self._s.listener.on_trouble(trouble)

    def _tell_what_is_gone(self, gone: set[Place]) -> None:
        """Once: a topic that was made anew has other offsets, and reading it says so by itself."""
        for topic, partition in sorted(gone - self._gone):
            self._s.listener.on_trouble(
                f"the input {topic}[{partition}] is not there any more", "input_gone", topic=topic
            )
        self._gone = gone

    def _look_for_partitions(self, source: Source) -> None:
        try:
            there = input_partitions(self._s.admin, self._s.config)
            source.want(there)
            self._tell_what_is_gone(source.starts.keys() - there)
        except KafkaException as error:
            self._s.listener.on_trouble(f"cannot look for new partitions: {error.args[0].str()}")
