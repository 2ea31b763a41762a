"""Pages: a stretch of the key space of one segment as sorted 64-bit entries, compiled.

An entry is 32 key bits (the tail) above a 32-bit article number counted from the segment's base.
A page of tier t covers `fan_bits * t` more key bits by its number than one of tier 0 and so knows
as many bits less of the tail: those low bits are zero, and a search masks them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled

_32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@compiled
def partition(
    keys: NDArray[np.uint64], articles: NDArray[np.uint32], page_bits: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Entries dealt into pages by the top bits of their keys; page p is out[starts[p]:…]."""
    pages = 1 << page_bits
    starts = np.zeros(pages + 1, np.int64)
    down = np.uint64(64 - page_bits)
    for key in keys:
        starts[np.int64(key >> down) + 1] += 1
    for page in range(pages):
        starts[page + 1] += starts[page]
    place = starts[:-1].copy()
    out = np.empty(len(keys), np.uint64)
    for at in range(len(keys)):
        page = np.int64(keys[at] >> down)
        tail = (keys[at] << np.uint64(page_bits)) >> _32
        out[place[page]] = tail << _32 | np.uint64(articles[at])
        place[page] += 1
    return out, starts


@compiled
def trimmed(entries: NDArray[np.uint64], most: int) -> NDArray[np.uint64]:
    """Sorted entries with only the newest `most` of every tail."""
    out = np.empty(len(entries), np.uint64)
    used = 0
    first = 0
    while first < len(entries):
        last = first
        tail = entries[first] >> _32
        while last < len(entries) and entries[last] >> _32 == tail:
            last += 1
        for at in range(max(first, last - most), last):
            out[used] = entries[at]
            used += 1
        first = last
    return out[:used].copy()


@compiled
def freeze_page(entries: NDArray[np.uint64], most: int) -> NDArray[np.uint64]:
    """A page of a new segment from its unsorted entries."""
    ordered = entries.copy()
    ordered.sort()
    return trimmed(ordered, most)


@compiled
def merge_pages(
    entries: NDArray[np.uint64],
    starts: NDArray[np.int64],
    rebase: NDArray[np.uint64],
    fan_bits: int,
    most: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The same page of several segments, oldest first, as the pages of the merged segment.

    `rebase` is by how much each segment's article numbers move.
    """
    children = 1 << fan_bits
    count = len(entries)
    child_of = np.empty(count, np.int64)
    moved = np.empty(count, np.uint64)
    child_starts = np.zeros(children + 1, np.int64)
    for source in range(len(starts) - 1):
        for at in range(starts[source], starts[source + 1]):
            tail = entries[at] >> _32
            child = np.int64(tail >> np.uint64(32 - fan_bits))
            tail = (tail << np.uint64(fan_bits)) & _LOW
            moved[at] = tail << _32 | ((entries[at] & _LOW) + rebase[source])
            child_of[at] = child
            child_starts[child + 1] += 1
    for child in range(children):
        child_starts[child + 1] += child_starts[child]
    place = child_starts[:-1].copy()
    dealt = np.empty(count, np.uint64)
    for at in range(count):
        dealt[place[child_of[at]]] = moved[at]
        place[child_of[at]] += 1
    out = np.empty(count, np.uint64)
    out_starts = np.zeros(children + 1, np.int64)
    used = 0
    for child in range(children):
        part = dealt[child_starts[child] : child_starts[child + 1]]
        part.sort()
        kept = trimmed(part, most)
        out[used : used + len(kept)] = kept
        used += len(kept)
        out_starts[child + 1] = used
    return out[:used].copy(), out_starts


@compiled
def keys_of(
    entries: NDArray[np.uint64], page: int, tier_bits: int, shift: int
) -> NDArray[np.uint64]:
    """The keys of a page's entries as far as it knows them; their low `shift` bits are zero."""
    out = np.empty(len(entries), np.uint64)
    top = np.uint64(page) << _32
    for at in range(len(entries)):
        known = (top | entries[at] >> _32) >> np.uint64(tier_bits)
        out[at] = known << np.uint64(shift)
    return out


@compiled
def search_pages(
    pages: NDArray[np.uint64],
    page_starts: NDArray[np.int64],
    hit_page: NDArray[np.int64],
    hit_key: NDArray[np.uint64],
    hit_base: NDArray[np.int64],
    hit_page_bits: NDArray[np.int64],
    hit_tier_bits: NDArray[np.int64],
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """By hit (a key in a page) the article numbers, newest first: out[starts[hit]:…]."""
    numbers = np.empty(len(hit_key) * most, np.int64)
    starts = np.zeros(len(hit_key) + 1, np.int64)
    used = 0
    for hit in range(len(hit_key)):
        tail = (hit_key[hit] << np.uint64(hit_page_bits[hit])) >> _32
        tail = (tail >> np.uint64(hit_tier_bits[hit])) << np.uint64(hit_tier_bits[hit])
        low, high = page_starts[hit_page[hit]], page_starts[hit_page[hit] + 1]
        first = low
        while low < high:  # the first entry with a greater tail
            middle = (low + high) // 2
            if pages[middle] >> _32 <= tail:
                low = middle + 1
            else:
                high = middle
        at = low - 1
        while at >= first and pages[at] >> _32 == tail and used - starts[hit] < most:
            numbers[used] = hit_base[hit] + np.int64(pages[at] & _LOW)
            used += 1
            at -= 1
        starts[hit + 1] = used
    return numbers[:used].copy(), starts
