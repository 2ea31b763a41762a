"""Batches made ahead: how large they are, and what is seen of a thread that makes none."""

from __future__ import annotations

from threading import Event
from time import perf_counter
from typing import Any, cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME
from service import message, wait_until

from streamdedup import Article, Config, Deduplicator
from streamdedup.config import InputConfig, StateConfig
from streamdedup.kafka import ahead as ahead_module
from streamdedup.kafka import intake as intake_module
from streamdedup.kafka.ahead import Ahead
from streamdedup.kafka.intake import Intake
from streamdedup.kafka.source import Source

TEXT = (
    "The harbour authority said on Monday that the ferry was late, and that it was to be expected."
)


class Record:
    """What a consumer gives."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._value = message(Article(id=f"a{offset}", text=f"{TEXT} {offset % 2}"))

    def topic(self) -> str:
        return "articles"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, self._offset

    def value(self) -> bytes:
        return self._value

    def __len__(self) -> int:
        return len(self._value)


class Backlog:
    """A source that always has as much as is asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._next = 0

    def gather(self, most: int, timeout_seconds: float) -> tuple[list[Record], float]:
        self.asked.append(most)
        self._next += most
        return [Record(offset) for offset in range(self._next - most, self._next)], perf_counter()


def test_batches_are_small_where_the_index_proposes_much(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_module, "_MOST_HITS", 2_000)
    monkeypatch.setattr(intake_module, "_LEAST_RECORDS", 5)
    backlog = Backlog()
    config = Config(state=StateConfig(head_articles=64))
    with Deduplicator.open(tmp_path / "state", config) as engine:
        intake = Intake(cast("Source", backlog), InputConfig(), engine, 100)
        for _ in range(6):
            batch = intake.next_batch(0.0)
            assert batch is not None
            assert batch.sketch.foreseen is not None
            hits = len(batch.sketch.foreseen.hits.numbers)
            engine.apply(engine.decide(batch.sketch))
            assert len(batch.sketch.foreseen.hits.numbers) == 0, "it is let go of"
    assert backlog.asked[0] == 100
    assert 5 <= backlog.asked[-1] < 100
    assert hits <= 2 * 2_000


def test_a_thread_that_hangs_is_not_taken_for_a_quiet_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ahead_module, "_HANGING_SECONDS", 0.3)
    hang, let_go = Event(), Event()

    class Quiet:
        def next_batch(self, timeout_seconds: float) -> None:
            if hang.is_set():
                let_go.wait()
            Event().wait(0.05)

    with Ahead(cast("Intake", Quiet())) as ahead:
        for _ in range(5):
            assert ahead.take(0.1) is None
            assert ahead.goes_round
        hang.set()
        wait_until(lambda: not ahead.goes_round, "it to be noticed", 5)
        assert ahead.take(0.0) is None
        let_go.set()
        hang.clear()
        wait_until(lambda: ahead.goes_round, "it to go on", 5)
