"""The hash functions of text: fixed for ever, because their values lie in every index.

Words hash code point by code point; shingles hash from the hashes of their words.  Golden
vectors in the tests hold them still.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import inlined

HASH_VERSION = 1

WORD_PERIOD_BITS = 5
WORD_PERIOD = 1 << WORD_PERIOD_BITS


def _factors() -> NDArray[np.uint64]:
    """Odd random factors, one a place in a word (splitmix64 from a fixed start)."""
    factors = []
    state = 0x5EED_0F_57_0D_DE_D0
    for _ in range(WORD_PERIOD):
        state = (state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        factors.append((z ^ (z >> 31)) | 1)
    return np.array(factors, np.uint64)


# A word's hash is the sum of its code points times the factor of their place: the sums of a
# multilinear family, and no multiplication waits for the one before.
WORD_FACTORS = _factors()
SHINGLE_START = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_33 = np.uint64(33)
_29 = np.uint64(29)
_STRETCH = np.uint64(0x2545F4914F6CDD1E)  # even, so that the factors stay odd


@inlined
def mix(value: np.uint64) -> np.uint64:
    """Spread every bit of the value over all 64 (the finaliser of MurmurHash3)."""
    value = np.uint64(value)
    value ^= value >> _33
    value *= MIX_1
    value ^= value >> _33
    value *= MIX_2
    value ^= value >> _33
    return value


@inlined
def fold_in(state: np.uint64, part: np.uint64) -> np.uint64:
    """One step of a running hash over 64-bit parts; order matters."""
    state = (np.uint64(state) ^ np.uint64(part)) * MIX_1
    return state ^ (state >> _29)


@inlined
def extend_word(state: np.uint64, length: int, point: np.uint64) -> np.uint64:
    """The running hash of a word after one more code point at place `length`."""
    # Every further stretch of a long word has its own factors.
    stretch = np.uint64(length >> WORD_PERIOD_BITS) * _STRETCH
    factor = WORD_FACTORS[length & (WORD_PERIOD - 1)] + stretch
    return np.uint64(state) + point * factor
