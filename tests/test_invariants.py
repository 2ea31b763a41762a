"""What must hold for every feed: the cut into batches, the store and the process never show.
Feeds are small on purpose and full of trouble: few ids, few texts, tiny buckets, a short window.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from conftest import HARBOUR, ORCHARD, Run, json_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamdedup import Article, Config, Deduplicator, Rejection, Verdict, load_config
from streamdedup.article import rfc3339
from streamdedup.config import MatchConfig, StateConfig, WindowConfig
from streamdedup.engine import Decision
from streamdedup.errors import StateMismatch
from streamdedup.text.shingler import Shingler
from streamdedup.verdict import encode_verdict

Outcomes = list[Verdict | Rejection]

HOUR_MS = 3_600_000
START_MS = 20_000 * 24 * HOUR_MS
BASES = [text.split() for text in (HARBOUR, ORCHARD, HARBOUR + " " + ORCHARD)]
few = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


def variant(base: int, first: int, words: int, edits: int) -> str:
    """A part of a story with every so many words replaced; no words at all is an empty article."""
    part = BASES[base][first : first + words]
    if edits:
        part = ["zebra" if at % edits == edits - 1 else word for at, word in enumerate(part)]
    return " ".join(part)


texts = st.builds(
    variant,
    base=st.integers(0, len(BASES) - 1),
    first=st.sampled_from([0, 0, 0, 1, 30, 60]),
    words=st.sampled_from([0, 5, 40, 70, 90, 120, 300]),
    edits=st.sampled_from([0, 0, 9, 17, 40]),
)
times = st.one_of(st.none(), st.integers(0, 90).map(lambda hour: START_MS + hour * HOUR_MS))
articles = st.builds(Article, id=st.sampled_from("abcdefghijkl"), text=texts, published=times)
feeds = st.lists(articles, min_size=20, max_size=60)
splits = st.lists(st.sampled_from([1, 2, 3, 7, 16, 17, 40]), min_size=1, max_size=8)
configs = st.builds(
    lambda bucket_entries, index_revisions, hours: Config(
        match=MatchConfig(index_revisions=index_revisions),
        window=WindowConfig(seconds=hours * 3_600),
        state=StateConfig(head_articles=16, fan_in=2, bucket_entries=bucket_entries, cache_mib=8),
    ),
    bucket_entries=st.sampled_from([1, 2, 4, 32]),
    index_revisions=st.booleans(),
    hours=st.sampled_from([0, 10, 40]),
)


def batches(feed: list[Article], split: list[int]) -> Iterator[list[Article]]:
    first = 0
    for size in cycle(split):
        if first >= len(feed):
            return
        yield feed[first : first + size]
        first += size


def judged(feed: list[Article], split: list[int], config: Config, path: Path | None) -> Outcomes:
    with Deduplicator.open(path, config) as deduplicator:
        return [v for batch in batches(feed, split) for v in deduplicator.process(batch)]


@contextmanager
def both_stores(config: Config) -> Iterator[list[Deduplicator]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Deduplicator.open(None, config) as memory,
        Deduplicator.open(folder, config) as rocks,
    ):
        yield [memory, rocks]


@few
@given(feed=feeds, split=splits, config=configs)
def test_the_cut_into_batches_never_changes_a_verdict_in_memory(
    feed: list[Article], split: list[int], config: Config
) -> None:
    assert judged(feed, split, config, None) == judged(feed, [1], config, None)


@few
@given(feed=feeds, split=splits, config=configs)
def test_the_cut_into_batches_never_changes_a_verdict_on_disk_which_are_those_of_memory(
    feed: list[Article], split: list[int], config: Config
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = judged(feed, split, config, Path(folder))
    assert found == judged(feed, [1], config, None)


@settings(few, max_examples=15)
@given(feed=feeds, split=splits, config=configs)
def test_closing_between_batches_never_changes_a_verdict(
    feed: list[Article], split: list[int], config: Config
) -> None:
    found: Outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for batch in batches(feed, [7, *split]):
            found += judged(batch, [60], config, Path(folder))
    assert found == judged(feed, [1], config, None)


def test_processes_with_other_hash_seeds_write_the_same_bytes_as_an_index_in_memory(
    run: Run,
) -> None:
    feed = [
        Article(
            id=f"n{at % 30}",
            text=variant(at % 25 % 3, at % 25 % 7 * 10, 40 + at % 25 * 9, at % 5 * 8),
            published=START_MS + at * HOUR_MS,
        )
        for at in range(150)
    ]
    overrides = ["state.head_articles=16", "state.fan_in=2", "window.seconds=144000"]
    verdicts = judged(feed, [1], load_config(overrides=overrides, environ={}), None)
    expected = "".join(
        encode_verdict(verdict).decode() + "\n"
        for verdict in verdicts
        if isinstance(verdict, Verdict)
    )
    lines = json_lines(
        {"id": a.id, "text": a.text, "published": rfc3339(a.published or 0)} for a in feed
    )
    sets = [word for override in overrides for word in ("--set", override)]
    for seed in ("1", "2"):
        done = run("scan", "-", *sets, "--batch", "13", stdin=lines, env={"PYTHONHASHSEED": seed})
        assert done.out == expected
    assert {v.reason for v in verdicts} >= {"new", "near", "exact", "revision"}


def contents(decision: Decision) -> tuple[object, ...]:
    batch = decision.batch
    arrays = (batch.seen_ms.tolist(), batch.keys.tolist(), batch.key_starts.tolist())
    return (decision.outcomes, list(batch.records), *arrays, decision.candidates)


@settings(few, max_examples=15)
@given(feed=feeds, config=configs)
def test_deciding_twice_gives_equal_decisions(feed: list[Article], config: Config) -> None:
    with both_stores(config) as stores:
        for deduplicator in stores:
            deduplicator.process(feed[:18])
            sketch = deduplicator.sketch(feed[18:])
            first = contents(deduplicator.decide(sketch))
            assert contents(deduplicator.decide(sketch)) == first


@settings(few, max_examples=15)
@given(feed=feeds, other=feeds, config=configs)
def test_a_decision_that_is_not_applied_changes_nothing(
    feed: list[Article], other: list[Article], config: Config
) -> None:
    expected = judged(feed, [18], config, None)
    with both_stores(config) as stores:
        for deduplicator in stores:
            found = deduplicator.process(feed[:18])
            store = deduplicator.store
            before = (store.next_number, store.watermark_ms)
            deduplicator.decide(deduplicator.sketch(other))
            assert (store.next_number, store.watermark_ms) == before
            for batch in batches(feed[18:], [18]):
                found += deduplicator.process(batch)
            assert found == expected


@few
@given(
    bodies=st.lists(texts, min_size=20, max_size=60),
    jaccard=st.sampled_from([0.3, 0.5, 0.55, 0.7, 0.9]),
    containment=st.sampled_from([0.6, 0.8, 1.0]),
)
def test_a_verified_duplicate_is_as_similar_as_it_says_and_similar_enough(
    bodies: list[str], jaccard: float, containment: float
) -> None:
    match = MatchConfig(jaccard=jaccard, containment=containment)
    feed = [Article(id=str(at), text=body) for at, body in enumerate(bodies)]
    cut = Shingler().shingle(bodies)
    for verdict in judged(feed, [9], Config(match=match), None):
        if isinstance(verdict, Rejection) or verdict.duplicate_of is None:
            continue
        one, other = (set(cut.of(int(id)).tolist()) for id in (verdict.id, verdict.duplicate_of))
        common, smaller = len(one & other), min(len(one), len(other))
        if verdict.measure == "exact":
            assert (verdict.similarity, one) == (1.0, other)
        elif verdict.measure == "jaccard":
            assert verdict.similarity == common / len(one | other)
            assert verdict.similarity >= jaccard
        else:
            assert verdict.measure == "containment"
            assert verdict.similarity == common / smaller
            assert verdict.similarity >= containment
            assert smaller >= match.containment_shingles


@settings(few, max_examples=25)
@given(feed=feeds, split=splits, again=splits)
def test_a_replayed_feed_is_all_redeliveries_and_leaves_the_index_as_it_was(
    feed: list[Article], split: list[int], again: list[int]
) -> None:
    config = Config(
        window=WindowConfig(seconds=0),
        state=StateConfig(head_articles=16, fan_in=2, bucket_entries=64, cache_mib=8),
    )
    with both_stores(config) as stores:
        for deduplicator in stores:
            for batch in batches(feed, split):
                deduplicator.process(batch)
            end = deduplicator.store.next_number
            for batch in batches(feed, again):
                for verdict in deduplicator.process(batch):
                    assert verdict.reason in ("redelivery", "empty")
            assert deduplicator.store.next_number == end


OTHER_VALUES = {
    "scheme.name": st.just("shingles"),
    "scheme.bands": st.integers(0, 40).filter(lambda bands: bands != 8),
    "scheme.rows": st.integers(1, 9).filter(lambda rows: rows != 3),
    "scheme.crop_keys": st.integers(0, 40).filter(lambda keys: keys != 24),
    "scheme.min_shingles": st.integers(1, 40).filter(lambda floor: floor != 16),
    "scheme.stop_share": st.sampled_from([0.0, 0.2, 1.0]),
    "match.verify": st.just("signature"),
    "state.head_articles": st.integers(17, 99),
    "state.fan_in": st.sampled_from([4, 8, 16]),
    "state.filter_bits": st.integers(4, 32).filter(lambda bits: bits != 16),
    "state.bucket_entries": st.integers(1, 31),
}
TINY_HEAD = ["state.head_articles=16", "state.fan_in=2", "state.cache_mib=8"]
other_parameters = st.sampled_from(sorted(OTHER_VALUES)).flatmap(
    lambda key: st.tuples(st.just(key), OTHER_VALUES[key].map(str))
)


@pytest.fixture(scope="module")
def used_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("state")
    feed = [Article(id=str(at), text=HARBOUR + f" The {at} more words.") for at in range(40)]
    judged(feed, [10], load_config(overrides=TINY_HEAD, environ={}), path)
    return path


@few
@given(changed=other_parameters)
def test_a_directory_made_with_another_parameter_is_refused_and_the_parameter_named(
    used_state: Path, changed: tuple[str, str]
) -> None:
    key, value = changed
    config = load_config(overrides=[*TINY_HEAD, f"{key}={value}"], environ={})
    with pytest.raises(StateMismatch) as refusal:
        Deduplicator.open(used_state, config)
    name = key.replace("scheme.stop_share", "text.stop_share")
    line = next(row for row in str(refusal.value).splitlines() if row.strip().startswith(name))
    assert line.endswith(f"the configuration {value}")


def test_what_is_no_part_of_the_index_may_change(used_state: Path) -> None:
    changes = [
        "match.jaccard=0.9",
        "match.containment=1.0",
        "match.containment_shingles=7",
        "match.index_revisions=false",
        "window.seconds=0",
        "state.cache_mib=9",
    ]
    config = load_config(overrides=[*TINY_HEAD, *changes], environ={})
    with Deduplicator.open(used_state, config) as deduplicator:
        assert deduplicator.store.next_number == 40
        numbers = np.arange(40)
        assert len(deduplicator.store.fetch(numbers)) == 40
