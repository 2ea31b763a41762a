"""The head: the newest articles' keys in an open-addressing table in memory.

It holds a fixed count of articles, so that where one head ends and the next begins is a function
of the article number alone.  A full head becomes a segment and stays readable meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled, inlined
from streamdedup.machine import prefetch
from streamdedup.store.contract import Hits

_KEY_HALF = np.uint64(0xFFFF_FFFF_0000_0000)
_ENTRY = np.uint64(0xFFFF_FFFF)
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
        # Slot: half of a key, and the number of the key's newest entry plus one (0 = free slot).
        # Small, because the first articles of a head touch all of it.
        self._slots = np.zeros(slots, np.uint64)
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
        return Hits(
            *_probe(self._slots, self._article, self._before, self._key, keys, self.base, most)
        )

    def keys_and_articles(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """All keys in order of arrival, and by key its article counted from base."""
        return self._key[: self.entries], self._article[: self.entries]


@inlined
def _slot_of(key: np.uint64, slots: NDArray[np.uint64], key_of: NDArray[np.uint64]) -> np.uint64:
    """The slot that has the key, or the free one in which its search ends."""
    mask = np.uint64(len(slots) - 1)
    slot = key & mask
    while True:
        found = slots[slot]
        if found == 0 or (
            (found ^ key) & _KEY_HALF == 0 and key_of[(found & _ENTRY) - np.uint64(1)] == key
        ):
            return slot
        slot = (slot + np.uint64(1)) & mask


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
    mask = np.uint64(len(slots) - 1)
    end = key_starts[-1]
    for index in range(len(key_starts) - 1):
        for at in range(key_starts[index], key_starts[index + 1]):
            prefetch(slots, keys[min(at + _AHEAD, end - 1)] & mask)
            key = keys[at]
            slot = _slot_of(key, slots, key_of)
            article[entries] = first_article + index
            before[entries] = slots[slot] & _ENTRY
            key_of[entries] = key
            entries += 1
            slots[slot] = (key & _KEY_HALF) | np.uint64(entries)
    return entries


@compiled
def _probe(
    slots: NDArray[np.uint64],
    article: NDArray[np.uint32],
    before: NDArray[np.uint32],
    key_of: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    base: int,
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    mask = np.uint64(len(slots) - 1)
    # A free slot answers most keys.  Asked without a branch, nothing is guessed wrong, and many
    # slots are on their way from memory at a time.
    busy = np.empty(len(keys), np.int64)
    left = 0
    for at in range(len(keys)):
        busy[left] = at
        left += np.int64(slots[keys[at] & mask] != 0)
    numbers = np.empty(left * most, np.int64)
    starts = np.zeros(len(keys) + 1, np.int64)
    used = 0
    for place in range(left):
        at = busy[place]
        entry = np.int64(slots[_slot_of(keys[at], slots, key_of)] & _ENTRY)
        first = used
        while entry != 0 and used < first + most:
            numbers[used] = base + np.int64(article[entry - 1])
            entry = np.int64(before[entry - 1])
            used += 1
        starts[at + 1] = used - first
    for at in range(len(keys)):
        starts[at + 1] += starts[at]
    return numbers[:used].copy(), starts
