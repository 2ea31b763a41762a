"""The input: every partition of every input topic, read by the owner from the committed offsets.

It assigns itself instead of being assigned, because the index has one owner.  It knows offsets and
retention, not what an article is.

The consumer belongs to whoever gathers: while one thread waits in `consume`, a call of another one
into the same consumer may not come in for as long as the topic is quiet, whatever its timeout
(confluent-kafka 2.16).  Others leave a note of what they want, and read what was left for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from time import perf_counter

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from streamdedup.config import KafkaConfig
from streamdedup.errors import InputLost
from streamdedup.kafka.clients import OnError, consumer, consumer_options
from streamdedup.kafka.report import Place

_REQUEST_SECONDS = 10.0
_OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_BATCH_BYTES = 32 << 20
_CHUNK = 1_000
_MOST_TROUBLES = 100


class Source:
    """The owner's input consumer."""

    def __init__(self, config: KafkaConfig, on_error: OnError, *, skip_lost: bool) -> None:
        options = consumer_options(config, on_error) | {"enable.partition.eof": True}
        self._consumer = consumer(options)
        self._skip_lost = skip_lost
        self._wanted: Sequence[Place] = ()
        self._troubles: deque[str] = deque(maxlen=_MOST_TROUBLES)
        # Replaced as a whole, never changed: others read them.
        self._starts: Mapping[Place, int] = {}
        self._first_ends: Mapping[Place, int] = {}
        self._gathered = 0
        self._seen_ends: dict[Place, tuple[int, int]] = {}

    def want(self, partitions: Sequence[Place]) -> None:
        """Gather from these partitions too, from the next time on."""
        self._wanted = partitions

    def troubles(self) -> list[str]:
        """What went wrong since it was last asked, and was not the end."""
        return [self._troubles.popleft() for _ in range(len(self._troubles))]

    def assign(self, partitions: Sequence[Place]) -> None:
        """Take these partitions too; for whoever gathers."""
        new = [place for place in partitions if place not in self._starts]
        if not new:
            return
        asked = [TopicPartition(topic, partition) for topic, partition in new]
        committed = self._consumer.committed(asked, timeout=_REQUEST_SECONDS)
        starts: dict[Place, int] = {}
        ends: dict[Place, int] = {}
        lost = [loss for place in committed if (loss := self._place(place, starts, ends))]
        if lost and not self._skip_lost:
            raise InputLost(
                "articles were lost before they were judged:\n  "
                + "\n  ".join(lost)
                + "\nrun with --skip-lost to go on without them"
            )
        self._consumer.incremental_assign(committed)
        self._first_ends = {**self._first_ends, **ends}
        self._starts = {**self._starts, **starts}
        self._troubles.extend(f"going on without lost articles: {loss}" for loss in lost)

    def gather(self, most: int, timeout_seconds: float) -> tuple[list[Message], float]:
        """What has arrived, as soon as something has: little when quiet, `most` when behind.

        With it, when the first came: waiting for that is no work.
        """
        self._assign_wanted()
        ends: dict[Place, int] = {}
        first = self._consumer.consume(1, timeout_seconds)
        began = perf_counter()
        arrived = self._checked(first, ends)
        size = sum(len(message) for message in arrived)
        while arrived and len(arrived) < most and size < _BATCH_BYTES:
            more = self._consumer.consume(min(_CHUNK, most - len(arrived)), 0)
            if not more:
                break
            good = self._checked(more, ends)
            size += sum(len(message) for message in good)
            arrived += good
        self._gathered += bool(arrived)
        for place, end in ends.items():
            self._seen_ends[place] = end, self._gathered
        return arrived, began

    def passed(self, judged: int) -> dict[Place, int]:
        """The ends before which nothing is left once so many gathered batches are judged.

        They lie behind the last record where markers of the writers' transactions follow it.
        """
        seen = self._seen_ends.copy()  # another thread gathers
        return {place: end for place, (end, batches) in seen.items() if batches <= judged}

    @property
    def starts(self) -> Mapping[Place, int]:
        """By partition the offset at which reading began."""
        return self._starts

    @property
    def first_ends(self) -> Mapping[Place, int]:
        """By partition the end of what was committed when it was assigned."""
        return self._first_ends

    def close(self) -> None:
        """Let go of everything that was fetched."""
        self._consumer.close()

    def _assign_wanted(self) -> None:
        wanted, self._wanted = self._wanted, ()
        try:
            self.assign(wanted)
        except KafkaException as error:  # they are wanted again before long
            self._troubles.append(f"cannot take new partitions: {error.args[0].str()}")

    def _place(
        self, place: TopicPartition, starts: dict[Place, int], ends: dict[Place, int]
    ) -> str | None:
        """Set where to start; says what is missing between there and the committed offset."""
        if place.error is not None:
            raise KafkaException(place.error)
        marks = self._consumer.get_watermark_offsets(place, timeout=_REQUEST_SECONDS)
        if marks is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the input's offsets"))
        first, end = marks
        ends[place.topic, place.partition] = end
        committed, known = place.offset, first <= place.offset <= end
        starts[place.topic, place.partition] = committed if known else first
        if known:
            return None
        place.offset = OFFSET_BEGINNING
        if committed < 0:  # nothing committed yet: everything there is
            return None
        name = f"{place.topic}[{place.partition}]"
        if committed < first:
            return f"{name}: offsets {committed:,} to {first - 1:,} are gone (retention)"
        return f"{name}: ends at offset {end:,}, before the committed {committed:,} (made anew?)"

    def _checked(self, messages: list[Message], ends: dict[Place, int]) -> list[Message]:
        if all(message.error() is None for message in messages):
            return messages
        good = []
        for message in messages:
            error = message.error()
            if error is None:
                good.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends[message.topic() or "", message.partition() or 0] = message.offset() or 0
            elif error.code() in _OUT_OF_RANGE:
                raise InputLost(
                    f"{message.topic()}[{message.partition()}]: the next offset is no longer there "
                    "(retention, or the topic was made anew); run with --skip-lost to go on "
                    "without what is lost"
                )
            elif error.fatal():
                raise KafkaException(error)
            else:
                self._troubles.append(
                    f"cannot read {message.topic()}[{message.partition()}]: {error.str()}"
                )
        return good
