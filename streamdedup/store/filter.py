"""A segment's filter: for every key, how many entries its bucket holds in the segment at most.

A Bloom filter whose bits for one key lie in one cache line: eight 64-bit words a block, one bit in
each word.  Keys are hashes, so the top bits of a key choose its block: pages are added in order of
their keys and walk through the filter from end to end.  The second entry of a bucket is added as
the key's second self, the third as its third, up to `COUNTED`.  At 16 bits an entry about one
absent key in a thousand passes; no count is ever too small.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled, inlined
from streamdedup.hashing import mix

WORDS = 8  # 64-bit words a block
COUNTED = 8  # a count of so many means "so many or more"
_SALT = np.uint64(0x9E3779B97F4A7C15)
_32 = np.uint64(32)


def empty_filter(keys: int, bits_a_key: int) -> NDArray[np.uint64]:
    """Room for this many keys."""
    blocks = max(1, -(-keys * bits_a_key // (64 * WORDS)))
    return np.zeros(blocks * WORDS, np.uint64)


@compiled
def filter_add(words: NDArray[np.uint64], keys: NDArray[np.uint64]) -> None:
    """Add the keys of a page, whose unknown bits are zero (see `page.keys_of`), in order."""
    blocks = np.uint64(len(words) // WORDS)
    entry = 0
    for at in range(len(keys)):
        key = keys[at]
        entry = entry + 1 if at > 0 and keys[at - 1] == key else 1
        if entry > COUNTED:
            continue
        block = np.int64(((key >> _32) * blocks) >> _32) * WORDS
        bits = mix(key + np.uint64(entry) * _SALT)
        for word in range(WORDS):
            words[block + word] |= np.uint64(1) << (bits & np.uint64(63))
            bits >>= np.uint64(6)


@compiled
def asked(keys: NDArray[np.uint64], shift: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The keys as filters know them, without their low `shift` bits, and the bits of each that
    every filter is asked for first."""
    unknown = np.uint64(shift)
    known = np.empty(len(keys), np.uint64)
    bits = np.empty(len(keys), np.uint64)
    for at in range(len(keys)):
        known[at] = (keys[at] >> unknown) << unknown
        bits[at] = mix(known[at] + _SALT)
    return known, bits


@compiled
def filter_pass(
    words: NDArray[np.uint64], keys: NDArray[np.uint64], first_bits: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of the keys (see `asked`) that may be present, and how many entries each has at
    most."""
    blocks = np.uint64(len(words) // WORDS)
    one, six = np.uint64(1), np.uint64(6)
    passed = np.empty(len(keys), np.int64)
    # Two words of each without a branch: nothing to guess wrong, so many blocks are fetched from
    # memory at a time.  One key in seven is left.
    left = 0
    for at in range(len(keys)):
        block = np.int64(((keys[at] >> _32) * blocks) >> _32) * WORDS
        bits = first_bits[at]
        there = (words[block] >> (bits & np.uint64(63))) & one
        there &= words[block + 1] >> ((bits >> six) & np.uint64(63))
        passed[left] = at
        left += np.int64(there)
    counts = np.empty(left, np.int64)
    used = 0
    for place in range(left):
        at = passed[place]
        block = np.int64(((keys[at] >> _32) * blocks) >> _32) * WORDS
        bits = first_bits[at]
        entries = 0
        while entries < COUNTED and _all_set(words[block : block + WORDS], bits):
            entries += 1
            bits = mix(keys[at] + np.uint64(entries + 1) * _SALT)
        passed[used] = at
        counts[used] = entries
        used += entries > 0
    return passed[:used].copy(), counts[:used].copy()


@inlined
def _all_set(block: NDArray[np.uint64], bits: np.uint64) -> bool:
    """Whether every word of the block has the bit that is its own."""
    for word in range(WORDS):
        if (block[word] >> (bits & np.uint64(63))) & np.uint64(1) == 0:
            return False
        bits >>= np.uint64(6)
    return True


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
