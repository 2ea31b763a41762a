"""The live segments: probing them, and the keys under which their pages lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamdedup.store.contract import Hits
from streamdedup.store.database import FILTERS, PAGES, Database
from streamdedup.store.filter import filter_pass
from streamdedup.store.manifest import Segment
from streamdedup.store.page import search_pages

_PAGE_ENTRIES = 512
_PAGE_KEY = struct.Struct(">II")
_ID_KEY = struct.Struct(">I")


@dataclass(frozen=True)
class Geometry:
    """How keys are cut: bits of a tier-0 page number, bits that each tier adds, entries kept."""

    page_bits: int
    fan_bits: int
    bucket_entries: int

    @staticmethod
    def of(*, head_articles: int, max_keys: int, fan_in: int, bucket_entries: int) -> Geometry:
        """The cut that settings lead to; it never changes for a directory."""
        pages = max(2, head_articles * max_keys // _PAGE_ENTRIES)
        return Geometry(
            page_bits=pages.bit_length() - 1,
            fan_bits=fan_in.bit_length() - 1,
            bucket_entries=bucket_entries,
        )

    @property
    def fan_in(self) -> int:
        """How many segments become one."""
        return 1 << self.fan_bits

    @property
    def known_shift(self) -> int:
        """A key shifted by this is what every page knows of it: page number and tail."""
        return 64 - self.page_bits - 32

    def pages(self, tier: int) -> int:
        """How many pages a segment of the tier has."""
        return 1 << self.page_bits + self.fan_bits * tier


def page_key(segment: int, page: int) -> bytes:
    """Pages of a segment lie side by side, in order."""
    return _PAGE_KEY.pack(segment, page)


def segment_key(segment: int) -> bytes:
    """Sorts before every page of the segment; also the key of its filter."""
    return _ID_KEY.pack(segment)


@dataclass(frozen=True)
class LiveSegment:
    """A segment with its filter in memory."""

    meta: Segment
    filter: NDArray[np.uint64]


def load_segment(database: Database, meta: Segment) -> LiveSegment:
    """Read the filter of a segment that the manifest names."""
    stored = database.get(FILTERS, segment_key(meta.id))
    if stored is None or len(stored) % 64:
        raise database.damaged(f"the filter of segment {meta.id} is missing")
    return LiveSegment(meta, np.frombuffer(stored, np.uint64))


def probe_segments(
    database: Database,
    segments: list[LiveSegment],
    geometry: Geometry,
    keys: NDArray[np.uint64],
) -> Hits:
    """What the segments, oldest first, hold under the keys, newest first."""
    hit_keys: list[NDArray[np.int64]] = []
    hit_segments: list[NDArray[np.int64]] = []
    newest_first = segments[::-1]
    for order, segment in enumerate(newest_first):
        passed = filter_pass(segment.filter, keys, geometry.known_shift)
        hit_keys.append(passed)
        hit_segments.append(np.full(len(passed), order, np.int64))
    key_index = np.concatenate(hit_keys) if hit_keys else np.zeros(0, np.int64)
    if len(key_index) == 0:
        return Hits(np.zeros(0, np.int64), np.zeros(len(keys) + 1, np.int64))
    order_index = np.concatenate(hit_segments)
    by_key = np.argsort(key_index, kind="stable")  # within a key the newest segment stays first
    key_index, order_index = key_index[by_key], order_index[by_key]
    tiers = np.array([segment.meta.tier for segment in newest_first], np.int64)
    bases = np.array([segment.meta.base for segment in newest_first], np.int64)
    ids = np.array([segment.meta.id for segment in newest_first], np.int64)
    tier_bits = geometry.fan_bits * tiers[order_index]
    page_bits = geometry.page_bits + tier_bits
    page = (keys[key_index] >> (64 - page_bits).astype(np.uint64)).astype(np.int64)
    wanted, hit_page = np.unique(ids[order_index] << 32 | page, return_inverse=True)
    stored = database.get_many(
        PAGES, [page_key(code >> 32, code & 0xFFFFFFFF) for code in wanted.tolist()]
    )
    pages, page_starts = joined_pages(stored)
    return Hits(
        *search_pages(
            pages,
            page_starts,
            keys,
            key_index,
            hit_page.reshape(-1),
            bases[order_index],
            page_bits,
            tier_bits,
            geometry.bucket_entries,
        )
    )


def joined_pages(
    stored: list[bytes | None],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Pages side by side; an empty page is not stored at all."""
    present = [page or b"" for page in stored]
    starts = np.zeros(len(present) + 1, np.int64)
    np.cumsum([len(page) // 8 for page in present], out=starts[1:])
    return np.frombuffer(b"".join(present), np.uint64), starts
