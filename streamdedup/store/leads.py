"""Which pages to read, and what can be told without reading, compiled.

Hits are keys that passed a segment's filter, in groups: the hits of one article in one segment.
A near-duplicate has many, and nearly all lead to the same few articles.  So the page of one hit,
the lead, is read; the keys of the articles that it names are made again from their records; and a
bucket is known as soon as as many of its entries are known as the filter has counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled


@compiled
def choose_pages(
    group_starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    answered: NDArray[np.bool_],
    whole_below: int,
    may_lead: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The hits whose pages are to be read now, and by group its lead (-1: none).

    A bucket counted at `whole_below` or more may have lost entries, or be bigger than counted:
    its page must be read.  A lead of n entries costs a page and n records, so it must be able to
    spare more pages than that; of several the one that names most articles tells most.
    """
    groups = len(group_starts) - 1
    read = np.empty(len(counts), np.int64)
    leads = np.full(groups, -1, np.int64)
    used = 0
    for group in range(groups):
        first, end = group_starts[group], group_starts[group + 1]
        countable = 0
        for hit in range(first, end):
            countable += not answered[hit] and counts[hit] < whole_below
        lead = -1
        for hit in range(first, end):
            if not may_lead or answered[hit] or counts[hit] >= whole_below:
                continue
            if counts[hit] + 2 <= countable and (lead < 0 or counts[hit] > counts[lead]):
                lead = hit
        leads[group] = lead
        for hit in range(first, end):
            if answered[hit]:
                continue
            if lead < 0 or hit == lead or counts[hit] >= whole_below:
                read[used] = hit
                used += 1
    return read[:used].copy(), leads


@compiled
def told_by_leads(
    group_starts: NDArray[np.int64],
    leads: NDArray[np.int64],
    counts: NDArray[np.int64],
    answered: NDArray[np.bool_],
    whole_below: int,
    hit_keys: NDArray[np.uint64],
    named: NDArray[np.int64],
    named_starts: NDArray[np.int64],
    article_row: NDArray[np.int64],
    article_keys: NDArray[np.uint64],
    article_starts: NDArray[np.int64],
    unknown_bits: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The hits that need no page any more, and their buckets, newest first.

    `named[named_starts[group]:…]` are the articles in the bucket of the group's lead, newest
    first; the keys of the article named at place p are those of row `article_row[p]`.
    """
    unknown = np.uint64(unknown_bits)
    told = np.empty(len(counts), np.int64)
    numbers = np.empty(len(counts) * whole_below, np.int64)
    starts = np.zeros(len(counts) + 1, np.int64)
    used = 0
    for group in range(len(leads)):
        first, end = named_starts[group], named_starts[group + 1]
        if first == end:
            continue
        for hit in range(group_starts[group], group_starts[group + 1]):
            if answered[hit] or counts[hit] >= whole_below:
                continue
            key = hit_keys[hit] >> unknown
            at = starts[used]
            most = at + counts[hit]
            for place in range(first, end):
                if place > first and named[place] == named[place - 1]:
                    continue  # an article that has the lead's key twice
                row = article_row[place]
                for own in range(article_starts[row], article_starts[row + 1]):
                    if article_keys[own] >> unknown == key and at < most:
                        numbers[at] = named[place]
                        at += 1
            if at == most:
                told[used] = hit
                starts[used + 1] = at
                used += 1
    return told[:used].copy(), numbers[: starts[used]].copy(), starts[: used + 1].copy()


@compiled
def beyond_full(
    hit_key: NDArray[np.int64],
    order: NDArray[np.int64],
    counts: NDArray[np.int64],
    answered: NDArray[np.bool_],
    lengths: NDArray[np.int64],
    taken: NDArray[np.int64],
    most: int,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The hits that are not needed, and those that will hardly be.

    A bucket gives its `most` newest entries.  Key k has `taken[k]` newer than any segment; where
    the newer segments have told the rest, the older ones need not be asked.  Where their counts
    promise as much, asking can wait until they have told.  `order` is that of `by_key`.
    """
    unneeded = np.zeros(len(hit_key), np.bool_)
    waiting = np.zeros(len(hit_key), np.bool_)
    key, entries, all_told = -1, 0, True
    for hit in order:
        if hit_key[hit] != key:
            key = hit_key[hit]
            entries, all_told = taken[key], True
        if answered[hit]:
            entries += lengths[hit]
        elif entries < most:
            entries += counts[hit]
            all_told = False
        elif all_told:
            unneeded[hit] = True
        else:
            waiting[hit] = True
    return unneeded, waiting


@compiled
def by_key(
    keys: int,
    hit_key: NDArray[np.int64],
    order: NDArray[np.int64],
    numbers: NDArray[np.int64],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Buckets by key; `order` has the hits sorted by key, then newest segment first."""
    total = 0
    for hit in range(len(hit_key)):
        total += ends[hit] - firsts[hit]
    out = np.empty(total, np.int64)
    starts = np.zeros(keys + 1, np.int64)
    used = 0
    at = 0
    for key in range(keys):
        first = used
        while at < len(order) and hit_key[order[at]] == key:
            hit = order[at]
            for place in range(firsts[hit], ends[hit]):
                if used - first < most:
                    out[used] = numbers[place]
                    used += 1
            at += 1
        starts[key + 1] = used
    return out[:used].copy(), starts
