"""Putting bucket contents from several places together, newest first, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled


@compiled
def newer_then_older(
    newer: NDArray[np.int64],
    newer_starts: NDArray[np.int64],
    older: NDArray[np.int64],
    older_starts: NDArray[np.int64],
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Key by key the newer hits, then the older ones, at most `most` in all."""
    keys = len(newer_starts) - 1
    numbers = np.empty(len(newer) + len(older), np.int64)
    starts = np.zeros(keys + 1, np.int64)
    used = 0
    for key in range(keys):
        first = used
        for at in range(newer_starts[key], newer_starts[key + 1]):
            if used - first < most:
                numbers[used] = newer[at]
                used += 1
        for at in range(older_starts[key], older_starts[key + 1]):
            if used - first < most:
                numbers[used] = older[at]
                used += 1
        starts[key + 1] = used
    return numbers[:used], starts


@compiled
def met_twice(
    numbers: NDArray[np.int64], key_starts: NDArray[np.int64], article_starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The numbers that lie under two keys of one article; `article_starts` counts keys."""
    out = np.empty(len(numbers), np.int64)
    used = 0
    for article in range(len(article_starts) - 1):
        first = key_starts[article_starts[article]]
        end = key_starts[article_starts[article + 1]]
        if end - first < 2:
            continue
        found = np.sort(numbers[first:end])
        for at in range(1, len(found)):
            if found[at] == found[at - 1] and (used == 0 or out[used - 1] != found[at]):
                out[used] = found[at]
                used += 1
    return out[:used].copy()
