"""The worked examples of the lecture notes the project started from, as test vectors."""

from __future__ import annotations

import numpy as np
import pytest
from reference import fold_in, hash_repeat, hash_shingle, hash_token, mix

from streamdedup.schemes.compare import JACCARD, compare_sets
from streamdedup.sketch.curve import candidate_probability, threshold
from streamdedup.sketch.textbook import (
    NEVER,
    column_similarity,
    signature_by_permutations,
    signature_one_pass,
    signature_similarity,
)
from streamdedup.text.kernel import MODE_STOP, MODE_WORD
from streamdedup.text.shingler import Shingler
from streamdedup.text.stopwords import parse_stop_lists, stop_table


def of_words(*shingles: str, content: bool = False) -> set[int]:
    """The hashes of shingles written as words one space apart."""
    return {
        hash_shingle([hash_token(word) for word in shingle.split()], content=content)[0]
        for shingle in shingles
    }


def of_characters(*shingles: str) -> set[int]:
    return {
        hash_shingle([hash_token(character) for character in shingle])[0] for shingle in shingles
    }


def plain(shingles: set[int]) -> set[int]:
    """Hashes without the bit that says "stop word and two content words"."""
    return {shingle & ~1 for shingle in shingles}


def cut(shingler: Shingler, text: str) -> set[int]:
    return set(shingler.shingle([text]).of(0).tolist())


def test_the_set_of_2_shingles_of_abcab() -> None:
    assert cut(Shingler(unit="char", k=2), "abcab") == of_characters("ab", "bc", "ca")


def test_the_bag_of_2_shingles_of_abcab_counts_ab_twice() -> None:
    (ab,) = of_characters("ab")
    bag = cut(Shingler(unit="char", k=2, bag=True), "abcab")
    assert bag == of_characters("ab", "bc", "ca") | {hash_repeat(ab, 1)[0]}
    assert hash_repeat(ab, 1)[0] == mix(fold_in(ab, 1)) >> 33 << 1


def test_a_changed_word_changes_only_the_shingles_around_it() -> None:
    shingler = Shingler(unit="char", k=3)
    which = cut(shingler, "The dog which chased the cat")
    that = cut(shingler, "The dog that chased the cat")
    assert which - that == of_characters("g w", " wh", "whi", "hic", "ich", "ch ", "h c")


ROSES = {
    "A rose is red, a rose is white.": (
        "a rose is",
        "rose is red",
        "is red a",
        "red a rose",
        "rose is white",
    ),
    "A rose is white, a rose is red.": (
        "a rose is",
        "rose is white",
        "is white a",
        "white a rose",
        "rose is red",
    ),
    "A rose is a rose is a rose.": ("a rose is", "rose is a", "is a rose"),
}


@pytest.mark.parametrize("text", ROSES)
def test_the_3_shingles_of_the_roses(text: str) -> None:
    assert cut(Shingler(unit="word", k=3), text) == of_words(*ROSES[text])


@pytest.mark.parametrize(
    ("left", "right", "common", "union"), [(0, 1, 3, 7), (0, 2, 1, 7), (1, 2, 1, 7)]
)
def test_the_similarities_of_the_roses(left: int, right: int, common: int, union: int) -> None:
    sets = Shingler(unit="word", k=3).shingle(list(ROSES))
    sides = (sets.hashes, sets.starts[[left]], sets.starts[[left + 1]])
    others = (sets.hashes, sets.starts[[right]], sets.starts[[right + 1]])
    values, measures = compare_sets(*sides, *others, 0.01, 1.0, 1_000)
    assert measures.tolist() == [JACCARD]
    assert values[0] == pytest.approx(common / union)


def test_an_advertisement_has_no_stop_word_shingle() -> None:
    sets = Shingler().shingle(["Get Vaccinated."])
    assert sets.modes.tolist() == [MODE_WORD]
    assert len(sets.of(0)) == 0


def test_the_article_that_says_the_same_has_its_stop_word_shingles() -> None:
    text = (
        "A spokesperson for WHO says today that studies have shown it is important for people to "
        "get vaccinated."
    )
    sets = Shingler().shingle([text])
    assert sets.modes.tolist() == [MODE_STOP]
    assert plain(set(sets.of(0).tolist())) >= of_words(
        "a spokesperson for",
        "for who says",
        "that studies have",
        "have shown it",
        "it is important",
    )


def test_nine_shingles_of_the_sudzo_sentence() -> None:
    stops = stop_table(parse_stop_lists("version 1\n[en]\na for the that have it is to\n"))
    text = (
        "A spokesperson for the Sudzo Corporation revealed today that studies have shown it is "
        "good for people to buy Sudzo products"
    )
    some = of_words(
        "a spokesperson for",
        "for the sudzo",
        "that studies have",
        "have shown it",
        "it is good",
        "is good for",
        "for people to",
    )
    content = of_words("the sudzo corporation", "to buy sudzo", content=True)
    assert cut(Shingler(stops=stops), text) == some | content
    assert len(some | content) == 9


PERMUTATIONS = [[2, 4, 3], [3, 2, 4], [7, 1, 7], [6, 3, 2], [1, 6, 6], [5, 7, 1], [4, 5, 5]]
COLUMNS = [
    [1, 0, 1, 0],
    [1, 0, 0, 1],
    [0, 1, 0, 1],
    [0, 1, 0, 1],
    [0, 1, 0, 1],
    [1, 0, 1, 0],
    [1, 0, 1, 0],
]


def test_the_signature_matrix_of_three_permutations() -> None:
    signatures = signature_by_permutations(COLUMNS, PERMUTATIONS)
    assert signatures.tolist() == [[2, 1, 2, 1], [2, 1, 4, 1], [1, 2, 1, 2]]


@pytest.mark.parametrize(
    ("pair", "columns", "signatures"),
    [((0, 2), 0.75, 0.67), ((1, 3), 0.75, 1.00), ((0, 1), 0, 0), ((2, 3), 0, 0)],
)
def test_signatures_agree_about_as_much_as_columns(
    pair: tuple[int, int], columns: float, signatures: float
) -> None:
    matrix = signature_by_permutations(COLUMNS, PERMUTATIONS)
    assert column_similarity(COLUMNS, *pair) == columns
    assert round(signature_similarity(matrix, *pair), 2) == signatures


def test_the_signature_matrix_of_the_sets_a_to_d() -> None:
    sets = [{1, 2, 5, 6, 7}, {1, 2, 3, 6}, {1, 6, 7}, {2, 3, 4, 5}]
    matrix = [[row in members for members in sets] for row in range(1, 8)]
    orders = [[2, 3, 4], [3, 4, 2], [7, 7, 7], [6, 2, 1], [1, 6, 6], [5, 1, 3], [4, 5, 5]]
    signatures = signature_by_permutations(matrix, orders)
    # The notes print the rows of the matrix from the last permutation to the first.
    assert signatures[::-1].tolist() == [[2, 2, 3, 1], [1, 1, 1, 2], [1, 2, 2, 1]]
    assert column_similarity(matrix, 0, 1) == 0.5
    assert round(signature_similarity(signatures, 0, 1), 2) == 0.67
    assert column_similarity(matrix, 2, 3) == 0
    assert signature_similarity(signatures, 2, 3) == 0


def test_one_pass_over_the_rows_with_two_hash_functions() -> None:
    rows = [[1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 1], [0, 0, 1, 0]]
    functions = [lambda x: (x + 1) % 5, lambda x: (3 * x + 1) % 5]
    signatures = signature_one_pass(rows, functions)
    assert signatures.tolist() == [[1, 3, 0, 1], [0, 2, 0, 0]]
    assert signature_similarity(signatures, 0, 3) == 1.0
    assert column_similarity(rows, 0, 3) == pytest.approx(2 / 3)
    # The pass as it goes: after the first two rows the second column has seen nothing.
    assert signature_one_pass(rows[:2], functions).tolist() == [
        [1, NEVER, 2, 1],
        [1, NEVER, 4, 1],
    ]


def test_one_pass_of_the_practice_example() -> None:
    rows = [[1, 0], [0, 1], [1, 1], [1, 0], [0, 1]]
    functions = [lambda x: x % 5, lambda x: (2 * x + 1) % 5]
    assert signature_one_pass(rows, functions, first_row=1).tolist() == [[1, 0], [2, 0]]


def test_one_pass_and_permutations_are_the_same_thing() -> None:
    random = np.random.default_rng(7)
    matrix = random.random((30, 8)) < 0.3
    orders = np.stack([random.permutation(30) for _ in range(5)], axis=1)
    functions = [lambda row, order=order: int(order[row]) for order in orders.T]
    by_hash = signature_one_pass(matrix, functions)
    assert np.array_equal(by_hash, signature_by_permutations(matrix, orders))


@pytest.mark.parametrize(
    ("similarity", "probability", "digits"),
    [
        (0.2, 0.006, 3),
        (0.3, 0.047, 3),
        (0.4, 0.186, 3),
        (0.5, 0.470, 3),
        (0.6, 0.802, 3),
        (0.7, 0.975, 3),
        (0.8, 0.9996, 4),
    ],
)
def test_the_s_curve_of_20_bands_of_5(similarity: float, probability: float, digits: int) -> None:
    assert round(candidate_probability(similarity, bands=20, rows=5), digits) == probability


def test_a_pair_of_similarity_80_percent_is_hardly_ever_missed() -> None:
    assert round(candidate_probability(0.8, bands=1, rows=5), 3) == 0.328
    missed = 1 - candidate_probability(0.8, bands=20, rows=5)
    # The notes round 0.8^5 first: (1 - 0.328)^20 = 0.00035; exactly it is 0.00036.
    assert missed == pytest.approx(0.00035, abs=0.00001)
    assert missed == pytest.approx(1 / 3000, rel=0.1)


def test_a_pair_of_similarity_30_percent_is_seldom_a_candidate() -> None:
    assert round(candidate_probability(0.3, bands=1, rows=5), 5) == 0.00243
    # The notes say 0.0474; exactly it is 0.04749.
    assert candidate_probability(0.3, bands=20, rows=5) == pytest.approx(0.0474, abs=0.0001)


@pytest.mark.parametrize(("bands", "rows"), [(20, 5), (32, 4), (16, 4), (1, 1)])
def test_the_threshold_is_the_rth_root_of_one_over_b(bands: int, rows: int) -> None:
    assert threshold(bands=bands, rows=rows) == pytest.approx((1 / bands) ** (1 / rows))
    near = candidate_probability(threshold(bands=bands, rows=rows), bands=bands, rows=rows)
    assert near == pytest.approx(1 - (1 - 1 / bands) ** bands)
