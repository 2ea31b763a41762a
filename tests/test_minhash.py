"""Min-hash, bands and crop keys: values that never change, and the statistics that they promise."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from golden import GOLDEN_FILE, golden
from numpy.typing import NDArray
from reference import fold_in, mix

from streamdedup.config import Config, MatchConfig, SchemeConfig
from streamdedup.schemes.contract import Keys
from streamdedup.schemes.layout import BAND, CROP
from streamdedup.schemes.shingled import CROP_NEEDED, ShingledScheme
from streamdedup.sketch.curve import candidate_probability
from streamdedup.sketch.minhash import (
    BAND_KIND,
    CROP_KIND,
    band_keys,
    crop_keys,
    crop_places,
    hash_family,
    signature,
)
from streamdedup.text.kernel import MODE_STOP
from streamdedup.text.shingler import ShingleSets

U32 = NDArray[np.uint32]

SIGMAS = 4.0


def minima_of(shingles: U32, family: U32) -> U32:
    out = np.empty(len(family), np.uint32)
    factors, summands = np.ascontiguousarray(family.T)
    signature(shingles, factors, summands, out)
    return out


def pairs(similarity: float, union: int, count: int, seed: int) -> list[tuple[U32, U32, float]]:
    """Random pairs of sorted sets that share a given share of their union, and its exact value."""
    random = np.random.default_rng(seed)
    common = round(similarity * union)
    own = (union - common) // 2
    made = []
    for _ in range(count):
        drawn = np.unique(random.integers(0, 1 << 32, 2 * union, dtype=np.uint32))
        drawn = random.permutation(drawn)[:union]
        shared, left, right = drawn[:common], drawn[common : common + own], drawn[common + own :]
        sides = (np.sort(np.append(shared, left)), np.sort(np.append(shared, right)))
        made.append((*sides, common / union))
    return made


def within(observed: float, expected: float, deviation: float) -> bool:
    return abs(observed - expected) <= SIGMAS * deviation


# --- values ---


@pytest.mark.parametrize("name", sorted(golden()))
def test_hashes_are_what_they_have_always_been(name: str) -> None:
    stored: dict[str, Any] = json.loads(GOLDEN_FILE.read_text("utf-8"))
    assert sorted(stored) == sorted(golden())
    assert golden()[name] == stored[name], "see golden.py on changing a hash function"


def test_a_signature_is_the_minimum_of_ax_plus_b() -> None:
    family = hash_family(40)
    shingles = np.random.default_rng(1).integers(0, 1 << 32, 50, dtype=np.uint32)
    expected = [
        min((int(a) * int(x) + int(b)) % (1 << 32) for x in shingles) for a, b in family.tolist()
    ]
    assert minima_of(shingles, family).tolist() == expected


def test_every_factor_is_odd_and_a_longer_family_only_adds() -> None:
    assert np.all(hash_family(300)[:, 0] & 1)
    assert np.array_equal(hash_family(300)[:64], hash_family(64))


def test_a_band_key_depends_on_its_rows_and_on_its_number_only() -> None:
    minima = np.array([7, 8, 7, 8], np.uint32)
    keys = np.empty(2, np.uint64)
    band_keys(minima, 2, 2, keys)
    expected = [mix(fold_in(fold_in(mix(int(BAND_KIND) + band), 7), 8)) for band in range(2)]
    assert keys.tolist() == expected
    assert keys[0] != keys[1]


def test_crop_keys_are_of_the_smallest_shingles_those_with_content_first() -> None:
    shingles = np.array([2, 3, 10, 11, 20, 31, 40], np.uint32)
    out = np.zeros(8, np.int64)
    assert crop_places(shingles, 2, out) == 2
    assert shingles[out[:2]].tolist() == [3, 11]
    assert crop_places(shingles, 5, out) == 5
    assert shingles[out[:5]].tolist() == [3, 11, 31, 2, 10]
    assert crop_places(shingles, 8, out) == 7
    keys = np.empty(2, np.uint64)
    crop_keys(np.array([3, 11], np.uint32), np.array([5, 0xFFFF], np.uint16), keys)
    wholes = (3 << 16 | 5, 11 << 16 | 0xFFFF)
    assert keys.tolist() == [mix(fold_in(int(CROP_KIND), whole)) for whole in wholes]


# --- statistics ---


@pytest.mark.parametrize("similarity", [0.1, 0.3, 0.5, 0.8, 0.95])
def test_the_estimate_is_unbiased_and_spreads_as_a_binomial_does(similarity: float) -> None:
    functions, count = 128, 3_000
    family = hash_family(functions)
    errors = np.array(
        [
            np.mean(minima_of(left, family) == minima_of(right, family)) - exact
            for left, right, exact in pairs(similarity, 200, count, seed=int(similarity * 100))
        ]
    )
    deviation = math.sqrt(similarity * (1 - similarity) / functions)
    assert within(float(errors.mean()), 0.0, deviation / math.sqrt(count))
    assert float(errors.std()) == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize(
    ("bands", "rows", "similarity"),
    [
        (20, 5, 0.4),
        (20, 5, 0.6),
        (32, 4, 0.3),
        (32, 4, 0.5),
        (16, 4, 0.5),
        (16, 4, 0.7),
        (42, 3, 0.2),
        (1, 1, 0.5),
    ],
)
def test_candidates_follow_the_s_curve(bands: int, rows: int, similarity: float) -> None:
    count = 3_000
    family = hash_family(bands * rows)
    left_keys, right_keys = np.empty(bands, np.uint64), np.empty(bands, np.uint64)
    found = 0
    for left, right, _ in pairs(similarity, 200, count, seed=bands * rows):
        band_keys(minima_of(left, family), bands, rows, left_keys)
        band_keys(minima_of(right, family), bands, rows, right_keys)
        found += len(np.intersect1d(left_keys, right_keys)) > 0
    expected = candidate_probability(similarity, bands=bands, rows=rows)
    deviation = math.sqrt(expected * (1 - expected) / count)
    assert within(found / count, expected, deviation)


# --- the scheme ---


def keys_of(scheme: ShingledScheme, sets: ShingleSets) -> Keys:
    return scheme.keys(scheme.payloads_of(sets))


def synthetic_article(random: np.random.Generator, words: int) -> list[str]:
    """Words of a skewed vocabulary, two of five a stop word: the texture of English prose."""
    stops = np.array(["the", "of", "to", "in", "a", "and", "that", "is", "for", "on", "it", "with"])
    ranks = np.minimum(random.zipf(1.2, words), 50_000)
    is_stop = random.random(words) < 0.4
    return [
        str(random.choice(stops)) if stop else f"word{rank}"
        for stop, rank in zip(is_stop, ranks, strict=True)
    ]


@pytest.mark.parametrize(("part", "wanted"), [(3, 0.99), (4, 0.97)])
def test_a_cropped_copy_shares_two_crop_keys(part: int, wanted: float) -> None:
    random = np.random.default_rng(part)
    scheme = ShingledScheme(SchemeConfig(), MatchConfig())
    count = 400
    texts = []
    for _ in range(count):
        words = synthetic_article(random, int(random.integers(300, 800)))
        length = len(words) // part
        start = int(random.integers(0, len(words) - length + 1))
        texts += [" ".join(words), " ".join(words[start : start + length])]
    sets = scheme.shingler.shingle(texts)
    assert np.all(sets.modes == MODE_STOP)
    keys = keys_of(scheme, sets)

    def crops(article: int) -> set[int]:
        own = slice(keys.starts[article], keys.starts[article + 1])
        return set(keys.values[own][keys.kinds[own] == CROP].tolist())

    shared = [len(crops(2 * pair) & crops(2 * pair + 1)) for pair in range(count)]
    assert np.mean(np.array(shared) >= CROP_NEEDED) >= wanted


def test_keys_are_the_same_from_sets_and_from_signatures() -> None:
    random = np.random.default_rng(5)
    texts = [" ".join(synthetic_article(random, words)) for words in (5, 30, 60, 400)]
    exact = ShingledScheme(SchemeConfig(), MatchConfig())
    estimated = ShingledScheme(SchemeConfig(), MatchConfig(verify="signature"))
    sets = exact.shingler.shingle(texts)
    one, other = keys_of(exact, sets), keys_of(estimated, sets)
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.kinds, other.kinds)
    assert np.array_equal(one.starts, other.starts)


def test_a_set_below_the_floor_has_no_keys_and_one_at_the_floor_has_all_its_bands() -> None:
    config = Config().scheme
    scheme = ShingledScheme(config, MatchConfig())
    floor = config.min_shingles
    hashes = np.arange(2, 4 * floor, 2, dtype=np.uint32)[: 2 * floor - 1]
    sets = ShingleSets(
        hashes,
        np.arange(len(hashes), dtype=np.uint16),
        np.array([0, floor - 1, 2 * floor - 1], np.int64),
        np.zeros(2, np.uint64),
        np.full(2, MODE_STOP, np.uint8),
        np.zeros(2, np.uint8),
    )
    keys = keys_of(scheme, sets)
    assert keys.starts.tolist() == [0, 0, len(keys.values)]
    assert np.count_nonzero(keys.kinds == BAND) == config.bands
    assert np.count_nonzero(keys.kinds == CROP) == min(floor, config.crop_keys)
