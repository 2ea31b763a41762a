"""The commit: how a judged batch leaves, all of it once or nothing of it.

1. Decide against the index; nothing is written anywhere.        (owner)
2. Begin a transaction; the broker refuses it if another owner has begun since.
3. Produce verdicts, unique articles and dead letters.
4. Produce the changelog: a record an article.
5. Send the input offsets, with the group's generation: a member that is no longer the owner is
   refused here even if no new owner has begun yet.  They are on their way while 3 and 4 are done.
6. Commit.  From here on everybody sees the batch; before, nobody does.  While it is waited for, the
   index is made ready for 7.
7. Apply it to the index, in one write with the changelog position that it is contained in.  (owner)

A crash before 6 leaves nothing, after 6 a batch that the next life finds in the changelog.  Where
the outcome of 6 is unknown, nothing is assumed: the changelog is read (`docs/exactly-once.md`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event
from time import perf_counter

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from streamdedup.config import KafkaConfig
from streamdedup.kafka.bounded import Call, close_within
from streamdedup.kafka.changelog import Changelog
from streamdedup.kafka.clients import OnError, producer, transaction_options
from streamdedup.kafka.failpoints import Failpoints
from streamdedup.kafka.membership import Member
from streamdedup.kafka.outputs import JudgedBatch, LastWritten, Outputs
from streamdedup.kafka.topics import OutputTopics

# Together well below max.poll.interval.ms (five minutes), within which an owner must be heard of.
_COMMIT_SECONDS = 60.0
_STOPPING_SECONDS = 1.5
_SLICE_SECONDS = 1.0
_ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 0.2
_CLOSE_SECONDS = 0.5


class CommitFailed(Exception):
    """The batch may or may not be out; only the changelog knows."""

    def __init__(self, error: KafkaError, *, fenced: bool) -> None:
        super().__init__(error.str())
        self.fenced = fenced


@dataclass(frozen=True)
class Committed:
    """What is known after the commit."""

    last: LastWritten | None  # None if the batch had only dead letters
    produce_seconds: float
    commit_seconds: float


_FENCED = frozenset(
    {
        KafkaError._FATAL,
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.FENCED_INSTANCE_ID,
    }
)


class Committer:
    """The transactional producer of one period of ownership."""

    def __init__(
        self,
        config: KafkaConfig,
        topics: OutputTopics,
        changelog: Changelog,
        membership: Member,
        failpoints: Failpoints,
        stop: Event,
        on_error: OnError,
    ) -> None:
        self._producer: Producer = producer(transaction_options(config, on_error))
        self._outputs = Outputs(self._producer, config, topics, changelog)
        self._membership = membership
        self._failpoints = failpoints
        self._stop = stop

    def fence_others(self) -> None:
        """End whatever transaction an earlier owner left open, and keep it from ever committing.

        From here on the changelog does not change but by us.
        """
        self._failpoints.reach("assigned")
        with self._patiently(self._producer.init_transactions):
            pass
        self._failpoints.reach("fenced-others")

    def commit(self, batch: JudgedBatch, meanwhile: Callable[[], None]) -> Committed:
        """Steps 2 to 6; raises `CommitFailed` if it is not certain that the batch is out."""
        reach = self._reach
        started = perf_counter()
        try:
            self._producer.begin_transaction()  # 2
            reach("begun")
            with self._patiently(self._offsets_of(batch)):  # 5
                self._outputs.verdicts(batch)  # 3
                reach("verdicts-produced")
                last = self._outputs.changelog(batch)  # 4
                reach("changelog-produced")
                produced = perf_counter()
            reach("offsets-sent")
            with self._patiently(self._producer.commit_transaction):  # 6
                meanwhile()
            reach("committed")
        except BufferError as error:
            raise CommitFailed(
                KafkaError(KafkaError._QUEUE_FULL, str(error)), fenced=False
            ) from None
        except KafkaException as error:
            failure: KafkaError = error.args[0]
            # A fatal error hides its cause; all of them end this producer and its ownership.
            fenced = failure.code() in _FENCED or failure.fatal()
            raise CommitFailed(failure, fenced=fenced) from None
        self._producer.poll(0)
        return Committed(last, produced - started, perf_counter() - produced)

    def close(self) -> None:
        """Let go; an open transaction is ended by the next `fence_others` at the latest."""
        # A producer that cannot reach its broker would be waited for.
        self._producer.purge(blocking=False)
        close_within(_CLOSE_SECONDS, self._producer.close)

    def _reach(self, name: str) -> None:
        # What a test leaves behind must be in the broker's log, not in a queue of ours.
        if self._failpoints.acts_at(name):
            self._producer.flush(_SLICE_SECONDS)
        self._failpoints.reach(name)

    def _offsets_of(self, batch: JudgedBatch) -> Callable[[float], None]:
        offsets = [
            TopicPartition(topic, partition, offset)
            for (topic, partition), offset in batch.positions.items()
        ]

        def send(timeout_seconds: float) -> None:
            generation = self._membership.generation()
            self._producer.send_offsets_to_transaction(offsets, generation, timeout_seconds)

        return send

    @contextmanager
    def _patiently(self, call: Callable[[float], None]) -> Iterator[None]:
        """Beside what is done inside; again while Kafka says that it may be, but not for ever."""
        started = called = time.monotonic()
        attempt = Call(partial(call, _SLICE_SECONDS))
        try:
            yield
        except (KafkaException, BufferError):
            # A refusal of this call ends the transaction, and is told to others in vague words.
            if attempt.ended(_SLICE_SECONDS):
                attempt.result()
            raise
        while True:
            while not attempt.ended(_LOOK_SECONDS):
                if time.monotonic() - called > self._limit(_ANSWER_SECONDS):
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer from Kafka"))
            try:
                attempt.result()
            except KafkaException as error:
                lasted = time.monotonic() - started
                if not error.args[0].retriable() or lasted > self._limit(_COMMIT_SECONDS):
                    raise
            else:
                return
            called = time.monotonic()
            attempt = Call(partial(call, _SLICE_SECONDS))

    def _limit(self, seconds: float) -> float:
        return _STOPPING_SECONDS if self._stop.is_set() else seconds
