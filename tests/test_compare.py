"""The compiled comparison of shingle sets, held against plain sets and plain division."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdedup.schemes.compare import CONTAINMENT, JACCARD, compare_sets

# Few values, so that sets overlap in every way; some alike in all but their lowest bits.
VALUES = st.integers(0, 40).map(lambda n: (n // 4) * 0x0F0F_0F0F + n % 4)
SETS = st.lists(st.frozensets(VALUES, max_size=30), min_size=1, max_size=6)
THRESHOLDS = st.sampled_from([0.1, 1 / 3, 0.5, 0.55, 2 / 3, 0.8, 1.0])


def expected(
    left: frozenset[int], right: frozenset[int], jaccard: float, containment: float, fewest: int
) -> tuple[float, int]:
    common, smaller = len(left & right), min(len(left), len(right))
    if smaller == 0:
        return 0.0, -1
    if common / len(left | right) >= jaccard:
        return common / len(left | right), JACCARD
    if smaller >= fewest and common / smaller >= containment:
        return common / smaller, CONTAINMENT
    return 0.0, -1


def laid_out(sets: list[frozenset[int]]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    ends = np.cumsum([0, *(len(one) for one in sets)])
    return np.array([value for one in sets for value in sorted(one)], np.uint32), ends


@settings(max_examples=300)
@given(SETS, SETS, THRESHOLDS, THRESHOLDS, st.integers(1, 20))
def test_every_pair_is_judged_as_sets_are(
    left: list[frozenset[int]],
    right: list[frozenset[int]],
    jaccard: float,
    containment: float,
    fewest: int,
) -> None:
    pairs = [(i, j) for i in range(len(left)) for j in range(len(right))]
    (a, a_at), (b, b_at) = laid_out(left), laid_out(right)
    i, j = np.array(pairs).T
    values, measures = compare_sets(
        a, a_at[i], a_at[i + 1], b, b_at[j], b_at[j + 1], jaccard, containment, fewest
    )
    found = list(zip(values.tolist(), measures.tolist(), strict=True))
    assert found == [expected(left[i], right[j], jaccard, containment, fewest) for i, j in pairs]
