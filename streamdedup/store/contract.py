"""What a store is, and the two values that cross its border: hits and records.

A store knows keys, numbers and bytes; it does not know what an article is or when two match.
Numbers are given in order of arrival and never again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamdedup.store.figures import StoreFigures
from streamdedup.store.records import RecordBatch, Records


@dataclass(frozen=True)
class Hits:
    """Bucket contents: numbers under key k are `numbers[starts[k]:starts[k + 1]]`, newest first."""

    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]


NO_HITS = Hits(np.zeros(0, np.int64), np.zeros(1, np.int64))


@dataclass
class Foreseen:
    """A part of an answer to `probe`, got ahead: it holds as long as `state` is the store's.

    It may be large where texts have many copies, so it is let go of as soon as it was used.
    """

    state: object
    hits: Hits
    records: dict[int, bytes]  # what was read on the way, and is soon to be fetched
    pages_read: int

    def let_go(self) -> None:
        """It is of no store any more, and takes no memory."""
        self.state, self.hits, self.records = None, NO_HITS, {}


class Store(Protocol):
    """Buckets and records.  `probe` and `fetch` only read; `append` is one atomic write."""

    @property
    def next_number(self) -> int:
        """The number that the next appended record gets."""

    @property
    def watermark_ms(self) -> int:
        """The stream's clock: the latest stamp appended so far."""

    @property
    def clock(self) -> bytes:
        """The clock's state that came with the last append; empty before the first."""

    @property
    def bucket_entries(self) -> int:
        """How many of its newest entries a bucket keeps."""

    @property
    def mark(self) -> bytes:
        """What the last append that gave one was marked with; empty if none did.

        The caller's own note of how far its source is contained here, atomic with the records.
        """

    def foresee(self, keys: NDArray[np.uint64], starts: NDArray[np.int64]) -> Foreseen | None:
        """Look up what appends seldom change; another thread may do it beside everything else.

        None if there is nothing to be gained.
        """

    def probe(
        self,
        keys: NDArray[np.uint64],
        starts: NDArray[np.int64],
        foreseen: Foreseen | None = None,
    ) -> Hits:
        """What lies in the bucket of each key, newest first, at most `bucket_entries`.

        Keys come by article, article i's from `starts[i]` on: a hint that changes no answer, no
        more than what was foreseen for the same keys, however long ago.
        """

    def fetch(self, numbers: NDArray[np.int64]) -> Records:
        """The records of these numbers (each was returned by `probe` since the last append)."""

    def prepare(self, batch: RecordBatch) -> None:
        """Do what the next `append` of this batch would do first and what changes no answer.

        It may fail, and the batch need not be appended after it.
        """

    def append(self, batch: RecordBatch, mark: bytes | None = None) -> None:
        """Add records under the next numbers, their keys to the buckets, the mark: all or nothing.

        An error means nothing was added: the same batch may be appended again.
        """

    def figures(self) -> StoreFigures:
        """How it is doing."""

    def close(self) -> None:
        """Let go of everything; safe to call twice."""
