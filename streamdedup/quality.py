"""How good verdicts are, measured against articles whose true clusters are known.

Pure arithmetic over ids and labels; where the verdicts came from does not matter.

An article is *owed* a duplicate verdict if an earlier one of its cluster was seen, in the order of
the verdicts.  A duplicate verdict is *right* if `duplicate_of` lies in the article's own cluster.
Each id is scored once, at its first verdict: redeliveries and revisions, which name themselves as
what they copy, would only flatter the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import comb
from typing import Literal

import msgspec

from streamdedup.verdict import Verdict


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One scored verdict.  `mate` is the first article of the cluster that was seen before."""

    id: str
    cluster: Hashable
    story: str
    duplicate_of: str | None
    right: bool
    owed: bool
    mate: str | None


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """All scored verdicts, and how many had to be left out and why."""

    scored: tuple[Judged, ...]
    repeated: int
    unknown: int
    missing: int


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Scores between 0 and 1, except `ari`, which is 0 for chance and may be below."""

    precision: float
    recall: float
    f1: float
    ari: float
    tp: int
    fp: int
    fn: int
    articles: int
    clusters: int
    stories: int


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """`wrong`: called a copy of an article it does not belong with; `missed`: not called a copy."""

    kind: Literal["wrong", "missed"]
    id: str
    cluster: str
    duplicate_of: str | None
    expected: str | None


def judge(verdicts: Iterable[Verdict], clusters: Mapping[str, Hashable]) -> Judgement:
    """Hold every verdict against the truth, in order."""
    first_of: dict[Hashable, str] = {}
    seen: set[str] = set()
    scored: list[Judged] = []
    repeated = unknown = 0
    for verdict in verdicts:
        if verdict.id not in clusters:
            unknown += 1
            continue
        if verdict.id in seen or verdict.reason in ("redelivery", "revision"):
            seen.add(verdict.id)
            repeated += 1
            continue
        seen.add(verdict.id)
        cluster = clusters[verdict.id]
        mate = first_of.setdefault(cluster, verdict.id)
        target = verdict.duplicate_of if verdict.verdict == "duplicate" else None
        right = target is not None and target in clusters and clusters[target] == cluster
        scored.append(
            Judged(
                id=verdict.id,
                cluster=cluster,
                story=verdict.story,
                duplicate_of=target,
                right=right,
                # A right target that is not among these verdicts was seen in an earlier run.
                owed=mate != verdict.id or right,
                mate=mate if mate != verdict.id else None,
            )
        )
    return Judgement(
        scored=tuple(scored),
        repeated=repeated,
        unknown=unknown,
        missing=sum(1 for id in clusters if id not in seen),
    )


def figures(scored: Sequence[Judged]) -> Figures:
    """The figures; where nothing was said or nothing was owed, there was nothing to get wrong: 1.

    An owed article called a copy of the wrong one counts twice, as said wrongly and as missed.
    """
    tp = sum(1 for judged in scored if judged.right)
    fp = sum(1 for judged in scored if judged.duplicate_of is not None and not judged.right)
    fn = sum(1 for judged in scored if judged.owed and not judged.right)
    labels = [(judged.cluster, judged.story) for judged in scored]
    return Figures(
        precision=_share(tp, tp + fp),
        recall=_share(tp, tp + fn),
        f1=_share(2 * tp, 2 * tp + fp + fn),
        ari=adjusted_rand_index(labels),
        tp=tp,
        fp=fp,
        fn=fn,
        articles=len(scored),
        clusters=len({cluster for cluster, _ in labels}),
        stories=len({story for _, story in labels}),
    )


def mistakes(scored: Iterable[Judged]) -> list[Mistake]:
    """Every scored verdict that is wrong or was missed, in order."""
    return [
        Mistake(
            kind="missed" if judged.duplicate_of is None else "wrong",
            id=judged.id,
            cluster=str(judged.cluster),
            duplicate_of=judged.duplicate_of,
            expected=judged.mate,
        )
        for judged in scored
        if not judged.right and (judged.owed or judged.duplicate_of is not None)
    ]


def adjusted_rand_index(labels: Sequence[tuple[Hashable, Hashable]]) -> float:
    """Agreement of two partitions given as (label in one, label in the other) for each item.

    Of all pairs of items, it counts those that both put together, less what chance would give.

    >>> round(adjusted_rand_index([("a", 1), ("a", 1), ("b", 2), ("b", 3)]), 4)
    0.5714
    """
    together = sum(comb(n, 2) for n in Counter(labels).values())
    in_one = sum(comb(n, 2) for n in Counter(one for one, _ in labels).values())
    in_other = sum(comb(n, 2) for n in Counter(other for _, other in labels).values())
    pairs = comb(len(labels), 2)
    if in_one == in_other == together:
        # The partitions are the same; the formula would divide by zero for the trivial ones.
        return 1.0
    by_chance = in_one * in_other / pairs
    return (together - by_chance) / ((in_one + in_other) / 2 - by_chance)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
