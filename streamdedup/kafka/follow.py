"""Reads a topic as everybody may see it: what is committed, in all of its partitions.

For whoever looks at what the service wrote.  It joins no group, commits nothing and knows nothing
of what the records mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import (
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from streamdedup.config import KafkaConfig
from streamdedup.kafka.clients import OnError, consumer, consumer_options

_REQUEST_SECONDS = 10.0


class Follower:
    """A consumer of every partition, from its beginning, its end or given offsets on."""

    def __init__(
        self,
        config: KafkaConfig,
        topic: str,
        partitions: int,
        *,
        from_beginning: bool = False,
        starts: Mapping[int, int] | None = None,
        on_error: OnError | None = None,
    ) -> None:
        options = {
            **consumer_options(config, on_error),
            "enable.partition.eof": True,
            # What retention took away meanwhile cannot be looked at; what is left can.
            "auto.offset.reset": "earliest",
        }
        self._consumer = consumer(options)
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        marks = {place.partition: self._marks(place) for place in places}
        self.ends = {partition: end for partition, (_, end) in marks.items()}
        """By partition, where what is committed ended when the following began."""
        self.next_offsets = {
            partition: (starts or {}).get(partition, first if from_beginning else end)
            for partition, (first, end) in marks.items()
        }
        """By partition, the offset before which everything has been read."""
        for place in places:
            place.offset = self.next_offsets[place.partition]
        self._consumer.assign(places)

    @property
    def at_end(self) -> bool:
        """Whether everything has been read that was there when the following began."""
        return all(self.next_offsets[partition] >= end for partition, end in self.ends.items())

    def read(self, most: int, timeout_seconds: float) -> list[Message]:
        """Records, as soon as there are some; none if none came in time."""
        first = self._consumer.consume(1, timeout_seconds)
        records = []
        for message in (*first, *(self._consumer.consume(most - 1, 0) if first else ())):
            error = message.error()
            if error is None:
                records.append(message)
                self._passed(message, 1)
            elif error.code() == KafkaError._PARTITION_EOF:
                # Behind the last record there may be markers of transactions.
                self._passed(message, 0)
            elif error.fatal():
                raise KafkaException(error)
        return records

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _passed(self, message: Message, count: int) -> None:
        partition, offset = message.partition() or 0, (message.offset() or 0) + count
        self.next_offsets[partition] = max(self.next_offsets[partition], offset)

    def _marks(self, place: TopicPartition) -> tuple[int, int]:
        marks = self._consumer.get_watermark_offsets(place, timeout=_REQUEST_SECONDS)
        if marks is None:
            raise KafkaException(
                KafkaError(KafkaError._TIMED_OUT, f"the end of {place.topic}[{place.partition}]")
            )
        return marks
