"""Making a segment in small steps, out of a full head or out of several smaller segments.

A build writes pages and its filter under a new segment id that no manifest names yet; the index
makes the swap with one last write.  A build that a crash cuts off leaves orphans, which the next
open deletes.  A step whose write fails has changed nothing and may be done again.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamdedup.store.database import PAGES, Database
from streamdedup.store.filter import WORDS, empty_filter, filter_add
from streamdedup.store.head import Head
from streamdedup.store.manifest import Segment
from streamdedup.store.page import freeze_page, keys_of, merge_pages, partition
from streamdedup.store.pieces import put_pieces
from streamdedup.store.segments import Geometry, LiveSegment, PagesAtHand, joined_pages, page_key

Pages = list[tuple[int, NDArray[np.uint64]]]


class Material(Protocol):
    """What a segment is made of."""

    @property
    def tier(self) -> int:
        """The tier of the segment that comes out."""

    @property
    def steps(self) -> int:
        """How many steps it takes: each makes as large a part of the key space, in order."""

    @property
    def most_entries(self) -> int:
        """The result has no more entries than this."""

    def pages(self, step: int) -> Pages:
        """The pages that one step makes: page number and entries."""

    def segment(self, id: int, entries: int, blocks: int) -> Segment:
        """The segment that comes out."""


class FullHead:
    """A full head becomes a segment of tier 0, a page a step."""

    tier = 0

    def __init__(self, head: Head, geometry: Geometry) -> None:
        self.head = head
        self.steps = geometry.pages(0)
        self.most_entries = head.entries
        self._most = geometry.bucket_entries
        self._entries, self._starts = partition(*head.keys_and_articles(), geometry.page_bits)

    def pages(self, step: int) -> Pages:
        """Sort one page."""
        part = self._entries[self._starts[step] : self._starts[step + 1]]
        return [(step, freeze_page(part, self._most))]

    def segment(self, id: int, entries: int, blocks: int) -> Segment:
        """Covers the head's articles."""
        return Segment(
            id=id,
            tier=0,
            base=self.head.base,
            count=self.head.count,
            entries=entries,
            blocks=blocks,
            last_seen_ms=self.head.last_seen_ms,
        )


class Neighbours:
    """Neighbouring segments of one tier become one of the next, one page of each a step."""

    def __init__(self, database: Database, segments: list[LiveSegment], geometry: Geometry) -> None:
        self.segments = [segment.meta for segment in segments]
        self.tier = self.segments[0].tier + 1
        self.steps = geometry.pages(self.tier - 1)
        self.most_entries = sum(segment.entries for segment in self.segments)
        self._database = database
        self._geometry = geometry
        base = self.segments[0].base
        self._rebase = np.array([segment.base - base for segment in self.segments], np.uint64)

    def pages(self, step: int) -> Pages:
        """Merge one page of every segment into the pages below it."""
        stored = self._database.get_many(
            PAGES, [page_key(segment.id, step) for segment in self.segments]
        )
        merged, ends = merge_pages(
            *joined_pages(stored),
            self._rebase,
            self._geometry.fan_bits,
            self._geometry.bucket_entries,
        )
        first = step << self._geometry.fan_bits
        return [
            (first + child, merged[ends[child] : ends[child + 1]])
            for child in range(self._geometry.fan_in)
        ]

    def segment(self, id: int, entries: int, blocks: int) -> Segment:
        """Covers the articles of all of them."""
        return Segment(
            id=id,
            tier=self.tier,
            base=self.segments[0].base,
            count=sum(segment.count for segment in self.segments),
            entries=entries,
            blocks=blocks,
            last_seen_ms=max(segment.last_seen_ms for segment in self.segments),
        )


class Build:
    """A segment in the making."""

    def __init__(
        self,
        database: Database,
        geometry: Geometry,
        id: int,
        material: Material,
        filter_bits: int,
    ) -> None:
        self.id = id
        self.material = material
        # The system gives it memory only as the build comes by.
        self.filter = empty_filter(material.most_entries, filter_bits)
        self._blocks = len(self.filter) // WORDS
        self._database = database
        self._tier_bits = geometry.fan_bits * material.tier
        self._unknown_bits = geometry.unknown_bits
        self._done = 0
        self._entries = 0
        self._pieces = 0
        self._small = material.tier == 0
        self._at_hand: list[NDArray[np.uint64]] = []

    def advance(self, steps: int) -> bool:
        """Do so many steps as one write; True when pages and filter are written."""
        end = min(self._done + steps, self.material.steps)
        entries = self._entries
        made: list[NDArray[np.uint64]] = []
        batch = self._database.batch()
        for step in range(self._done, end):
            for page, content in self.material.pages(step):
                made.append(content)
                if len(content) == 0:
                    continue
                batch.put(PAGES, page_key(self.id, page), content.tobytes())
                # Adding the same key twice, after a failed write, changes nothing.
                filter_add(self.filter, keys_of(content, page, self._tier_bits, self._unknown_bits))
                entries += len(content)
        # The top bits of a key choose its page and its block alike: with this share of the pages
        # done, no key to come has a block in the same share of the filter.
        final = end * self._blocks // self.material.steps
        pieces = put_pieces(batch, self.id, self.filter, self._pieces, final)
        self._database.write(batch)
        self._done, self._entries, self._pieces = end, entries, pieces
        if self._small:
            self._at_hand += made
        return end == self.material.steps

    def result(self) -> LiveSegment:
        """The segment, once `advance` has said that it is whole."""
        meta = self.material.segment(self.id, self._entries, self._blocks)
        return LiveSegment(meta, self.filter, self._pages_at_hand())

    def _pages_at_hand(self) -> PagesAtHand | None:
        if not self._small:
            return None
        starts = np.zeros(len(self._at_hand) + 1, np.int64)
        np.cumsum([len(page) for page in self._at_hand], out=starts[1:])
        return PagesAtHand(np.concatenate(self._at_hand), starts)
