"""What differs with how sure one wants to be that every article is answered once.

Exactly once is the service.  At least once is for a Kafka that has neither fencing nor transactions
that hold, as the one inside the process that `streamdedup demo` brings along: one instance, alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from time import perf_counter
from types import TracebackType
from typing import Protocol, Self

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from streamdedup.config import Config, KafkaConfig
from streamdedup.kafka.changelog import Changelog
from streamdedup.kafka.clients import (
    OnError,
    consumer,
    consumer_options,
    producer,
    producer_options,
)
from streamdedup.kafka.commit import CommitFailed, Committed, Committer
from streamdedup.kafka.failpoints import Failpoints
from streamdedup.kafka.membership import Member, Membership, OnRebalance, Ownership
from streamdedup.kafka.outputs import JudgedBatch, Outputs
from streamdedup.kafka.topics import OutputTopics, check_topics

_REQUEST_SECONDS = 10.0
_MESSAGE_BYTES = 1_000_000


class Commits(Protocol):
    """Lets judged batches out."""

    def fence_others(self) -> None:
        """From here on nobody else does."""

    def commit(self, batch: JudgedBatch, meanwhile: Callable[[], None]) -> Committed:
        """The batch is out; raises `CommitFailed` if that is not certain.

        `meanwhile` is called once while Kafka is waited for.
        """

    def close(self) -> None:
        """Let go."""


@dataclass(frozen=True)
class Delivery:
    """How to learn what the topics are, to join those who may own the index, and to commit."""

    topics: Callable[[AdminClient, Config], OutputTopics]
    join: Callable[[KafkaConfig, OnError, OnRebalance], Member]
    committer: Callable[
        [KafkaConfig, OutputTopics, Changelog, Member, Failpoints, Event, OnError], Commits
    ]


class _Alone:
    """The owner, since there is no other instance."""

    def __init__(self, config: KafkaConfig, on_error: OnError, on_rebalance: OnRebalance) -> None:
        pass

    def poll(self, timeout_seconds: float = 0.0) -> Ownership:
        """Always."""
        return Ownership.OWNER

    def generation(self) -> object:
        """There is no group."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class _PlainCommitter:
    """Writes, waits until all of it has arrived, then commits the offsets."""

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
        self._producer = producer(producer_options(config, on_error))
        self._offsets = consumer(consumer_options(config, on_error))
        self._outputs = Outputs(self._producer, config, topics, changelog)

    def fence_others(self) -> None:
        """There are none."""

    def commit(self, batch: JudgedBatch, meanwhile: Callable[[], None]) -> Committed:
        """Everything of it is written before the input moves on."""
        started = perf_counter()
        try:
            self._outputs.verdicts(batch)
            last = self._outputs.changelog(batch)
            produced = perf_counter()
            meanwhile()
            if self._producer.flush(_REQUEST_SECONDS):
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "writing a batch"))
            self._offsets.commit(
                offsets=[
                    TopicPartition(topic, partition, offset)
                    for (topic, partition), offset in batch.positions.items()
                ],
                asynchronous=False,
            )
        except KafkaException as error:
            raise CommitFailed(error.args[0], fenced=False) from None
        return Committed(last, produced - started, perf_counter() - produced)

    def close(self) -> None:
        """Let go."""
        self._offsets.close()


def _topics_as_they_are(admin: AdminClient, config: Config) -> OutputTopics:
    """Without their settings, which such a Kafka does not tell."""
    kafka = config.kafka
    found = admin.list_topics(timeout=_REQUEST_SECONDS).topics
    return OutputTopics(
        changelog_id=kafka.changelog,
        verdicts=len(found[kafka.verdicts].partitions),
        unique=len(found[kafka.unique].partitions) if kafka.unique else 0,
        dead_letters=len(found[kafka.dead_letters].partitions),
        unique_bytes=_MESSAGE_BYTES,
        dead_letter_bytes=_MESSAGE_BYTES,
    )


EXACTLY_ONCE = Delivery(topics=check_topics, join=Membership, committer=Committer)
AT_LEAST_ONCE = Delivery(topics=_topics_as_they_are, join=_Alone, committer=_PlainCommitter)
