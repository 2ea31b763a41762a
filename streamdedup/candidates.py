"""From bucket hits to candidate pairs, compiled: who shares enough keys of one kind with whom.

Articles of the batch see each other here exactly as if each had been stored before the next was
probed, so how a stream is cut into batches never shows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled

ALL_KINDS = 8  # a candidate's number and the kind of the shared key lie in one integer


@compiled
def find_candidates(
    keys: NDArray[np.uint64],
    kinds: NDArray[np.uint8],
    key_starts: NDArray[np.int64],
    hit_numbers: NDArray[np.int64],
    hit_starts: NDArray[np.int64],
    judged: NDArray[np.bool_],
    enters: NDArray[np.bool_],
    first_number: int,
    needed: NDArray[np.int64],
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Pairs (article of the batch, number of an earlier one) that share enough keys of a kind,
    and how many entries full buckets lost.

    `judged` says which articles want candidates, `enters` which of them go into the index and so
    take a number from `first_number` on.
    """
    articles = len(key_starts) - 1
    size = 16
    while size < 2 * len(keys):
        size *= 2
    last = np.uint64(size - 1)
    # The batch's own buckets: slot → newest entry plus one; entry → article number, entry before.
    slot_key = np.empty(size, np.uint64)
    slot_entry = np.zeros(size, np.int32)
    entry_number = np.empty(len(keys), np.int64)
    entry_before = np.empty(len(keys), np.int32)
    entries = 0
    capacity = 1024
    pair_article = np.empty(capacity, np.int64)
    pair_number = np.empty(capacity, np.int64)
    pairs = 0
    seen = np.empty(1024, np.int64)
    cut = 0
    number = first_number
    for article in range(articles):
        if not judged[article]:
            continue
        first_key, end_key = key_starts[article], key_starts[article + 1]
        if (end_key - first_key) * most > len(seen):
            seen = np.empty((end_key - first_key) * most, np.int64)
        found = 0
        for at in range(first_key, end_key):
            key = keys[at]
            slot = key & last
            while slot_entry[slot] != 0 and slot_key[slot] != key:
                slot = (slot + np.uint64(1)) & last
            taken = 0
            entry = slot_entry[slot]
            while entry != 0 and taken < most:
                seen[found] = entry_number[entry - 1] << 3 | kinds[at]
                found += 1
                taken += 1
                entry = entry_before[entry - 1]
            for hit in range(hit_starts[at], hit_starts[at + 1]):
                if taken == most:
                    break
                seen[found] = hit_numbers[hit] << 3 | kinds[at]
                found += 1
                taken += 1
            if enters[article]:
                cut += taken == most
                slot_key[slot] = key
                entry_number[entries] = number
                entry_before[entries] = slot_entry[slot]
                entries += 1
                slot_entry[slot] = entries
        own = number if enters[article] else -1
        number += enters[article]
        if found == 0:
            continue
        _sort_small(seen, found)
        at = 0
        while at < found:
            other = seen[at] >> 3
            enough = False
            while at < found and seen[at] >> 3 == other:
                code = seen[at]
                shared = 0
                while at < found and seen[at] == code:
                    shared += 1
                    at += 1
                enough |= shared >= needed[code & 7]
            if not enough or other == own:
                continue  # a key that an article has twice is no second article
            if pairs == capacity:
                capacity *= 2
                pair_article = _grown(pair_article, capacity)
                pair_number = _grown(pair_number, capacity)
            pair_article[pairs] = article
            pair_number[pairs] = other
            pairs += 1
    return pair_article[:pairs].copy(), pair_number[:pairs].copy(), cut


@compiled
def _sort_small(values: NDArray[np.int64], count: int) -> None:
    if count > 64:
        values[:count].sort()
        return
    for index in range(1, count):
        value = values[index]
        place = index
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@compiled
def _grown(values: NDArray[np.int64], capacity: int) -> NDArray[np.int64]:
    grown = np.empty(capacity, values.dtype)
    grown[: len(values)] = values
    return grown


@compiled
def choose(
    articles: int,
    pair_article: NDArray[np.int64],
    pair_number: NDArray[np.int64],
    similarity: NDArray[np.float64],
    rank: NDArray[np.int8],
) -> NDArray[np.int64]:
    """By article its best pair, or -1: highest similarity, then higher rank, then earliest.

    A rank below zero is no match.
    """
    best = np.full(articles, -1, np.int64)
    for pair in range(len(pair_article)):
        if rank[pair] < 0:
            continue
        article = pair_article[pair]
        rival = best[article]
        if rival >= 0:
            if similarity[pair] < similarity[rival]:
                continue
            if similarity[pair] == similarity[rival]:
                if rank[pair] < rank[rival]:
                    continue
                if rank[pair] == rank[rival] and pair_number[pair] >= pair_number[rival]:
                    continue
        best[article] = pair
    return best


@compiled
def find_same_key(
    which: int,
    hit_numbers: NDArray[np.int64],
    hit_starts: NDArray[np.int64],
    key_starts: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """What is stored under the article's key at place `which`: article, rank from the newest,
    number."""
    articles = len(key_starts) - 1
    total = 0
    for article in range(articles):
        at = key_starts[article] + which
        total += hit_starts[at + 1] - hit_starts[at]
    pair_article = np.empty(total, np.int64)
    pair_rank = np.empty(total, np.int64)
    pair_number = np.empty(total, np.int64)
    pairs = 0
    for article in range(articles):
        at = key_starts[article] + which
        for hit in range(hit_starts[at], hit_starts[at + 1]):
            pair_article[pairs] = article
            pair_rank[pairs] = hit - hit_starts[at]
            pair_number[pairs] = hit_numbers[hit]
            pairs += 1
    return pair_article, pair_rank, pair_number
