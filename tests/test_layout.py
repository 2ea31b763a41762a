"""The payload of a text: what was put in comes out, whatever the lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdedup.schemes.layout import CROP, keys_of, set_ends, with_crops
from streamdedup.sketch.minhash import crop_keys, crop_places

LENGTHS = st.lists(st.integers(0, 90), max_size=6)


@given(LENGTHS, st.integers(0, 40), st.integers(0, 9))
def test_hashes_and_crop_keys_are_found_again(lengths: list[int], crops: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    sets = [np.unique(random.integers(0, 1 << 32, length, np.uint32)) for length in lengths]
    starts = np.cumsum([0, *map(len, sets)])
    hashes = np.concatenate([np.zeros(0, np.uint32), *sets])
    extras = random.integers(0, 1 << 16, len(hashes), np.uint16)
    words, word_starts = with_crops(hashes, extras, starts, crops)
    ends = set_ends(word_starts[:-1], word_starts[1:], crops)
    bounds = zip(word_starts.tolist(), ends.tolist(), strict=False)
    assert [words[first:end].tolist() for first, end in bounds] == [own.tolist() for own in sets]
    family = np.ones(2, np.uint32)
    keys, kinds, key_starts = keys_of(
        words, word_starts[:-1], word_starts[1:], family, family, 1, 2, crops, 0, False
    )
    for article, own in enumerate(sets):
        places = np.empty(crops, np.int64)
        places = places[: crop_places(own, crops, places)]
        expected = np.empty(len(places), np.uint64)
        crop_keys(own[places], extras[starts[article] :][places], expected)
        mine = slice(key_starts[article], key_starts[article + 1])
        assert keys[mine][kinds[mine] == CROP].tolist() == expected.tolist()


@pytest.mark.parametrize("place", [0, 1])
def test_crop_keys_tell_equal_hashes_apart_by_their_extra_bits(place: int) -> None:
    hashes = np.array([3, 5], np.uint32)
    extras = np.array([9, 9], np.uint16)
    first, second = np.empty(2, np.uint64), np.empty(2, np.uint64)
    crop_keys(hashes, extras, first)
    extras[place] = 8
    crop_keys(hashes, extras, second)
    assert (first != second).tolist() == [place == 0, place == 1]
