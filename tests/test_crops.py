"""Cropped copies are found, wherever the crop lies, and nothing else is taken for one.
The articles are made here: English stop words at their usual share, content words by Zipf's law.
"""

from __future__ import annotations

from random import Random

import pytest

from streamdedup import Article, Deduplicator, Verdict

ARTICLES, WORDS = 600, 550
STOP_SHARE = 0.45
STOP_TEXT = (
    "the the the the the the of of of and and and to to to a a a in in in is that that for for it "
    "was on on with as he be at by by his this have from not are but had they she which or we an "
    "were been has their would there what will all if can her said who one so"
)
STOPS = STOP_TEXT.split()


def vocabulary(random: Random, count: int) -> list[str]:
    syllables = [c + v for c in "bcdfghjklmnprstvwz" for v in ("a", "e", "i", "o", "u", "ar", "en")]
    return ["".join(random.choices(syllables, k=random.randint(2, 4))) for _ in range(count)]


def originals(seed: int) -> list[list[str]]:
    random = Random(seed)
    content = vocabulary(random, 8_000)
    # Zipf's law over the content words, as running sums.
    weights, total = [], 0.0
    for rank in range(1, len(content) + 1):
        total += 1.0 / (rank + 20)
        weights.append(total)
    return [
        [
            random.choice(STOPS)
            if random.random() < STOP_SHARE
            else random.choices(content, cum_weights=weights)[0]
            for _ in range(WORDS)
        ]
        for _ in range(ARTICLES)
    ]


FEED = originals(20_261_118)


def judged(deduplicator: Deduplicator, bodies: list[list[str]], prefix: str) -> list[Verdict]:
    articles = [Article(id=f"{prefix}{at}", text=" ".join(body)) for at, body in enumerate(bodies)]
    found = [verdict for verdict in deduplicator.process(articles) if isinstance(verdict, Verdict)]
    assert len(found) == len(bodies)
    return found


def crops(keep: float) -> list[list[str]]:
    random = Random(7)
    length = round(WORDS * keep)
    firsts = [random.randint(0, WORDS - length) for _ in FEED]
    return [body[first : first + length] for body, first in zip(FEED, firsts, strict=True)]


def test_unrelated_articles_are_all_unique() -> None:
    with Deduplicator.open(None) as deduplicator:
        assert {verdict.verdict for verdict in judged(deduplicator, FEED, "o")} == {"unique"}


@pytest.mark.parametrize(("keep", "least_found"), [(1 / 2, 0.99), (1 / 3, 0.99), (1 / 4, 0.97)])
def test_a_contiguous_crop_is_found(keep: float, least_found: float) -> None:
    with Deduplicator.open(None) as deduplicator:
        judged(deduplicator, FEED, "o")
        found = judged(deduplicator, crops(keep), "c")
    stories = [verdict.story == f"o{at}" for at, verdict in enumerate(found)]
    assert sum(stories) >= least_found * ARTICLES


@pytest.mark.parametrize("keep", [1 / 3, 1 / 4])
def test_no_crop_is_matched_with_an_unrelated_article(keep: float) -> None:
    with Deduplicator.open(None) as deduplicator:
        judged(deduplicator, FEED, "o")
        found = judged(deduplicator, crops(keep), "c")
    wrong = [
        (verdict.id, verdict.duplicate_of)
        for at, verdict in enumerate(found)
        if verdict.duplicate_of not in (None, f"o{at}")
    ]
    assert wrong == []
