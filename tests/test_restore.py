"""An index made again from records alone answers like the first, and its mark moves with it.

Bands hide faults, so what lies in every bucket is compared, not only verdicts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from crash_child import CONFIG, news

from streamdedup import Article, Deduplicator
from streamdedup.errors import StateDiskError
from streamdedup.store.database import Batch, Database
from streamdedup.store.records import Records

ARTICLES = news(400)


def judged(path: Path | None, batch: int) -> tuple[list[list[int]], list[bytes]]:
    """Bucket contents under every key of the feed, and the records, in order of arrival."""
    records: list[bytes] = []
    with Deduplicator.open(path, CONFIG) as engine:
        for at in range(0, len(ARTICLES), batch):
            decision = engine.decide(engine.sketch(ARTICLES[at : at + batch]))
            engine.apply(decision, b"%d" % (at + batch))
            records.extend(decision.batch.records)
        return buckets(engine), records


def buckets(engine: Deduplicator) -> list[list[int]]:
    keys = engine.sketch(ARTICLES).keys
    hits = engine.store.probe(keys.values, keys.starts)
    return [part.tolist() for part in np.split(hits.numbers, hits.starts[1:-1])]


@pytest.mark.parametrize("chunk", [7, 100, 400])
def test_an_index_made_from_records_has_the_same_buckets(tmp_path: Path, chunk: int) -> None:
    expected, records = judged(tmp_path / "first", 10)
    with Deduplicator.open(tmp_path / "second", CONFIG) as engine:
        for at in range(0, len(records), chunk):
            engine.restore(records[at : at + chunk], b"%d" % at)
        assert buckets(engine) == expected
    with Deduplicator.open(tmp_path / "second", CONFIG) as engine:
        assert buckets(engine) == expected
        assert engine.mark == b"%d" % (range(0, len(records), chunk)[-1])


def test_judging_goes_on_after_a_restore_as_if_nothing_had_happened(tmp_path: Path) -> None:
    copies = [Article(id=f"c{a.id}", text=a.text, published=400_000) for a in ARTICLES]
    _, records = judged(tmp_path / "first", 10)
    with Deduplicator.open(tmp_path / "first", CONFIG) as engine:
        clock = engine.store.clock
        expected = engine.process(copies)
    with Deduplicator.open(tmp_path / "second", CONFIG) as engine:
        for at in range(0, len(records), 90):
            engine.restore(records[at : at + 90], b"m")
        assert engine.store.clock == clock
        assert engine.process(copies) == expected


@pytest.mark.parametrize("kind", ["memory", "rocks"])
def test_a_mark_moves_even_when_nothing_enters(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "state" if kind == "rocks" else None
    with Deduplicator.open(path, CONFIG) as engine:
        assert engine.mark == b""
        engine.apply(engine.decide(engine.sketch(ARTICLES[:1])), b"1")
        again = engine.decide(engine.sketch(ARTICLES[:1]))
        assert len(again.batch.records) == 0
        engine.apply(again, b"2")
        assert engine.mark == b"2"
        engine.restore([], b"3")
        assert engine.mark == b"3"
        engine.process(ARTICLES[1:2])
        assert engine.mark == b"3"
        assert engine.store.next_number == 2
    if path is not None:
        with Deduplicator.open(path, CONFIG) as engine:
            assert engine.mark == b"3"


def test_a_mark_is_not_written_without_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(self: Database, batch: Batch) -> None:
        raise StateDiskError("no space left")

    with Deduplicator.open(tmp_path, CONFIG) as engine:
        decision = engine.decide(engine.sketch(ARTICLES[:5]))
        engine.apply(decision, b"good")
        more = engine.decide(engine.sketch(ARTICLES[5:9]))
        with monkeypatch.context() as patch:
            patch.setattr(Database, "write", full_disk)
            with pytest.raises(StateDiskError):
                engine.apply(more, b"lost")
        assert engine.mark == b"good"
        engine.apply(more, b"again")
        assert (engine.mark, engine.store.next_number) == (b"again", 9)


def test_records_carry_all_that_a_restore_needs() -> None:
    _, encoded = judged(None, 50)
    assert [Records(encoded).id(at).decode() for at in range(3)] == ["n0", "n1", "n2"]
