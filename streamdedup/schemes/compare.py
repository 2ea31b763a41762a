"""Compiled comparison of payloads: exact set similarity, and agreement of signatures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import Integer, compiled, inlined

JACCARD, CONTAINMENT, SIGNATURE = range(3)

_ROUGH_BITS = 14  # of a shingle hash: a set of them is two kilobytes
_ROUGH_WORDS = (1 << _ROUGH_BITS) // 64


@inlined
def _reaches(
    common: Integer, smaller: int, larger: int, jaccard: float, containment: float, contained: bool
) -> bool:
    """Whether so many common shingles are enough; more never are less.

    Divided as the reported value is divided: 0.55 * 20 is more than 11.
    """
    if common / (smaller + larger - common) >= jaccard:
        return True
    return contained and common / smaller >= containment


@compiled
def _rough_set(hashes: NDArray[np.uint32], out: NDArray[np.uint64]) -> None:
    """The first bits of every hash as a set of bits."""
    out[:] = 0
    for value in hashes:
        out[value >> np.uint32(38 - _ROUGH_BITS)] |= np.uint64(1) << np.uint64(
            (value >> np.uint32(32 - _ROUGH_BITS)) & np.uint32(63)
        )


@compiled
def _rough_common(hashes: NDArray[np.uint32], rough: NDArray[np.uint64]) -> Integer:
    """No fewer than the hashes have in common with the set."""
    common: Integer = 0
    for value in hashes:
        word = rough[value >> np.uint32(38 - _ROUGH_BITS)]
        bit = np.uint64((value >> np.uint32(32 - _ROUGH_BITS)) & np.uint32(63))
        common += np.int64((word >> bit) & np.uint64(1))
    return common


@compiled
def _common(left: NDArray[np.uint32], right: NDArray[np.uint32]) -> int:
    """How many values two sorted sets share."""
    i = j = common = 0
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        common += a == b
        i += a <= b
        j += b <= a
    return common


@compiled
def compare_sets(
    left: NDArray[np.uint32],
    left_starts: NDArray[np.int64],
    left_ends: NDArray[np.int64],
    right: NDArray[np.uint32],
    right_starts: NDArray[np.int64],
    right_ends: NDArray[np.int64],
    jaccard: float,
    containment: float,
    containment_shingles: int,
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Pairs of sorted sets: Jaccard if it reaches its threshold, else containment, else -1."""
    count = len(left_starts)
    values = np.zeros(count, np.float64)
    measures = np.full(count, -1, np.int8)
    rough = np.zeros(_ROUGH_WORDS, np.uint64)
    rough_of = -1  # where the left set begins that `rough` was made from
    for pair in range(count):
        own = left[left_starts[pair] : left_ends[pair]]
        other = right[right_starts[pair] : right_ends[pair]]
        smaller = min(len(own), len(other))
        larger = max(len(own), len(other))
        contained = smaller >= containment_shingles
        # The most that these lengths allow, then the most that a rough count allows: of the
        # candidates that are no match, hardly one is compared shingle by shingle.
        if smaller == 0 or not _reaches(smaller, smaller, larger, jaccard, containment, contained):
            continue
        if rough_of != left_starts[pair]:
            _rough_set(own, rough)
            rough_of = left_starts[pair]
        common = min(_rough_common(other, rough), smaller)
        if not _reaches(common, smaller, larger, jaccard, containment, contained):
            continue
        common = _common(own, other)
        union = smaller + larger - common
        if common / union >= jaccard:
            values[pair] = common / union
            measures[pair] = JACCARD
        elif contained and common / smaller >= containment:
            values[pair] = common / smaller
            measures[pair] = CONTAINMENT
    return values, measures


@compiled
def compare_signatures(
    left: NDArray[np.uint32],
    left_starts: NDArray[np.int64],
    left_ends: NDArray[np.int64],
    right: NDArray[np.uint32],
    right_starts: NDArray[np.int64],
    right_ends: NDArray[np.int64],
    length: int,
    jaccard: float,
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Pairs of signatures: the share of equal min-hashes, an estimate of Jaccard."""
    count = len(left_starts)
    values = np.zeros(count, np.float64)
    measures = np.full(count, -1, np.int8)
    for pair in range(count):
        if left_ends[pair] - left_starts[pair] < length:
            continue
        if right_ends[pair] - right_starts[pair] < length:
            continue
        equal = 0
        for place in range(length):
            equal += left[left_starts[pair] + place] == right[right_starts[pair] + place]
        if equal / length >= jaccard:
            values[pair] = equal / length
            measures[pair] = SIGNATURE
    return values, measures
