"""Min-hash signatures and bucket keys, compiled, a pure function of the shingle set.

The hash family is h(x) = a·x + b modulo 2^32 with a odd: a permutation of the 32-bit shingle
hashes, eight or sixteen of them a machine instruction.  The factors come from a fixed, versioned
seed; golden vectors in the tests hold them still.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled
from streamdedup.hashing import fold_in, mix

FAMILY_VERSION = 2
_SEED = 20_260_302

BAND_KIND = np.uint64(0xBA2D)
CROP_KIND = np.uint64(0xC209)


def hash_family(count: int) -> NDArray[np.uint32]:
    """Row i holds the factor and the summand of hash function i; a longer family only adds."""
    words = np.random.Generator(np.random.PCG64(_SEED)).integers(
        0, 1 << 32, size=(count, 2), dtype=np.uint32
    )
    words[:, 0] |= np.uint32(1)
    return np.ascontiguousarray(words)


@compiled
def signature(
    shingles: NDArray[np.uint32],
    factors: NDArray[np.uint32],
    summands: NDArray[np.uint32],
    out: NDArray[np.uint32],
) -> None:
    """Write the minimum of every hash function over the shingles to `out`."""
    out[:] = np.uint32(0xFFFFFFFF)
    for shingle in shingles:
        for function in range(len(out)):
            value = np.uint32(np.uint32(factors[function] * shingle) + summands[function])
            out[function] = min(out[function], value)


@compiled
def crop_places(shingles: NDArray[np.uint32], wanted: int, out: NDArray[np.int64]) -> int:
    """Write where the smallest `wanted` shingles are, those with the content bit first; return
    how many."""
    found = 0
    for bit in (1, 0):
        for place in range(len(shingles)):
            if found == wanted:
                return found
            if shingles[place] & np.uint32(1) == bit:
                out[found] = place
                found += 1
    return found


@compiled
def band_keys(minima: NDArray[np.uint32], bands: int, rows: int, out: NDArray[np.uint64]) -> None:
    """Write one key a band; the band's number is part of it."""
    for band in range(bands):
        state = mix(BAND_KIND + np.uint64(band))
        for row in range(rows):
            state = fold_in(state, np.uint64(minima[band * rows + row]))
        out[band] = mix(state)


@compiled
def crop_keys(
    hashes: NDArray[np.uint32], extras: NDArray[np.uint16], out: NDArray[np.uint64]
) -> None:
    """Write one key a shingle, of its hash and 16 bits more.

    The smallest hashes crowd in a corner of the 31 bits: with those alone, every seventh key of an
    article would meet a stranger's among three million articles, and each of them among a hundred
    million.
    """
    for index in range(len(hashes)):
        whole = np.uint64(hashes[index]) << np.uint64(16) | np.uint64(extras[index])
        out[index] = mix(fold_in(CROP_KIND, whole))
