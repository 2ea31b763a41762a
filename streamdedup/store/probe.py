"""Probing the live segments: filters, then as few pages as will do.

The answer is exactly what reading the page of every hit would give (`leads` says why); only how
many pages that takes depends on the filters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamdedup.store.contract import Hits
from streamdedup.store.database import PAGES, Database
from streamdedup.store.filter import COUNTED, asked, dealt, filter_pass
from streamdedup.store.leads import beyond_full, by_key, choose_pages, told_by_leads
from streamdedup.store.page import search_pages
from streamdedup.store.segments import Geometry, LiveSegment, joined_pages, page_key

# The keys of stored articles, by number: row i is keys[starts[i]:starts[i + 1]].
KeysOfArticles = Callable[[NDArray[np.int64]], tuple[NDArray[np.uint64], NDArray[np.int64]]]

_LEAD_ROUNDS = 3  # a lead may be a false positive, or of another story than the rest


@dataclass(frozen=True)
class _Passed:
    """By hit: the place of its key, its segment (0 = newest), the entries counted; by group."""

    places: NDArray[np.int64]
    keys: NDArray[np.uint64]
    segments: NDArray[np.int64]
    counts: NDArray[np.int64]
    group_starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.keys)


class _Answers:
    """By hit, once it is answered, where its bucket lies in `numbers`."""

    def __init__(self, hits: int) -> None:
        self.known = np.zeros(hits, np.bool_)
        self.firsts = np.zeros(hits, np.int64)
        self.ends = np.zeros(hits, np.int64)
        self._parts = [np.zeros(0, np.int64)]
        self._length = 0

    @property
    def numbers(self) -> NDArray[np.int64]:
        return np.concatenate(self._parts)

    def add(
        self, hits: NDArray[np.int64], numbers: NDArray[np.int64], starts: NDArray[np.int64]
    ) -> None:
        self.known[hits] = True
        self.firsts[hits] = self._length + starts[:-1]
        self.ends[hits] = self._length + starts[1:]
        self._parts.append(numbers)
        self._length += len(numbers)


class Probe:
    """One look at the segments, oldest first; `pages_read` tells what it has cost."""

    def __init__(
        self,
        database: Database,
        segments: list[LiveSegment],
        geometry: Geometry,
        keys_of_articles: KeysOfArticles,
    ) -> None:
        self.pages_read = 0
        self._database = database
        self._newest_first = segments[::-1]
        self._geometry = geometry
        self._keys_of_articles = keys_of_articles
        # A bucket of so many entries may have been trimmed, or not be counted to its end.
        self._whole_below = min(COUNTED, geometry.bucket_entries)
        metas = [segment.meta for segment in self._newest_first]
        self._ids = np.array([meta.id for meta in metas], np.int64)
        self._bases = np.array([meta.base for meta in metas], np.int64)
        self._tier_bits = geometry.fan_bits * np.array([meta.tier for meta in metas], np.int64)

    def buckets(
        self, keys: NDArray[np.uint64], starts: NDArray[np.int64], taken: NDArray[np.int64]
    ) -> Hits:
        """What lies under the keys, newest first; article i's are keys[starts[i]:starts[i + 1]].

        `taken` tells by key how many entries of its bucket are newer than the segments.
        """
        hits = self._filtered(keys, starts)
        if len(hits) == 0:
            return Hits(np.zeros(0, np.int64), np.zeros(len(keys) + 1, np.int64))
        answers = _Answers(len(hits))
        self._recall(hits, answers, taken)
        order = np.argsort(hits.places * len(self._newest_first) + hits.segments)
        most = self._geometry.bucket_entries
        while not answers.known.all():
            unneeded, waiting = beyond_full(
                hits.places,
                order,
                hits.counts,
                answers.known,
                answers.ends - answers.firsts,
                taken,
                most,
            )
            answers.known |= unneeded
            self._ask(hits, answers, waiting)
        return Hits(
            *by_key(
                len(keys),
                hits.places,
                order,
                answers.numbers,
                answers.firsts,
                answers.ends,
                most,
            )
        )

    # -- the steps ---------------------------------------------------------------------------

    def _ask(self, hits: _Passed, answers: _Answers, waiting: NDArray[np.bool_]) -> None:
        """Answer all hits but those that may wait."""
        for round in range(_LEAD_ROUNDS + 1):
            read, leads = choose_pages(
                hits.group_starts,
                hits.counts,
                answers.known | waiting,
                self._whole_below,
                round < _LEAD_ROUNDS,
            )
            if len(read) == 0:
                return
            numbers, number_starts = self._read(hits.keys[read], hits.segments[read])
            answers.add(read, numbers, number_starts)
            if (leads >= 0).any():
                self._follow(hits, answers, leads, read, numbers, number_starts)

    def _filtered(self, keys: NDArray[np.uint64], starts: NDArray[np.int64]) -> _Passed:
        """The keys that may be in a segment, by article and segment."""
        deal = dealt(keys)
        known, first_bits = asked(keys[deal], self._geometry.unknown_bits)
        places, counts, segments = [], [], []
        for order, segment in enumerate(self._newest_first):
            passed, entries = filter_pass(segment.filter, known, first_bits)
            places.append(deal[passed])
            counts.append(entries)
            segments.append(np.full(len(passed), order, np.int64))
        nothing = np.zeros(0, np.int64)
        place = np.concatenate([nothing, *places])
        segment_of = np.concatenate([nothing, *segments])
        article = np.searchsorted(starts, place, side="right") - 1
        group = article * len(self._newest_first) + segment_of
        by_group = np.lexsort((place, group))
        place, group = place[by_group], group[by_group]
        edges = np.flatnonzero(np.diff(group, prepend=-1))
        return _Passed(
            place,
            keys[place],
            segment_of[by_group],
            np.concatenate([nothing, *counts])[by_group],
            np.append(edges, len(group)),
        )

    def _recall(self, hits: _Passed, answers: _Answers, taken: NDArray[np.int64]) -> None:
        """Answer the hits whose pages are in memory, as far as their buckets are not full."""
        entries = taken.copy()
        for order, segment in enumerate(self._newest_first):
            if segment.pages is None:
                return  # those that have them are the newest
            open_yet = entries[hits.places] < self._geometry.bucket_entries
            here = np.flatnonzero((hits.segments == order) & open_yet)
            if len(here) == 0:
                continue
            page_bits = self._geometry.page_bits  # only segments of tier 0 have pages in memory
            every = np.ones(len(here), np.int64)
            numbers, number_starts = search_pages(
                segment.pages.entries,
                segment.pages.starts,
                (hits.keys[here] >> np.uint64(64 - page_bits)).astype(np.int64),
                hits.keys[here],
                every * segment.meta.base,
                every * page_bits,
                every * 0,
                self._geometry.bucket_entries,
            )
            answers.add(here, numbers, number_starts)
            entries[hits.places[here]] += np.diff(number_starts)

    def _read(
        self, keys: NDArray[np.uint64], segments: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What the pages of these hits say."""
        tier_bits = self._tier_bits[segments]
        page_bits = self._geometry.page_bits + tier_bits
        page = (keys >> (64 - page_bits).astype(np.uint64)).astype(np.int64)
        wanted, hit_page = np.unique(self._ids[segments] << 32 | page, return_inverse=True)
        stored = self._database.get_many(
            PAGES, [page_key(code >> 32, code & 0xFFFFFFFF) for code in wanted.tolist()]
        )
        self.pages_read += len(stored)
        return search_pages(
            *joined_pages(stored),
            hit_page.reshape(-1),
            keys,
            self._bases[segments],
            page_bits,
            tier_bits,
            self._geometry.bucket_entries,
        )

    def _follow(
        self,
        hits: _Passed,
        answers: _Answers,
        leads: NDArray[np.int64],
        read: NDArray[np.int64],
        numbers: NDArray[np.int64],
        number_starts: NDArray[np.int64],
    ) -> None:
        """Answer what the articles that the leads name can tell."""
        lengths = np.diff(number_starts)
        is_lead = np.zeros(len(read), np.bool_)
        place = np.searchsorted(read, leads[leads >= 0])  # hits are read in order
        is_lead[place] = True
        named = numbers[np.repeat(is_lead, lengths)]
        if len(named) == 0:
            return
        named_starts = np.zeros(len(leads) + 1, np.int64)
        named_starts[1:][leads >= 0] = lengths[place]
        np.cumsum(named_starts, out=named_starts)
        articles, row = np.unique(named, return_inverse=True)
        answers.add(
            *told_by_leads(
                hits.group_starts,
                leads,
                hits.counts,
                answers.known,
                self._whole_below,
                hits.keys,
                named,
                named_starts,
                row.reshape(-1),
                *self._keys_of_articles(articles),
                self._geometry.unknown_bits,
            )
        )
