"""Reads the changelog's committed records in order, from any offset on, and knows its end.

Transaction markers occupy offsets too, so the end is where the broker says "end of partition", not
the offset behind the last record.  It knows nothing of what the records mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from streamdedup.config import KafkaConfig
from streamdedup.kafka.bounded import close_within
from streamdedup.kafka.clients import OnError, consumer, consumer_options

_REQUEST_SECONDS = 5.0
_SETTLE_SECONDS = 3.0
_AGAIN_SECONDS = 0.1
_CLOSE_SECONDS = 1.0
_SETTLING = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


class ChangelogGone(Exception):
    """The offset to read on from is not in the changelog (any more)."""


@dataclass(frozen=True)
class Extent:
    """Where the changelog begins, and the end of what is committed."""

    first: int
    end: int


class Tail:
    """A consumer of the changelog's one partition; never a member of the group."""

    def __init__(self, config: KafkaConfig, on_error: OnError) -> None:
        self._options = consumer_options(config, on_error) | {"enable.partition.eof": True}
        self._consumer = consumer(self._options)
        self._topic = config.changelog
        self.next_offset = 0
        """Everything committed before it has been read."""
        self._answered = monotonic()

    @property
    def silent_seconds(self) -> float:
        """Since the broker last answered here; a quiet changelog is silent too."""
        return monotonic() - self._answered

    def extent(self) -> Extent:
        """Asks the broker; one that has just come back is given time to find its partitions."""
        place = TopicPartition(self._topic, 0)
        until = monotonic() + _SETTLE_SECONDS
        while True:
            try:
                marks = self._consumer.get_watermark_offsets(place, timeout=_REQUEST_SECONDS)
            except KafkaException as error:
                if error.args[0].code() not in _SETTLING or monotonic() > until:
                    raise
                sleep(_AGAIN_SECONDS)
                continue
            if marks is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the changelog's end"))
            self._answered = monotonic()
            return Extent(*marks)

    def seek(self, offset: int | None) -> None:
        """Read on from here; None is the beginning."""
        start = OFFSET_BEGINNING if offset is None else offset
        self._consumer.assign([TopicPartition(self._topic, 0, start)])
        self.next_offset = offset or 0

    def rest(self) -> None:
        """Fetch nothing until the next `seek`."""
        self._consumer.unassign()

    def read(self, most: int, timeout_seconds: float) -> list[Message]:
        """Committed records, as soon as there is one; none if the end has been reached."""
        first = self._consumer.consume(1, timeout_seconds)
        if not first:
            return []
        records = []
        for message in (*first, *self._consumer.consume(most, 0)):
            error = message.error()
            offset = message.offset()
            assert offset is not None
            if error is None:
                records.append(message)
                self.next_offset = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self.next_offset = max(self.next_offset, offset)
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                raise ChangelogGone(error.str())
            elif error.fatal():
                raise KafkaException(error)
        if records:
            self._answered = monotonic()
        return records

    def renew(self) -> None:
        """A new connection, in case the old one has a wrong notion of Kafka; `seek` is next."""
        old, self._consumer = self._consumer, consumer(self._options)
        close_within(_CLOSE_SECONDS, old.close)

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close()
