"""A Kafka inside this process: librdkafka's mock cluster, which any librdkafka client can talk to.

It does not fence, forgets offsets sent in transactions, and silently drops what is older than the
newest five megabytes of a partition.  So: one instance, at least once, and never far behind.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

_ANSWER_SECONDS = 10.0
# It announces that it is only a mock, on standard error unless somebody takes the line.
_SILENT = logging.getLogger("streamdedup.demo.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class InProcessKafka:
    """Lives as long as the client that it came with."""

    def __init__(self) -> None:
        self._client: Producer | None = Producer(
            {"bootstrap.servers": "in-process", "test.mock.num.brokers": 1, "logger": _SILENT}
        )
        brokers = self._client.list_topics(timeout=_ANSWER_SECONDS).brokers
        self.bootstrap = ",".join(f"{each.host}:{each.port}" for each in brokers.values())

    def create_topics(self, *names: str) -> None:
        """Asking for a topic makes it; each has four partitions."""
        assert self._client is not None
        for name in names:
            self._client.list_topics(name, timeout=_ANSWER_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client = None
