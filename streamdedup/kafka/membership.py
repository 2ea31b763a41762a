"""Who owns the index: the member of the group that is assigned the changelog's only partition.

Nothing is read through this consumer.  Its rebalances are heard only in `poll`, which the loop
calls only when no transaction is open, so an owner never has to give up in the middle of one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum, auto
from types import TracebackType
from typing import Protocol, Self

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from streamdedup.config import KafkaConfig
from streamdedup.kafka.bounded import close_within
from streamdedup.kafka.clients import OnError, consumer, member_options
from streamdedup.kafka.report import Rebalance

OnRebalance = Callable[[Rebalance], None]

_LEAVE_SECONDS = 1.0
_NO_LONGER_MEMBER = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError._MAX_POLL_EXCEEDED,
    }
)


class Ownership(Enum):
    """What the group last said."""

    UNDECIDED = auto()  # joining, or in the middle of a rebalance
    OWNER = auto()
    STANDBY = auto()
    LOST = auto()  # the group went on without us: leave, and join anew


class Member(Protocol):
    """Whoever may own the index."""

    def poll(self, timeout_seconds: float = 0.0) -> Ownership:
        """Whether it does."""

    def generation(self) -> object:
        """What proves it to Kafka."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Membership:
    """One life as a member of the group."""

    def __init__(self, config: KafkaConfig, on_error: OnError, on_rebalance: OnRebalance) -> None:
        # `range` gives the partition to the member whose id sorts first, and an id begins with
        # client.id: the oldest member stays the owner whoever comes, and one that comes back
        # from the dead is the newest.
        name = f"streamdedup-{time.time_ns():020d}"
        self._consumer = consumer(member_options(config, on_error) | {"client.id": name})
        self.ownership = Ownership.UNDECIDED
        self._on_rebalance = on_rebalance
        self._consumer.subscribe(
            [config.changelog],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    def poll(self, timeout_seconds: float = 0.0) -> Ownership:
        """Hear of rebalances; to be called at least every few seconds."""
        message = self._consumer.poll(timeout_seconds)
        error = message.error() if message is not None else None
        if error is not None and error.code() in _NO_LONGER_MEMBER:
            self.ownership = Ownership.LOST
        elif error is not None and error.fatal():
            raise KafkaException(error)
        return self.ownership

    def generation(self) -> object:
        """What a transaction carries to prove that its writer still owns the index."""
        return self._consumer.consumer_group_metadata()

    def leave(self) -> None:
        """Tell the group, but do not wait long for an ill broker."""
        close_within(_LEAVE_SECONDS, self._consumer.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            partition.offset = OFFSET_END
        consumer.assign(partitions)
        if partitions:
            consumer.pause(partitions)
        if self.ownership is not Ownership.LOST:
            self.ownership = Ownership.OWNER if partitions else Ownership.STANDBY
        self._on_rebalance(Rebalance.ASSIGNED)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self.ownership is not Ownership.LOST:
            self.ownership = Ownership.UNDECIDED
        self._on_rebalance(Rebalance.REVOKED)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.ownership = Ownership.LOST
        self._on_rebalance(Rebalance.LOST)
