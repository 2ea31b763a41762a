"""From what the service tells to time series: counted right, and cleared when it must be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streamdedup.engine import Found
from streamdedup.kafka.report import (
    BatchReport,
    CommitFailure,
    InputReport,
    Rebalance,
    ReplicaReport,
    RestoreProgress,
    Role,
    StageSeconds,
)
from streamdedup.observe import catalogue as the
from streamdedup.observe.health import HealthWatch
from streamdedup.observe.metrics import Metrics
from streamdedup.schemes.contract import Traits
from streamdedup.store.figures import StoreFigures

NOW = 1_700_000_000.0


def metrics(path: Path, clock: Callable[[], float] = lambda: 0.0) -> Metrics:
    health = HealthWatch(clock, lambda: "", stuck_seconds=60)
    return Metrics(health, path, {"scheme.name": "news"}, wall_clock=lambda: NOW)


def samples(watched: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """As Prometheus reads them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(watched.series)
    text = generate_latest(registry).decode()
    return {
        (
            sample.name.removeprefix("streamdedup_"),
            tuple(sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def batch(**changes: object) -> BatchReport:
    values: dict[str, object] = {
        "records": 4,
        "input_bytes": 1_000,
        "verdicts": {("unique", "new"): 2, ("duplicate", "near"): 1},
        "dead_letters": {("decode", "bad_json"): 1},
        "refused": (),
        "found": Found(np.array([0, 3, 1]), 2, np.array([0.85]), 7),
        "traits": Traits(
            np.array([10, 500, 500]), np.array([0, 1, 255], np.uint8), ("en", "id ms")
        ),
        "timestamps_ms": np.array([NOW * 1e3 - 20, NOW * 1e3 - 2_000, -1], np.int64),
        "positions": {("articles", 0): 4},
        "seconds": StageSeconds(probe=0.02, apply=0.01),
    }
    return BatchReport(**(values | changes))  # type: ignore[arg-type]


def test_a_batch_is_counted_by_verdict_reason_and_stage(tmp_path: Path) -> None:
    watched = metrics(tmp_path)
    watched.on_batch(batch())
    watched.on_batch(batch())
    seen = samples(watched)
    assert seen["records_total", ()] == 8
    assert seen["articles_total", (("reason", "new"), ("verdict", "unique"))] == 4
    assert seen["articles_total", (("reason", "exact"), ("verdict", "duplicate"))] == 0
    assert seen["dead_letters_total", (("reason", "bad_json"), ("stage", "decode"))] == 2
    assert seen["stories_total", ()] == 4
    assert seen["candidates_total", ()] == 8
    assert seen["candidates_verified_total", ()] == 4
    assert seen["bucket_overflow_total", ()] == 14
    assert seen["transactions_total", (("result", "committed"),)] == 2
    assert seen["articles_language_total", (("language", "id/ms"),)] == 2
    assert seen["articles_language_total", (("language", "none"),)] == 2


def test_histograms_count_every_article_and_every_batch(tmp_path: Path) -> None:
    watched = metrics(tmp_path)
    watched.on_batch(batch())
    seen = samples(watched)
    assert seen["candidates_per_article_count", ()] == 3
    assert seen["candidates_per_article_sum", ()] == 4
    assert seen["candidates_per_article_bucket", (("le", "0.0"),)] == 1
    assert seen["candidates_per_article_bucket", (("le", "3.0"),)] == 3
    assert seen["similarity_ratio_bucket", (("le", "0.8"),)] == 0
    assert seen["similarity_ratio_bucket", (("le", "0.85"),)] == 1
    assert seen["similarity_ratio_bucket", (("le", "+Inf"),)] == 1
    assert seen["stage_seconds_sum", (("stage", "probe"),)] == 0.02
    # A record without a timestamp has no latency.
    assert seen["latency_seconds_count", ()] == 2
    assert seen["latency_seconds_bucket", (("le", "0.01"),)] == 1


def test_the_lag_is_gone_when_ownership_is(tmp_path: Path) -> None:
    watched = metrics(tmp_path)
    place = (("partition", "0"), ("topic", "articles"))
    watched.on_input(InputReport({("articles", 0): 10}, {("articles", 0): 4}))
    assert samples(watched)["input_lag_records", place] == 6
    watched.on_input(InputReport({("articles", 0): 3}, {("articles", 0): 4}))
    assert samples(watched)["input_lag_records", place] == 0
    watched.on_released()
    assert not [
        name for name, _ in samples(watched) if name in ("input_lag_records", "input_position")
    ]


def test_one_role_is_one_and_the_others_are_zero(tmp_path: Path) -> None:
    watched = metrics(tmp_path)
    watched.on_role(Role.STANDBY)
    watched.on_role(Role.WORKING)
    seen = samples(watched)
    roles = {role: seen["role", (("role", str(role)),)] for role in Role}
    assert roles == {role: float(role is Role.WORKING) for role in Role}


def test_failures_rebalances_and_troubles_are_counted(tmp_path: Path) -> None:
    watched = metrics(tmp_path)
    watched.on_commit_failure(CommitFailure.FENCED)
    watched.on_rebalance(Rebalance.ASSIGNED)
    watched.on_trouble("something")
    watched.on_connection("lost")
    seen = samples(watched)
    assert seen["transactions_total", (("result", "fenced"),)] == 1
    assert seen["transactions_total", (("result", "failed"),)] == 0
    assert seen["rebalances_total", (("kind", "assigned"),)] == 1
    assert seen["troubles_total", ()] == seen["connection_errors_total", ()] == 1


def test_restored_articles_are_counted_once(tmp_path: Path) -> None:
    watched = metrics(tmp_path)
    for records, at in ((100, 100), (250, 250), (300, 300)):
        watched.on_restore(RestoreProgress(records, at, 300, 1.0))
    watched.on_restore(RestoreProgress(50, 350, 350, 1.0))  # another one, later
    assert samples(watched)["restored_articles_total", ()] == 350


def test_a_restore_begins_at_nothing_though_retention_has_taken_the_changelogs_beginning(
    tmp_path: Path,
) -> None:
    watched = metrics(tmp_path)

    def progress(at: int) -> float:
        report = ReplicaReport(StoreFigures(0), 0, 0, 900, at, 1_000, at == 1_000, 0.0)
        watched.on_replica(report)
        return samples(watched)["restore_progress_ratio", ()]

    assert [progress(at) for at in (900, 950, 1_000)] == [0.0, 0.5, 1.0]


def test_what_a_batch_without_articles_brings_is_no_error(tmp_path: Path) -> None:
    nothing = Found(np.zeros(0, np.int64), 0, np.zeros(0), 0)
    no_traits = Traits(np.zeros(0, np.int64), np.zeros(0, np.uint8), ("en",))
    watched = metrics(tmp_path)
    watched.on_batch(batch(verdicts={}, found=nothing, traits=no_traits))
    seen = samples(watched)
    assert seen["records_total", ()] == 4
    assert seen["shingles_per_article_count", ()] == 0


def test_the_process_and_the_disk_are_looked_at_when_somebody_asks(tmp_path: Path) -> None:
    watched = metrics(tmp_path / "not" / "there" / "yet")
    seen = samples(watched)
    assert seen["process_resident_memory_bytes", ()] > 1 << 20
    assert seen["disk_size_bytes", ()] >= seen["disk_free_bytes", ()] > 0
    assert watched.series.value(the.STARTED) == NOW
