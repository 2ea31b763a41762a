"""What a test does with any Kafka, wherever it runs: make topics, and read what is true in them.

Truth is what a `read_committed` consumer sees that reads everything from the beginning.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from streamdedup.testing.errors import BrokerFailed

TIMEOUT_SECONDS = 30.0
Isolation = Literal["read_committed", "read_uncommitted"]


@dataclass(frozen=True)
class Record:
    """One record of a topic, with everything that a producer can put into it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Kafka:
    """A broker that can be reached, not one that can be stopped: that is a `LocalBroker`."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """Make a topic and return its name when it can be used.

        To see records expire, give a small `retention.ms`: the segment that is being written
        expires too.  `segment.bytes` cannot be less than 1 MiB, `segment.ms` can be anything.
        """
        admin = AdminClient(self._client())
        topic = NewTopic(
            name, num_partitions=partitions, replication_factor=1, config=dict(config or {})
        )
        made = admin.create_topics([topic], operation_timeout=TIMEOUT_SECONDS)
        made[name].result(TIMEOUT_SECONDS)
        until = time.monotonic() + TIMEOUT_SECONDS
        while len(admin.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name].partitions) == 0:
            if time.monotonic() > until:
                raise BrokerFailed(f"topic {name} was made but cannot be found")
            time.sleep(0.02)
        return name

    def read(
        self,
        topic: str,
        *,
        isolation: Isolation = "read_committed",
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> list[Record]:
        """Every record of the topic up to this moment's end, partition after partition.

        The end of a `read_committed` reader is the oldest transaction still open.
        """
        consumer = Consumer(
            self._client()
            | {
                # Never joins: it assigns itself, and commits nothing.
                "group.id": unique_name("reader"),
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "fetch.queue.backoff.ms": 5,
                "fetch.wait.max.ms": 20,
            }
        )
        try:
            return _read_to_end(consumer, topic, timeout_seconds)
        finally:
            consumer.close()

    def _client(self) -> dict[str, str | int | float | bool]:
        # A broker that restarts is back in seconds; a client that waits ten to look is not.
        return {"bootstrap.servers": self.bootstrap, "reconnect.backoff.max.ms": 500}


def unique_name(what: str) -> str:
    """A name for a topic, a group or a transactional id that no other test has."""
    return f"{what}-{uuid.uuid4().hex[:10]}"


def _read_to_end(consumer: Consumer, topic: str, timeout_seconds: float) -> list[Record]:
    found = consumer.list_topics(topic, timeout=timeout_seconds).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    # Asked for by a consumer, the end is the one of its isolation level.
    ends = {
        partition: consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=timeout_seconds
        )[1]
        for partition in found.partitions
    }
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in ends])
    records: dict[int, list[Record]] = {partition: [] for partition in ends}
    unread = {partition for partition, end in ends.items() if end > 0}
    until = time.monotonic() + timeout_seconds
    while unread:
        if time.monotonic() > until:
            raise BrokerFailed(f"{topic}: partitions {sorted(unread)} not read to {ends} in time")
        for message in consumer.consume(500, 0.1):
            error = message.error()
            partition, offset = _place(message)
            if error is None:
                if offset < ends[partition]:
                    records[partition].append(_record(message))
                if offset + 1 >= ends[partition]:
                    unread.discard(partition)
            elif error.code() == KafkaError._PARTITION_EOF:
                # The last offsets before the end may hold commit markers, or what was aborted:
                # no message has them, and only this event tells that they were passed.
                if offset >= ends[partition]:
                    unread.discard(partition)
            elif error.fatal() or not error.retriable():
                raise KafkaException(error)
    return [record for partition in sorted(records) for record in records[partition]]


def _place(message: Message) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    return (-1 if partition is None else partition), (-1 if offset is None else offset)


def _record(message: Message) -> Record:
    partition, offset = _place(message)
    return Record(
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        headers=tuple(cast("list[tuple[str, bytes | None]]", message.headers() or [])),
        timestamp_ms=message.timestamp()[1],
    )
