"""A segment's filter: a Bloom filter whose bits for one key lie in one cache line.

Eight 64-bit words a block, one bit in each word.  Keys are hashes, so the top bits of a key choose
its block: pages are added in order of their keys and walk through the filter from end to end.  At
12 bits a key about one absent key in two hundred and fifty passes; a key that is present always
does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled
from streamdedup.hashing import mix

WORDS = 8  # 64-bit words a block
_SALT = np.uint64(0x9E3779B97F4A7C15)
_32 = np.uint64(32)


def empty_filter(keys: int, bits_a_key: int) -> NDArray[np.uint64]:
    """Room for this many keys."""
    blocks = max(1, -(-keys * bits_a_key // (64 * WORDS)))
    return np.zeros(blocks * WORDS, np.uint64)


@compiled
def filter_add(words: NDArray[np.uint64], keys: NDArray[np.uint64]) -> None:
    """Add keys whose unknown bits are zero (see `page.keys_of`)."""
    blocks = np.uint64(len(words) // WORDS)
    for key in keys:
        block = np.int64(((key >> _32) * blocks) >> _32) * WORDS
        bits = mix(key + _SALT)
        for word in range(WORDS):
            words[block + word] |= np.uint64(1) << (bits & np.uint64(63))
            bits >>= np.uint64(6)


@compiled
def filter_pass(
    words: NDArray[np.uint64], keys: NDArray[np.uint64], shift: int
) -> NDArray[np.int64]:
    """Places of the keys that may be present; the low `shift` bits of a key are unknown."""
    blocks = np.uint64(len(words) // WORDS)
    unknown = np.uint64(shift)
    passed = np.empty(len(keys), np.int64)
    count = 0
    for at in range(len(keys)):
        key = (keys[at] >> unknown) << unknown
        block = np.int64(((key >> _32) * blocks) >> _32) * WORDS
        bits = mix(key + _SALT)
        there = True
        for word in range(WORDS):
            if (words[block + word] >> (bits & np.uint64(63))) & np.uint64(1) == 0:
                there = False
                break
            bits >>= np.uint64(6)
        passed[count] = at
        count += there
    return passed[:count].copy()


@compiled
def dealt(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Places of the keys by their top eight bits: neighbours test neighbouring blocks."""
    down = np.uint64(56)
    starts = np.zeros(257, np.int64)
    for key in keys:
        starts[np.int64(key >> down) + 1] += 1
    for top in range(256):
        starts[top + 1] += starts[top]
    out = np.empty(len(keys), np.int64)
    for at in range(len(keys)):
        top = np.int64(keys[at] >> down)
        out[starts[top]] = at
        starts[top] += 1
    return out
