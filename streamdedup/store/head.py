"""The head: the newest articles' keys in an open-addressing table in memory.

It holds a fixed count of articles, so that where one head ends and the next begins is a function
of the article number alone.  A full head becomes a segment and stays readable meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled
from streamdedup.machine import prefetch
from streamdedup.store.contract import Hits

_AHEAD = 16  # keys whose slots are on their way from memory while one is dealt with


class Head:
    """Keys of the articles from number `base` on, at most `articles` of them."""

    def __init__(self, *, base: int, articles: int, max_keys: int) -> None:
        entries = articles * max_keys
        slots = 1 << (entries + entries // 3).bit_length()
        self.base = base
        self.articles = articles
        self.count = 0
        self.last_seen_ms = 0
        self.entries = 0
        # Slot: key, then number of its newest entry plus one (0 = free slot), one after another.
        self._slots = np.zeros(2 * slots, np.uint64)
        # Entry: the article (counted from base), and the entry before it under the same key.
        self._article = np.empty(entries, np.uint32)
        self._before = np.empty(entries, np.uint32)
        self._key = np.empty(entries, np.uint64)
        self.records: list[bytes] = []

    @property
    def room(self) -> int:
        """How many more articles fit."""
        return self.articles - self.count

    def insert(
        self,
        records: Sequence[bytes],
        seen_ms: NDArray[np.int64],
        keys: NDArray[np.uint64],
        key_starts: NDArray[np.int64],
    ) -> None:
        """Add articles; the caller has made sure that they fit."""
        if not records:
            return
        self.entries = _insert(
            self._slots,
            self._article,
            self._before,
            self._key,
            self.entries,
            self.count,
            keys,
            key_starts,
        )
        newest_ms = int(seen_ms.max())
        self.last_seen_ms = max(self.last_seen_ms, newest_ms) if self.count else newest_ms
        self.count += len(records)
        self.records.extend(records)

    def probe(self, keys: NDArray[np.uint64], most: int) -> Hits:
        """The newest entries under every key."""
        return Hits(*_probe(self._slots, self._article, self._before, keys, self.base, most))

    def keys_and_articles(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """All keys in order of arrival, and by key its article counted from base."""
        return self._key[: self.entries], self._article[: self.entries]


@compiled
def _insert(
    slots: NDArray[np.uint64],
    article: NDArray[np.uint32],
    before: NDArray[np.uint32],
    key_of: NDArray[np.uint64],
    entries: int,
    first_article: int,
    keys: NDArray[np.uint64],
    key_starts: NDArray[np.int64],
) -> int:
    mask = np.uint64(len(slots) // 2 - 1)
    one = np.uint64(1)
    end = key_starts[-1]
    for index in range(len(key_starts) - 1):
        for at in range(key_starts[index], key_starts[index + 1]):
            prefetch(slots, (keys[min(at + _AHEAD, end - 1)] & mask) << one)
            key = keys[at]
            slot = key & mask
            while slots[(slot << one) + one] != 0 and slots[slot << one] != key:
                slot = (slot + one) & mask
            slots[slot << one] = key
            article[entries] = first_article + index
            before[entries] = slots[(slot << one) + one]
            key_of[entries] = key
            entries += 1
            slots[(slot << one) + one] = entries
    return entries


@compiled
def _probe(
    slots: NDArray[np.uint64],
    article: NDArray[np.uint32],
    before: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    base: int,
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    mask = np.uint64(len(slots) // 2 - 1)
    one = np.uint64(1)
    # A free slot answers most keys.  Asked without a branch, nothing is guessed wrong, and many
    # slots are on their way from memory at a time.
    busy = np.empty(len(keys), np.int64)
    left = 0
    for at in range(len(keys)):
        busy[left] = at
        left += np.int64(slots[((keys[at] & mask) << one) + one] != 0)
    numbers = np.empty(left * most, np.int64)
    starts = np.zeros(len(keys) + 1, np.int64)
    used = 0
    for place in range(left):
        at = busy[place]
        key = keys[at]
        slot = key & mask
        while slots[(slot << one) + one] != 0 and slots[slot << one] != key:
            slot = (slot + one) & mask
        entry = np.int64(slots[(slot << one) + one])
        before_this = used
        while entry != 0 and used < before_this + most:
            numbers[used] = base + np.int64(article[entry - 1])
            entry = np.int64(before[entry - 1])
            used += 1
        starts[at + 1] = used - before_this
    for at in range(len(keys)):
        starts[at + 1] += starts[at]
    return numbers[:used].copy(), starts
