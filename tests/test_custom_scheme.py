"""A scheme of ten lines that knows no text runs through the same engine, on both stores."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from plain import TINY, Number, NumberScheme

from streamdedup import Article
from streamdedup.config import Config
from streamdedup.engine import Deduplicator
from streamdedup.schemes.contract import Keys, Payloads
from streamdedup.verdict import Rejection, Verdict

CONFIG = Config(state=TINY)


def numbers(seed: int, count: int) -> list[Number]:
    random = Random(seed)
    return [
        Number(id=f"n{random.randrange(count)}", value=random.randrange(20 * count))
        for _ in range(count)
    ]


def verdicts(path: Path | None, items: list[Number], batch: int) -> list[Verdict | Rejection]:
    with Deduplicator.open(path, CONFIG, scheme=NumberScheme()) as deduplicator:
        return [
            verdict
            for first in range(0, len(items), batch)
            for verdict in deduplicator.process(items[first : first + batch])
        ]


def test_near_integers_are_duplicates() -> None:
    items = [Number("a", 101), Number("b", 109), Number("c", 111), Number("d", 108)]
    found = verdicts(None, items, 2)
    assert [getattr(verdict, "duplicate_of", None) for verdict in found] == [None, "a", None, "b"]


def test_both_stores_give_the_same_verdicts(tmp_path: Path) -> None:
    items = numbers(5, 1_500)
    plain = verdicts(None, items, 64)
    assert verdicts(tmp_path, items, 64) == plain
    assert 100 < sum(getattr(verdict, "verdict", "") == "duplicate" for verdict in plain) < 1_400


def test_batches_do_not_show(tmp_path: Path) -> None:
    items = numbers(6, 600)
    whole = verdicts(None, items, 600)
    assert verdicts(tmp_path / "one by one", items, 1) == whole
    assert verdicts(tmp_path / "by 37", items, 37) == whole


class Overfull(NumberScheme):
    """It promises one key and gives two."""

    def keys(self, payloads: Payloads) -> Keys:
        once = super().keys(payloads)
        starts = np.arange(0, 2 * len(payloads) + 1, 2)
        return Keys(np.repeat(once.values, 2), np.repeat(once.kinds, 2), starts)


def test_a_scheme_that_gives_more_keys_than_it_promises_is_told_so() -> None:
    with (
        Deduplicator.open(None, CONFIG, scheme=Overfull()) as deduplicator,
        pytest.raises(ValueError, match="more keys than its 1"),
    ):
        deduplicator.process([Number("a", 101)])


@pytest.mark.parametrize(
    "article",
    [
        Article(id=5, text="x"),  # type: ignore[arg-type]
        Article(id="a", text=None),  # type: ignore[arg-type]
        Article(id="a", text="x", published=1.5),  # type: ignore[arg-type]
        Article(id="a", text="x", published=True),
    ],
)
def test_a_value_of_the_wrong_type_is_named(article: Article) -> None:
    with Deduplicator.open(None) as deduplicator:
        with pytest.raises(TypeError, match=r"id|text|published"):
            deduplicator.process([article])
        assert deduplicator.store.next_number == 0
