"""Min-hash as the textbook does it, over a small 0/1 matrix: for teaching and for checking.

Rows are shingles, columns are documents.  Nothing in the engine calls this; `minhash` computes
the same from sets, with a fixed family of hash functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

NEVER = np.iinfo(np.int64).max  # the signature of an empty column: the textbook's infinity


def signature_by_permutations(matrix: ArrayLike, permutations: ArrayLike) -> NDArray[np.int64]:
    """Row p, column c: the first place that permutation p gives to a row with a 1 in column c.

    Column p of `permutations` holds the place of every row of the matrix.

    >>> signature_by_permutations([[0, 1], [1, 0], [1, 1]], [[3], [1], [2]]).tolist()
    [[1, 2]]
    """
    ones = np.asarray(matrix, np.bool_)
    places = np.asarray(permutations, np.int64)
    reached = np.where(ones[:, None, :], places[:, :, None], NEVER)
    return np.asarray(reached.min(axis=0))


def signature_one_pass(
    matrix: ArrayLike, hash_functions: Sequence[Callable[[int], int]], *, first_row: int = 0
) -> NDArray[np.int64]:
    """The same with hash functions of the row number in place of permutations, row by row.

    >>> signature_one_pass([[0, 1], [1, 0], [1, 1]], [lambda x: (2 * x + 1) % 3]).tolist()
    [[0, 1]]
    """
    ones = np.asarray(matrix, np.bool_)
    signatures = np.full((len(hash_functions), ones.shape[1]), NEVER, np.int64)
    for number, row in enumerate(ones, start=first_row):
        for function, hashed in enumerate(hash_functions):
            signatures[function, row] = np.minimum(signatures[function, row], hashed(number))
    return signatures


def column_similarity(matrix: ArrayLike, left: int, right: int) -> float:
    """Jaccard similarity of two columns; two empty ones have none in common.

    >>> column_similarity([[0, 1], [1, 1], [1, 1]], 0, 1)  # 2 of 3
    0.6666666666666666
    """
    ones = np.asarray(matrix, np.bool_)
    union = int(np.count_nonzero(ones[:, left] | ones[:, right]))
    return int(np.count_nonzero(ones[:, left] & ones[:, right])) / union if union else 0.0


def signature_similarity(signatures: ArrayLike, left: int, right: int) -> float:
    """The share of hash functions on which two columns of a signature matrix agree.

    >>> signature_similarity([[1, 1], [2, 3]], 0, 1)
    0.5
    """
    rows = np.asarray(signatures)
    return float(np.mean(rows[:, left] == rows[:, right]))
