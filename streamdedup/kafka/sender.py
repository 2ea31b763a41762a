"""Sends lines into a topic, byte for byte, in bounded memory, and knows what became of each.

It knows nothing of articles: whoever calls it says where a line came from and what its key is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message

from streamdedup.config import KafkaConfig
from streamdedup.kafka.clients import OnError, producer, producer_options

_QUEUE_KIB = 64 << 10
_FULL_SECONDS = 0.1
_BATCH_BYTES = 1_000_000
_OVERHEAD_BYTES = 128
Place = TypeVar("Place")


class Sender(Generic[Place]):
    """An idempotent producer; `on_failure` hears of every line that did not arrive, and why."""

    def __init__(
        self,
        config: KafkaConfig,
        topic: str,
        on_failure: Callable[[Place, str], None],
        *,
        largest_batch_bytes: int | None = None,
        on_error: OnError | None = None,
    ) -> None:
        # Reading a file is faster than any broker; what waits is bounded by size.
        options = {"queue.buffering.max.kbytes": _QUEUE_KIB, **producer_options(config, on_error)}
        if largest_batch_bytes is not None:
            # A batch that is too large is refused as a whole, the small lines in it too.
            options["batch.size"] = min(largest_batch_bytes, _BATCH_BYTES)
            options["message.max.bytes"] = max(largest_batch_bytes - _OVERHEAD_BYTES, 1_000)
        self._producer = producer(options)
        self._topic = topic
        self._on_failure = on_failure
        self.delivered = 0
        self.delivered_bytes = 0

    @property
    def waiting(self) -> int:
        """How many lines are neither delivered nor given up."""
        return len(self._producer)

    def offer(self, place: Place, line: bytes, key: bytes | None, partition: int = -1) -> bool:
        """Hand a line over; False, after a moment, if too many are under way: offer it again."""
        try:
            self._producer.produce(
                self._topic,
                line,
                key,
                partition,
                partial(self._report, place, len(line)),
            )
        except BufferError:
            self._producer.poll(_FULL_SECONDS)
            return False
        except KafkaException as error:
            if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            self._on_failure(place, error.args[0].str())
            return True
        self._producer.poll(0)
        return True

    def wait(self, timeout_seconds: float) -> bool:
        """Until nothing is under way any more; False if that took too long."""
        return self._producer.flush(timeout_seconds) == 0

    def _report(self, place: Place, size: int, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.delivered += 1
            self.delivered_bytes += size
        else:
            self._on_failure(place, error.str())
