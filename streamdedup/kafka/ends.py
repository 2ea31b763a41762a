"""Where the partitions that a consumer reads begin and end, as its statistics last told.

Asking librdkafka for its cached offsets would take a lock of the fetchers while holding Python's,
and can stop both for good; statistics come by themselves, in the thread that reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_INTERVAL_MS = 1_000


class _Partition(msgspec.Struct):
    partition: int
    lo_offset: int = -1
    ls_offset: int = -1  # behind the last record whose transaction is decided


class _Topic(msgspec.Struct):
    topic: str
    partitions: dict[str, _Partition]


class _Statistics(msgspec.Struct):
    topics: dict[str, _Topic]


class Ends:
    """Give its `options` to the consumer."""

    def __init__(self) -> None:
        self.known: Mapping[tuple[str, int], tuple[int, int]] = {}
        """By partition the first offset and the end; replaced as a whole, by the reading thread."""
        self._decoder = msgspec.json.Decoder(_Statistics)

    @property
    def options(self) -> dict[str, Any]:
        """What makes a consumer tell."""
        return {"statistics.interval.ms": _INTERVAL_MS, "stats_cb": self._hear}

    def _hear(self, statistics: str) -> None:
        known = {}
        for topic in self._decoder.decode(statistics).topics.values():
            for partition in topic.partitions.values():
                if partition.ls_offset >= 0:
                    place = (topic.topic, partition.partition)
                    known[place] = (max(partition.lo_offset, 0), partition.ls_offset)
        self.known = known
