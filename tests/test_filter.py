"""A segment's filter never counts too few, and seldom lets an absent key pass."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from streamdedup.store.filter import COUNTED, asked, dealt, empty_filter, filter_add, filter_pass

UNKNOWN_BITS = 20


def made(bits: int, copies: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A filter, and its keys; key i has `copies[i]` entries."""
    random = np.random.default_rng(7)
    keys = random.integers(0, 1 << 64, len(copies), np.uint64) >> UNKNOWN_BITS << UNKNOWN_BITS
    words = empty_filter(int(copies.sum()), bits)
    entries = np.sort(np.repeat(keys, copies))
    pages = np.searchsorted(entries >> np.uint64(60), np.arange(1, 16))
    for page in np.split(entries, pages):  # a page holds whole buckets
        filter_add(words, page)
    return words, keys


def passing(
    words: NDArray[np.uint64], keys: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return filter_pass(words, *asked(keys, UNKNOWN_BITS))


@pytest.mark.parametrize("bits", [4, 12, 16])
def test_a_bucket_has_never_more_entries_than_the_filter_counts(bits: int) -> None:
    copies = np.random.default_rng(bits).integers(1, 2 * COUNTED, 5_000)
    words, keys = made(bits, copies)
    passed, counts = passing(words, keys)
    assert passed.tolist() == list(range(len(keys)))
    assert (counts >= np.minimum(copies, COUNTED)).all()


def test_what_no_page_knows_of_a_key_does_not_matter() -> None:
    words, keys = made(16, np.ones(1_000, np.int64))
    passed, _ = passing(words, keys | np.uint64((1 << UNKNOWN_BITS) - 1))
    assert len(passed) == len(keys)


@pytest.mark.parametrize(("bits", "most"), [(12, 0.006), (16, 0.0015)])
def test_few_absent_keys_pass_and_few_counts_are_too_high(bits: int, most: float) -> None:
    words, keys = made(bits, np.ones(100_000, np.int64))
    absent = np.random.default_rng(8).integers(0, 1 << 64, 200_000, np.uint64)
    assert len(passing(words, absent)[0]) < most * len(absent)
    assert (passing(words, keys)[1] > 1).mean() < most


def test_dealing_keys_only_changes_their_order() -> None:
    keys = np.random.default_rng(9).integers(0, 1 << 64, 3_000, np.uint64)
    order = dealt(keys)
    assert sorted(order.tolist()) == list(range(len(keys)))
    assert (np.diff((keys[order] >> np.uint64(56)).astype(np.int64)) >= 0).all()
