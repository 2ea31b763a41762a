"""A segment's filter: a Bloom filter whose bits for one key lie in one cache line.

Eight 64-bit words a block, one bit in each word.  At 12 bits a key about one absent key in three
hundred passes; a key that is present always does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled
from streamdedup.hashing import mix

WORDS = 8  # 64-bit words a block
_SALT = np.uint64(0x9E3779B97F4A7C15)


def empty_filter(keys: int, bits_a_key: int) -> NDArray[np.uint64]:
    """Room for this many keys."""
    blocks = max(1, -(-keys * bits_a_key // (64 * WORDS)))
    return np.zeros(blocks * WORDS, np.uint64)


@compiled
def filter_add(words: NDArray[np.uint64], probes: NDArray[np.uint64]) -> None:
    """Add the known bits of keys (see `page.known_bits`)."""
    blocks = np.uint64(len(words) // WORDS)
    for probe in probes:
        spread = mix(probe + _SALT)
        block = np.int64(((spread >> np.uint64(32)) * blocks) >> np.uint64(32)) * WORDS
        bits = mix(spread)
        for word in range(WORDS):
            words[block + word] |= np.uint64(1) << (bits & np.uint64(63))
            bits >>= np.uint64(6)


@compiled
def filter_pass(
    words: NDArray[np.uint64], keys: NDArray[np.uint64], shift: int
) -> NDArray[np.int64]:
    """Places of the keys that may be present; `shift` cuts a key to its known bits."""
    blocks = np.uint64(len(words) // WORDS)
    passed = np.empty(len(keys), np.int64)
    count = 0
    for at in range(len(keys)):
        spread = mix((keys[at] >> np.uint64(shift)) + _SALT)
        block = np.int64(((spread >> np.uint64(32)) * blocks) >> np.uint64(32)) * WORDS
        bits = mix(spread)
        there = True
        for word in range(WORDS):
            if (words[block + word] >> (bits & np.uint64(63))) & np.uint64(1) == 0:
                there = False
                break
            bits >>= np.uint64(6)
        passed[count] = at
        count += there
    return passed[:count].copy()
