"""The live segments, how keys are cut in them, and the keys under which their parts lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamdedup.store.manifest import Segment

_PAGE_ENTRIES = 512
_AT_HAND = 4
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
    def unknown_bits(self) -> int:
        """How many low bits of a key no page knows: page number and tail are the others."""
        return 64 - self.page_bits - 32

    def pages(self, tier: int) -> int:
        """How many pages a segment of the tier has."""
        return 1 << self.page_bits + self.fan_bits * tier


def page_key(segment: int, page: int) -> bytes:
    """Pages of a segment lie side by side, in order; the pieces of its filter too."""
    return _PAGE_KEY.pack(segment, page)


def segment_key(segment: int) -> bytes:
    """Sorts before every page and piece of the segment, and behind all of earlier ones."""
    return _ID_KEY.pack(segment)


@dataclass(frozen=True)
class PagesAtHand:
    """All pages of a segment in memory: page p is entries[starts[p]:starts[p + 1]]."""

    entries: NDArray[np.uint64]
    starts: NDArray[np.int64]


@dataclass(frozen=True)
class LiveSegment:
    """A segment with its filter in memory; a recent one has its pages there too."""

    meta: Segment
    filter: NDArray[np.uint64]
    pages: PagesAtHand | None = None


def only_recent_at_hand(segments: list[LiveSegment]) -> list[LiveSegment]:
    """Most copies come soon after their original: the newest segments keep their pages in memory.

    Each takes some 18 MB at the default settings; older ones are read from the disk.
    """
    at_hand = [segment.meta.id for segment in segments if segment.pages is not None]
    recent = set(at_hand[-_AT_HAND:])
    return [
        segment if segment.meta.id in recent else replace(segment, pages=None)
        for segment in segments
    ]


def joined_pages(
    stored: list[bytes | None],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Pages side by side; an empty page is not stored at all."""
    present = [page or b"" for page in stored]
    starts = np.zeros(len(present) + 1, np.int64)
    np.cumsum([len(page) // 8 for page in present], out=starts[1:])
    return np.frombuffer(b"".join(present), np.uint64), starts
