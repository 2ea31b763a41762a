"""Filters on disk, in pieces: no write has to hold a whole one, and no read holds it twice.

The filter of a large segment takes hundreds of megabytes.  A build adds keys in their order, so the
blocks behind it never change again: it stores them as it goes, beside the pages of the same keys.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.store.database import FILTERS, Batch, Database
from streamdedup.store.filter import WORDS
from streamdedup.store.manifest import Segment
from streamdedup.store.segments import LiveSegment, page_key

PIECE_BLOCKS = 4_096  # 256 KiB: the filter's share of a thousand articles is about two


def put_pieces(batch: Batch, id: int, words: NDArray[np.uint64], stored: int, final: int) -> int:
    """Store the pieces behind the first `stored` ones that lie within `final` blocks.

    Returns how many are stored then.  The last piece ends where the filter does.
    """
    size = PIECE_BLOCKS * WORDS
    while (first := stored * size) < len(words):
        end = min(first + size, len(words))
        if end > final * WORDS:
            break
        batch.put(FILTERS, page_key(id, stored), words[first:end].tobytes())
        stored += 1
    return stored


def load_segment(database: Database, meta: Segment) -> LiveSegment:
    """Read the filter of a segment that the manifest names."""
    words = np.empty(meta.blocks * WORDS, np.uint64)
    read = piece = 0
    while read < len(words):
        stored = database.get(FILTERS, page_key(meta.id, piece)) or b""
        end = read + len(stored) // 8
        # A piece may have any length (the size is the writer's choice), but none may lack a block:
        # then the manifest's count is not reached by the last.
        if not stored or len(stored) % (8 * WORDS) or end > len(words):
            raise database.damaged(f"the filter of segment {meta.id} has lost a part")
        words[read:end] = np.frombuffer(stored, np.uint64)
        read, piece = end, piece + 1
    return LiveSegment(meta, words)
