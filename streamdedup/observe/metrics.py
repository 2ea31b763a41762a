"""From what the service tells to the metrics of the catalogue, a batch at a time.

It knows neither Kafka nor HTTP.  Whatever costs more than a few dictionary operations waits until
somebody asks for the metrics.
"""

from __future__ import annotations

import gc
import hashlib
import platform
import resource
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import confluent_kafka
import numpy as np

import streamdedup
from streamdedup.kafka.report import (
    BatchReport,
    CommitFailure,
    InputReport,
    Listener,
    Rebalance,
    ReplicaReport,
    RestoreProgress,
    Role,
)
from streamdedup.observe import catalogue as the
from streamdedup.observe.disk import disk_space
from streamdedup.observe.health import HealthWatch
from streamdedup.observe.metric import Labels
from streamdedup.observe.series import Series
from streamdedup.schemes.contract import Traits

_NO_LANGUAGE = "none"
_PAGE_BYTES = resource.getpagesize()
_STATM = Path("/proc/self/statm")


class Metrics(Listener):
    """Counts what it hears."""

    def __init__(
        self,
        health: HealthWatch,
        state_path: Path,
        fingerprint: Mapping[str, str],
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.series = Series(the.CATALOGUE, self._look)
        self._health = health
        self._state_path = state_path
        self._wall_clock = wall_clock
        self._restored = 0
        series = self.series
        series.set(
            the.BUILD,
            1,
            streamdedup.__version__,
            platform.python_version(),
            confluent_kafka.libversion()[0],
        )
        parameters = repr(sorted(fingerprint.items())).encode()
        digest = hashlib.sha256(parameters).hexdigest()[:16]
        series.set(the.SCHEME, 1, digest, fingerprint.get("scheme.name", ""))
        series.set(the.STARTED, wall_clock())

    # -- from the loop -----------------------------------------------------------------------

    def on_batch(self, report: BatchReport) -> None:
        """A batch is out and remembered."""
        series, found = self.series, report.found
        # It was committed before it was applied.
        committed_at = self._wall_clock() - report.seconds.apply
        series.add(the.RECORDS, report.records)
        series.add(the.INPUT_BYTES, report.input_bytes)
        series.add(the.TRANSACTIONS, 1, "committed")
        series.set(the.LAST_BATCH, committed_at)
        for verdict, count in report.verdicts.items():
            series.add(the.ARTICLES, count, *verdict)
            if verdict[0] == "unique":
                series.add(the.STORIES, count)
        for kind, count in report.dead_letters.items():
            series.add(the.DEAD_LETTERS, count, *kind)
        series.observe(the.BATCH_RECORDS, np.array([report.records]))
        arrived_ms = report.timestamps_ms[report.timestamps_ms > 0]
        series.observe(the.LATENCY, np.maximum(committed_at - arrived_ms / 1_000, 0.0))
        for stage, seconds in asdict(report.seconds).items():
            series.observe(the.STAGE, np.array([seconds]), stage)
        series.observe(the.CANDIDATES, found.by_article)
        series.add(the.PROPOSED, int(found.by_article.sum()))
        series.add(the.VERIFIED, found.verified)
        series.observe(the.SIMILARITY, found.similarities)
        series.add(the.OVERFLOW, found.cut_entries)
        if report.traits is not None:
            self._traits(report.traits)

    def on_commit_failure(self, failure: CommitFailure) -> None:
        """A batch may or may not be out."""
        self.series.add(the.TRANSACTIONS, 1, failure)

    def on_rebalance(self, rebalance: Rebalance) -> None:
        """The group has decided something."""
        self.series.add(the.REBALANCES, 1, rebalance)

    def on_role(self, role: Role) -> None:
        """The instance does something else now."""
        self.series.set_one(the.ROLE, role)

    def on_released(self) -> None:
        """What was known of the input is another instance's now."""
        self.series.replace(the.LAG, {})
        self.series.replace(the.POSITION, {})

    def on_input(self, report: InputReport) -> None:
        """How far the input is."""
        positions: dict[Labels, float] = {}
        lags: dict[Labels, float] = {}
        for (topic, partition), position in report.positions.items():
            positions[topic, str(partition)] = position
        for (topic, partition), end in report.ends.items():
            lag = end - report.positions.get((topic, partition), end)
            lags[topic, str(partition)] = max(0, lag)
        self.series.replace(the.POSITION, positions)
        self.series.replace(the.LAG, lags)

    def on_restore(self, progress: RestoreProgress) -> None:
        """Some of the changelog was read."""
        # A report counts from the beginning of its restore.
        new = progress.records - self._restored
        self.series.add(the.RESTORED, max(0, new))
        self._restored = 0 if progress.done else progress.records
        self.series.set(the.RESTORE_SECONDS, progress.seconds)

    def on_replica(self, report: ReplicaReport) -> None:
        """How the index is."""
        series, store = self.series, report.store
        series.set(the.INDEXED, store.articles)
        series.set(the.SEGMENTS, store.segments)
        series.set(the.FILTER_BYTES, store.filter_bytes)
        series.set(the.CLOCK, report.clock_ms / 1_000)
        bounded = report.clock_ms and report.window_ms
        start_ms = report.clock_ms - report.window_ms if bounded else 0
        series.set(the.WINDOW_START, start_ms / 1_000)
        series.set(the.CHANGELOG_POSITION, report.changelog_next)
        series.set(the.CHANGELOG_END, report.changelog_end)
        there = report.changelog_end - report.changelog_first
        share = (report.changelog_next - report.changelog_first) / there if there else 1.0
        series.set(the.RESTORE, 1.0 if report.caught_up else share)
        rocks = store.database
        series.set(the.TABLE_BYTES, rocks.table_bytes)
        series.set(the.MEMTABLE_BYTES, rocks.memtable_bytes)
        series.set(the.PENDING_COMPACTION, rocks.pending_compaction_bytes)
        series.set(the.COMPACTIONS, rocks.running_compactions)
        series.set(the.BACKGROUND_ERRORS, rocks.background_errors)
        series.set(the.CACHE_BYTES, rocks.cache_bytes)
        # These begin anew with every opening of the index, which Prometheus takes as a reset.
        series.set(the.PAGES_READ, store.pages_read)
        series.set(the.WRITE_STALLED, rocks.stalled_seconds)
        series.set(the.CACHE_HITS, rocks.cache_hits)
        series.set(the.CACHE_MISSES, rocks.cache_misses)

    def on_trouble(self, text: str, kind: str = "trouble", **about: str) -> None:
        """Something went wrong."""
        self.series.add(the.TROUBLES, 1)

    def on_connection(self, text: str) -> None:
        """A connection broke."""
        self.series.add(the.CONNECTION_ERRORS, 1)

    # -- inside ------------------------------------------------------------------------------

    def _traits(self, traits: Traits) -> None:
        series, names = self.series, traits.language_names
        series.observe(the.SHINGLES, traits.features)
        counts = np.bincount(np.minimum(traits.languages, len(names)), minlength=len(names) + 1)
        for language in np.flatnonzero(counts).tolist():
            name = names[language].replace(" ", "/") if language < len(names) else _NO_LANGUAGE
            series.add(the.LANGUAGES, int(counts[language]), name)

    def _look(self) -> None:
        """What is known without the loop, at the moment of the question."""
        series, health = self.series, self._health.now()
        series.set_one(the.STATE, health.state)
        series.set(the.READY, health.ready)
        series.set(the.TICK_AGE, health.tick_age_seconds)
        try:
            space = disk_space(self._state_path.absolute())
        except OSError:
            series.replace(the.DISK_FREE, {})
        else:
            series.set(the.DISK_FREE, space.free_bytes)
            series.set(the.DISK_SIZE, space.size_bytes)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        series.set(the.CPU, usage.ru_utime + usage.ru_stime)
        series.set(the.RESIDENT, _resident_bytes(usage))
        series.set(the.THREADS, threading.active_count())
        for generation, counts in enumerate(gc.get_stats()):
            series.set(the.GC_RUNS, counts["collections"], str(generation))


def _resident_bytes(usage: resource.struct_rusage) -> int:
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
    except OSError:  # no /proc: the largest that it ever was
        return usage.ru_maxrss * 1_024
