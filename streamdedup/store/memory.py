"""A store in plain dictionaries: for tests, and for a few thousand articles in passing.

It is written to be obviously right; the contract tests hold the real store against it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.store.contract import Foreseen, Hits
from streamdedup.store.figures import StoreFigures
from streamdedup.store.records import RecordBatch, Records


class MemoryStore:
    """Buckets as lists of numbers, oldest first, cut to the newest few."""

    def __init__(self, *, bucket_entries: int) -> None:
        self.bucket_entries = bucket_entries
        self.watermark_ms = 0
        self.clock = b""
        self.mark = b""
        self._records: list[bytes] = []
        self._buckets: dict[int, list[int]] = {}

    @property
    def next_number(self) -> int:
        """Numbers are places in the list of records."""
        return len(self._records)

    def foresee(self, keys: NDArray[np.uint64], starts: NDArray[np.int64]) -> None:
        """Nothing: looking up costs little."""

    def probe(
        self,
        keys: NDArray[np.uint64],
        starts: NDArray[np.int64],
        foreseen: Foreseen | None = None,
    ) -> Hits:
        """Look every key up."""
        numbers: list[int] = []
        ends = [0]
        for key in keys.tolist():
            numbers.extend(reversed(self._buckets.get(key, [])))
            ends.append(len(numbers))
        return Hits(np.array(numbers, np.int64), np.array(ends, np.int64))

    def fetch(self, numbers: NDArray[np.int64]) -> Records:
        """Read records by number."""
        return Records([self._records[number] for number in numbers.tolist()])

    def prepare(self, batch: RecordBatch) -> None:
        """Nothing."""

    def append(self, batch: RecordBatch, mark: bytes | None = None) -> None:
        """Add records and keys."""
        keys = batch.keys.tolist()
        for index, record in enumerate(batch.records):
            number = len(self._records)
            self._records.append(record)
            for key in keys[batch.key_starts[index] : batch.key_starts[index + 1]]:
                bucket = self._buckets.setdefault(key, [])
                bucket.append(number)
                del bucket[: -self.bucket_entries]
        if len(batch.seen_ms):
            self.watermark_ms = max(self.watermark_ms, int(batch.seen_ms.max()))
            self.clock = batch.clock
        if mark is not None:
            self.mark = mark

    def figures(self) -> StoreFigures:
        """Only how many there are."""
        return StoreFigures(articles=len(self._records))

    def close(self) -> None:
        """Nothing is held open."""
