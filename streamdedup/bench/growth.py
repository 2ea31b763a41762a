"""How the cost of an article grows with the index: many synthetic articles, every batch timed.

Making the articles is not timed.  Everything else is: min-hash, keys, probe, verify, verdicts,
the write, and the upkeep of the index.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any

import numpy as np

from streamdedup.article import Article
from streamdedup.bench.stages import Stages
from streamdedup.bench.synthetic import CutScheme, synthetic_batch
from streamdedup.config import Config
from streamdedup.engine import Deduplicator
from streamdedup.store.rocks import RocksStore
from streamdedup.verdict import Verdict
from streamdedup.warm import warm_up

PARTS = 10
JUDGED_FROM = 1_000_000  # the targets are those of three million: a small index has other figures
TARGETS = {
    "last_to_second_tenth": 1.5,
    "slowest_to_median_batch": 20.0,
    "peak_rss_bytes": 1.2e9,
    "disk_bytes_per_article": 1_400.0,
}


@dataclass
class Tenth:
    """One tenth of the run: costs in microseconds an article, and the index at its end."""

    articles: int
    wall_us: float
    cpu_us: float
    segments: int
    disk_bytes: int


@dataclass
class Growth:
    """Everything that one run found out."""

    articles: int
    batch: int
    planted: int = 0
    found: int = 0
    wrong: int = 0
    candidates: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    batch_ms: list[float] = field(default_factory=list)
    tenths: list[Tenth] = field(default_factory=list)
    stages_us: dict[str, float] = field(default_factory=dict)
    peak_rss_bytes: int = 0
    disk_bytes: int = 0
    segments: int = 0

    def figures(self) -> dict[str, Any]:
        """The figures by name, as `--json` prints them."""
        median = float(np.median(self.batch_ms))
        measured = {
            "last_to_second_tenth": self.tenths[-1].wall_us / self.tenths[1].wall_us,
            "slowest_to_median_batch": max(self.batch_ms) / median,
            "peak_rss_bytes": self.peak_rss_bytes,
            "disk_bytes_per_article": self.disk_bytes / self.articles,
        }
        return {
            "articles": self.articles,
            "batch": self.batch,
            "wall_us_per_article": 1e6 * self.seconds / self.articles,
            "cpu_us_per_article": 1e6 * self.cpu_seconds / self.articles,
            "median_batch_ms": median,
            "slowest_batch_ms": max(self.batch_ms),
            **measured,
            "disk_bytes": self.disk_bytes,
            "segments": self.segments,
            "planted_share": self.planted / self.articles,
            "found_share": (self.found + self.wrong) / self.articles,
            "recall": self.found / self.planted if self.planted else 1.0,
            "wrong": self.wrong,
            "candidates_per_article": self.candidates / self.articles,
            "stages_us": self.stages_us,
            "tenths": [vars(tenth) for tenth in self.tenths],
            "targets": {
                name: {
                    "most": most,
                    "measured": measured[name],
                    "reached": measured[name] <= most if self.articles >= JUDGED_FROM else None,
                }
                for name, most in TARGETS.items()
            },
        }


def grow(
    state: Path, config: Config, articles: int, batch: int, on_batch: Callable[[int], None]
) -> Growth:
    """Fill a new index in `state`; `on_batch` hears how many articles are done."""
    warm_up(config)
    synthetic_batch(0, 1)
    growth = Growth(articles=articles, batch=batch)
    stages = Stages()
    scheme = CutScheme(config.scheme, config.match)
    with Deduplicator.open(state, config, scheme=scheme) as deduplicator:
        stages.watch(deduplicator)
        try:
            _fill(deduplicator, scheme, growth, state, on_batch)
        finally:
            stages.stop()
        assert isinstance(deduplicator.store, RocksStore)
        growth.segments = deduplicator.store.segments
        growth.candidates = deduplicator.stats().candidates
    growth.disk_bytes = disk_bytes(state)
    growth.peak_rss_bytes = peak_rss_bytes()
    growth.stages_us = {
        stage: 1e6 * seconds / articles for stage, seconds in stages.wall_s.items() if seconds
    }
    return growth


def _fill(
    deduplicator: Deduplicator,
    scheme: CutScheme,
    growth: Growth,
    state: Path,
    on_batch: Callable[[int], None],
) -> None:
    done = part = part_start = 0
    part_wall = part_untimed_cpu = 0.0
    part_cpu = process_time()
    while done < growth.articles:
        count = min(growth.batch, growth.articles - done)
        untimed = thread_time()
        synthetic = synthetic_batch(done, count)
        items = [Article(id=f"a{number}", text="") for number in range(done, done + count)]
        scheme.sets = synthetic.sets
        part_untimed_cpu += thread_time() - untimed

        started = perf_counter()
        decision = deduplicator.decide(deduplicator.sketch(items))
        deduplicator.apply(decision)
        elapsed = perf_counter() - started

        untimed = thread_time()
        growth.batch_ms.append(1e3 * elapsed)
        part_wall += elapsed
        done += count
        for planted, outcome in zip(
            (synthetic.sources >= 0).tolist(), decision.outcomes, strict=True
        ):
            duplicate = isinstance(outcome, Verdict) and outcome.verdict == "duplicate"
            growth.planted += planted
            growth.found += planted and duplicate
            growth.wrong += duplicate and not planted
        on_batch(done)
        part_untimed_cpu += thread_time() - untimed
        if done >= growth.articles * (part + 1) // PARTS:
            part = done * PARTS // growth.articles
            # Threads that compact in the background count; the maker of articles does not.
            cpu = process_time() - part_cpu - part_untimed_cpu
            assert isinstance(deduplicator.store, RocksStore)
            growth.tenths.append(
                Tenth(
                    articles=done,
                    wall_us=1e6 * part_wall / (done - part_start),
                    cpu_us=1e6 * cpu / (done - part_start),
                    segments=deduplicator.store.segments,
                    disk_bytes=disk_bytes(state),
                )
            )
            growth.seconds += part_wall
            growth.cpu_seconds += cpu
            part_start, part_wall, part_untimed_cpu, part_cpu = done, 0.0, 0.0, process_time()


def disk_bytes(directory: Path) -> int:
    """The bytes of all files below the directory; one may vanish while it is looked at."""
    total = 0
    for file in directory.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def peak_rss_bytes() -> int:
    """The most memory this process has held.

    Linux counts the one that started it into `ru_maxrss`, but not into its own high-water mark.
    """
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
