"""Compiled comparison of payloads: exact set similarity, and agreement of signatures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled

JACCARD, CONTAINMENT, SIGNATURE = range(3)


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
    for pair in range(count):
        i, i_end = left_starts[pair], left_ends[pair]
        j, j_end = right_starts[pair], right_ends[pair]
        smaller = min(i_end - i, j_end - j)
        larger = max(i_end - i, j_end - j)
        if smaller == 0:
            continue
        # Divide, as the reported value is divided: 0.55 * 20 is more than 11.
        # The most that these lengths allow: below both thresholds there is nothing to count.
        contained = smaller >= containment_shingles
        if not contained and smaller / larger < jaccard:
            continue
        common = 0
        while i < i_end and j < j_end:
            a, b = left[i], right[j]
            common += a == b
            i += a <= b
            j += b <= a
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
