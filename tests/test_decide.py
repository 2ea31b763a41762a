"""What the engine decides, on articles whose shingle sets are chosen one by one.
A sentence "the x7 y7" is exactly one shingle, so every similarity here can be counted by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from streamdedup import Article, Config, Deduplicator, Rejection, Verdict
from streamdedup.config import MatchConfig, StateConfig
from streamdedup.errors import StateError
from streamdedup.text.shingler import Shingler


def text(*parts: Iterable[int]) -> str:
    return " ".join(f"The x{n} y{n}." for part in parts for n in part)


def judge(*articles: tuple[str, str], match: MatchConfig | None = None) -> list[Verdict]:
    config = Config(match=match or MatchConfig())
    with Deduplicator.open(None, config) as deduplicator:
        found = deduplicator.process([Article(id=id, text=body) for id, body in articles])
    verdicts = [verdict for verdict in found if isinstance(verdict, Verdict)]
    assert len(verdicts) == len(articles)
    return verdicts


def candidates(stored: str, probing: str, match: MatchConfig) -> int:
    with Deduplicator.open(None, Config(match=match)) as deduplicator:
        deduplicator.process([Article(id="stored", text=stored)])
        sketch = deduplicator.sketch([Article(id="probing", text=probing)])
        return deduplicator.decide(sketch).candidates


def test_the_sentences_of_these_tests_are_one_shingle_each() -> None:
    assert len(Shingler().shingle([text(range(100))]).of(0)) == 100


# The best match --------------------------------------------------------------------------------


def test_the_most_similar_article_is_the_match_even_if_a_later_one() -> None:
    far, near = text(range(100)), text(range(90), range(200, 210))
    last = judge(("far", far), ("near", near), ("c", text(range(85), range(200, 215))))[2]
    assert (last.duplicate_of, last.similarity) == ("near", 95 / 105)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_equally_similar_articles_the_earliest_is_the_match(order: str) -> None:
    bodies = {"a": text(range(100)), "b": text(range(80), range(100, 120))}
    stored = [(id, bodies[id]) for id in order]
    last = judge(*stored, ("c", text(range(80), range(200, 220))))[2]
    assert (last.duplicate_of, last.similarity) == (order[0], 80 / 120)


def test_an_earlier_match_by_jaccard_is_not_passed_over_for_an_equal_containment() -> None:
    part, whole = text(range(60)), text(range(200))
    last = judge(("part", part), ("whole", whole), ("c", text(reversed(range(60)))))[2]
    assert (last.duplicate_of, last.measure, last.similarity) == ("part", "jaccard", 1.0)


def test_an_exact_copy_wins_over_an_earlier_article_with_the_same_shingles() -> None:
    shuffled, body = text(reversed(range(60))), text(range(60))
    last = judge(("shuffled", shuffled), ("copy", body), ("c", body))[2]
    assert (last.duplicate_of, last.measure, last.reason) == ("copy", "exact", "exact")


# Stories ---------------------------------------------------------------------------------------

LINKS = [text(range(first, first + 100)) for first in (0, 20, 40)]


def test_a_copy_of_a_copy_names_its_best_match_and_the_root_of_the_story() -> None:
    last = judge(("a", LINKS[0]), ("b", LINKS[1]), ("c", LINKS[2]))[2]
    assert (last.duplicate_of, last.story) == ("b", "a")


def test_without_the_link_between_them_two_articles_are_two_stories() -> None:
    last = judge(("a", LINKS[0]), ("c", LINKS[2]))[1]
    assert (last.verdict, last.story, last.duplicate_of) == ("unique", "c", None)


def test_an_article_like_two_stories_does_not_make_them_one() -> None:
    both = text(range(100), range(500, 590))
    found = judge(
        ("a", text(range(100))),
        ("z", text(range(500, 600))),
        ("both", both),
        ("a2", text(range(99))),
        ("z2", text(range(501, 600), [700])),
    )
    assert found[2].verdict == "duplicate"
    assert [found[at].story for at in (0, 1, 3, 4)] == ["a", "z", "a", "z"]


# The same id again -----------------------------------------------------------------------------


def test_the_same_id_with_the_same_words_is_a_redelivery_of_its_story() -> None:
    last = judge(("a", LINKS[0]), ("b", LINKS[1]), ("b", LINKS[1].upper()))[2]
    assert (last.reason, last.duplicate_of, last.story) == ("redelivery", "b", "a")


def test_the_same_id_with_other_words_is_a_revision() -> None:
    near, far = judge(("a", LINKS[0]), ("a", LINKS[1]), ("a", text(range(900, 990))))[1:]
    assert (near.verdict, near.reason, near.duplicate_of) == ("duplicate", "revision", "a")
    assert (far.verdict, far.reason, far.duplicate_of) == ("unique", "revision", None)


@pytest.mark.parametrize(("index_revisions", "reason"), [(True, "exact"), (False, "new")])
def test_a_revision_is_remembered_only_on_request(index_revisions: bool, reason: str) -> None:
    match = MatchConfig(index_revisions=index_revisions)
    other = text(range(900, 990))
    last = judge(("a", LINKS[0]), ("a", other), ("b", other), match=match)[2]
    assert last.reason == reason


@pytest.mark.parametrize("batch", [1, 2, 3, 6])
def test_an_old_revision_is_known_again_however_many_have_come_since_whatever_the_batch(
    batch: int,
) -> None:
    bodies = (LINKS[0], *(text(range(900 + 90 * n, 990 + 90 * n)) for n in range(4)), LINKS[0])
    feed = [Article(id="a", text=body) for body in bodies]
    with Deduplicator.open(None, Config(state=StateConfig(bucket_entries=2))) as deduplicator:
        batches = [feed[first : first + batch] for first in range(0, len(feed), batch)]
        found = [verdict for part in batches for verdict in deduplicator.process(part)]
    reasons = [verdict.reason for verdict in found]
    assert reasons == ["new", *["revision"] * 4, "redelivery"]


# What no index can hold ------------------------------------------------------------------------


def test_what_an_index_cannot_hold_is_refused_and_the_rest_of_the_batch_is_judged() -> None:
    bad = [
        Article(id="", text=LINKS[0]),
        Article(id="x" * 70_000, text=LINKS[0]),
        Article(id="half \ud800", text=LINKS[0]),
        Article(id="far", text=LINKS[0], published=1 << 70),
        Article(id="before", text=LINKS[0], published=-(1 << 60)),
    ]
    good = [Article(id="x" * 65_535, text=LINKS[0]), Article(id="b", text=LINKS[0])]
    with Deduplicator.open(None) as deduplicator:
        outcomes = deduplicator.process([*bad, *good])
        assert deduplicator.store.next_number == 2
    reasons = [getattr(outcome, "reason", None) for outcome in outcomes]
    assert reasons == [*["bad_id"] * 3, "bad_published", "bad_published", "new", "exact"]


# Short and empty articles ----------------------------------------------------------------------


def test_a_short_article_matches_its_exact_copy() -> None:
    last = judge(("a", text(range(15))), ("b", text(range(15)).replace(".", "!")))[1]
    assert (last.duplicate_of, last.measure, last.similarity) == ("a", "exact", 1.0)


def test_a_short_article_matches_nothing_else() -> None:
    found = judge(
        ("long", text(range(100))), ("a", text(range(15))), ("b", text(reversed(range(15))))
    )
    assert [verdict.verdict for verdict in found] == ["unique"] * 3


def test_an_empty_article_is_rejected_and_equals_no_other() -> None:
    with Deduplicator.open(None) as deduplicator:
        empties = [Article(id=id, text=body) for id, body in (("a", ""), ("b", " ... "), ("a", ""))]
        found = deduplicator.process(empties)
        assert deduplicator.store.next_number == 0
    assert [type(outcome) for outcome in found] == [Rejection] * 3
    assert {outcome.reason for outcome in found} == {"empty"}


# Measures and thresholds -----------------------------------------------------------------------

WHOLE = text(range(200))


def test_a_part_of_an_article_is_a_duplicate_by_containment() -> None:
    last = judge(("a", WHOLE), ("part", text(range(24), range(900, 906))))[1]
    assert (last.duplicate_of, last.measure, last.similarity) == ("a", "containment", 0.8)


@pytest.mark.parametrize(("shingles", "verdict"), [(20, "duplicate"), (19, "unique")])
def test_a_part_of_fewer_than_twenty_shingles_proves_nothing(shingles: int, verdict: str) -> None:
    part = text(range(shingles))
    assert candidates(WHOLE, part, MatchConfig()) == 1
    assert judge(("a", WHOLE), ("part", part))[1].verdict == verdict


@pytest.mark.parametrize(
    ("jaccard", "shared"), [(0.5, 100), (0.55, 110), (0.57, 114), (0.7, 140), (0.9, 180)]
)
def test_a_similarity_of_exactly_the_threshold_is_enough_and_one_shingle_less_is_not(
    jaccard: float, shared: int
) -> None:
    match = MatchConfig(jaccard=jaccard, containment_shingles=1_000)
    enough, less = text(range(shared)), text(range(shared - 1))
    assert judge(("a", WHOLE), ("b", enough), match=match)[1].similarity == jaccard
    assert candidates(WHOLE, less, match) == 1
    assert judge(("a", WHOLE), ("b", less), match=match)[1].verdict == "unique"


def test_signatures_are_compared_on_request_and_say_so() -> None:
    match = MatchConfig(verify="signature")
    near, far = judge(
        ("a", text(range(100))),
        ("b", text(range(95), range(200, 205))),
        ("c", text(range(300, 400))),
        match=match,
    )[1:]
    assert (near.duplicate_of, near.measure) == ("a", "signature")
    assert near.similarity == pytest.approx(95 / 105, abs=0.1)
    assert (near.similarity or 0.0) * 128 % 1 == 0.0
    assert far.verdict == "unique"


# Strange ids and texts -------------------------------------------------------------------------

STRANGE = ["\0", "a\0b", "a\0c", "ü" * 32_767, "?", " ", "😀"]


@pytest.mark.parametrize("on_disk", [False, True])
def test_strange_ids_are_kept_apart_and_come_back_whole(on_disk: bool, tmp_path: Path) -> None:
    bodies = [text(range(at * 100, at * 100 + 50)) for at in range(len(STRANGE))]
    feed = [Article(id=id, text=body) for id, body in zip(STRANGE, bodies, strict=True)]
    copies = [Article(id=f"copy {at}", text=body) for at, body in enumerate(bodies)]
    with Deduplicator.open(tmp_path if on_disk else None) as deduplicator:
        assert {outcome.reason for outcome in deduplicator.process(feed)} == {"new"}
        assert {outcome.reason for outcome in deduplicator.process(feed)} == {"redelivery"}
        found = deduplicator.process(copies)
    assert [getattr(verdict, "duplicate_of", None) for verdict in found] == STRANGE
    assert [getattr(verdict, "story", None) for verdict in found] == STRANGE


@pytest.mark.parametrize("strange", ["\0", "\ud800", "\udfff\ud800", "\x1b[31m"])
def test_what_is_no_character_in_a_text_only_separates_words(strange: str) -> None:
    body = text(range(50))
    found = judge(("a", body), ("b", body.replace(" The", f"{strange} The")))
    assert found[1].duplicate_of == "a"


# Applying --------------------------------------------------------------------------------------


def test_a_decision_cannot_be_applied_twice() -> None:
    with Deduplicator.open(None) as deduplicator:
        decision = deduplicator.decide(deduplicator.sketch([Article(id="a", text=WHOLE)]))
        deduplicator.apply(decision)
        with pytest.raises(ValueError, match="has changed"):
            deduplicator.apply(decision)
        assert deduplicator.store.next_number == 1


def test_a_decision_cannot_be_applied_to_an_index_that_has_changed() -> None:
    with Deduplicator.open(None) as deduplicator:
        decision = deduplicator.decide(deduplicator.sketch([Article(id="a", text=WHOLE)]))
        deduplicator.process([Article(id="b", text=WHOLE)])
        with pytest.raises(ValueError, match="has changed"):
            deduplicator.apply(decision)
        assert deduplicator.stats().articles == 1


def test_every_entry_that_a_full_bucket_loses_is_counted() -> None:
    config = Config(state=StateConfig(bucket_entries=4))
    shared_keys = 1 + config.scheme.bands + config.scheme.crop_keys
    with Deduplicator.open(None, config) as deduplicator:
        deduplicator.process([Article(id=f"a{at}", text=WHOLE) for at in range(4)])
        assert deduplicator.stats().cut_entries == 0
        deduplicator.process([Article(id=f"b{at}", text=WHOLE) for at in range(2)])
        assert deduplicator.stats().cut_entries == 2 * shared_keys


def test_a_closed_deduplicator_answers_no_more(tmp_path: Path) -> None:
    for path in (None, tmp_path / "state"):
        deduplicator = Deduplicator.open(path)
        decision = deduplicator.decide(deduplicator.sketch([Article(id="a", text="one word")]))
        deduplicator.close()
        with pytest.raises(StateError, match="closed"):
            deduplicator.process([Article(id="b", text="another word")])
        with pytest.raises(StateError, match="closed"):
            deduplicator.apply(decision)
