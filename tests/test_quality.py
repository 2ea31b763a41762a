"""The scoring: small cases computed by hand."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdedup.quality import adjusted_rand_index, figures, judge, mistakes
from streamdedup.verdict import Verdict

CLUSTERS = {"a1": "A", "a2": "A", "a3": "A", "b1": "B", "b2": "B"}


def unique(id: str) -> Verdict:
    return Verdict(id=id, verdict="unique", story=id)


def copy(id: str, of: str, story: str | None = None) -> Verdict:
    return Verdict(
        id=id,
        verdict="duplicate",
        story=story or of,
        duplicate_of=of,
        similarity=0.9,
        measure="jaccard",
        reason="near",
    )


def again(id: str) -> Verdict:
    return Verdict(
        id=id,
        verdict="duplicate",
        story=id,
        duplicate_of=id,
        similarity=1.0,
        measure="exact",
        reason="redelivery",
    )


def score(*verdicts: Verdict) -> tuple[int, int, int]:
    result = figures(judge(verdicts, CLUSTERS).scored)
    return result.tp, result.fp, result.fn


def test_perfect_verdicts_score_one_everywhere() -> None:
    verdicts = [unique("a1"), unique("b1"), copy("a2", "a1"), copy("b2", "b1"), copy("a3", "a1")]
    result = figures(judge(verdicts, CLUSTERS).scored)
    assert (result.precision, result.recall, result.f1, result.ari) == (1.0, 1.0, 1.0, 1.0)
    assert (result.articles, result.clusters, result.stories) == (5, 2, 2)


def test_a_missed_copy_costs_recall() -> None:
    result = figures(judge([unique("a1"), unique("a2"), copy("a3", "a2")], CLUSTERS).scored)
    assert (result.tp, result.fp, result.fn) == (1, 0, 1)
    assert (result.precision, result.recall) == (1.0, 0.5)
    assert result.f1 == pytest.approx(2 / 3)


def test_a_copy_of_the_wrong_article_costs_precision() -> None:
    assert score(unique("a1"), copy("b1", "a1")) == (0, 1, 0)


def test_a_wrong_copy_where_a_right_one_was_owed_costs_both() -> None:
    assert score(unique("a1"), unique("b1"), copy("b2", "a1")) == (0, 1, 1)


def test_any_article_of_the_cluster_is_a_right_answer() -> None:
    assert score(unique("a1"), copy("a2", "a1"), copy("a3", "a2")) == (2, 0, 0)


def test_what_is_owed_follows_the_order_of_the_verdicts() -> None:
    assert score(unique("a3"), unique("a1")) == (0, 0, 1)


def test_a_right_answer_from_an_earlier_run_counts() -> None:
    assert score(copy("a2", "a1")) == (1, 0, 0)


def test_a_copy_of_an_article_the_truth_does_not_know_is_wrong() -> None:
    assert score(unique("a1"), copy("a2", "stranger")) == (0, 1, 1)


def test_an_id_is_scored_only_once() -> None:
    judgement = judge([unique("a1"), again("a1"), again("a1"), copy("a2", "a1")], CLUSTERS)
    assert [judged.id for judged in judgement.scored] == ["a1", "a2"]
    assert judgement.repeated == 2


def test_strangers_and_absent_articles_are_counted_apart() -> None:
    judgement = judge([unique("a1"), unique("stranger")], CLUSTERS)
    assert (judgement.unknown, judgement.missing) == (1, 4)


def test_nothing_said_and_nothing_owed_is_nothing_wrong() -> None:
    result = figures([])
    assert (result.precision, result.recall, result.f1, result.ari) == (1.0, 1.0, 1.0, 1.0)


def test_mistakes_say_what_was_said_and_what_was_there() -> None:
    verdicts = [unique("a1"), unique("b1"), copy("b2", "a1"), unique("a2")]
    wrong, missed = mistakes(judge(verdicts, CLUSTERS).scored)
    assert (wrong.kind, wrong.id, wrong.duplicate_of, wrong.expected) == ("wrong", "b2", "a1", "b1")
    assert (missed.kind, missed.id, missed.expected) == ("missed", "a2", "a1")


def test_the_adjusted_rand_index_of_a_known_table() -> None:
    # Contingency table (rows clusters, columns stories): [[3, 1], [0, 2]].
    labels = [("A", 1)] * 3 + [("A", 2)] + [("B", 2)] * 2
    together = comb(3, 2) + comb(2, 2)
    chance = (comb(4, 2) + comb(2, 2)) * (comb(3, 2) + comb(3, 2)) / comb(6, 2)
    expected = (together - chance) / ((7 + 6) / 2 - chance)
    assert adjusted_rand_index(labels) == pytest.approx(expected)
    assert adjusted_rand_index(labels) == pytest.approx(0.3243243)


def test_one_big_story_against_singletons_is_worth_nothing() -> None:
    assert adjusted_rand_index([(i, 0) for i in range(5)]) == 0.0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_the_adjusted_rand_index_is_symmetric_and_at_most_one(
    labels: list[tuple[int, int]],
) -> None:
    index = adjusted_rand_index(labels)
    assert index <= 1.0 + 1e-12
    assert index == pytest.approx(adjusted_rand_index([(b, a) for a, b in labels]))


@given(st.lists(st.integers(0, 3), max_size=30))
def test_the_same_partition_under_other_names_scores_one(labels: list[int]) -> None:
    assert adjusted_rand_index([(a, f"story {a}") for a in labels]) == 1.0
