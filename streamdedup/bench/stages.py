"""A clock for the engine's stages, put around its steps from outside.

The engine knows no clock; a benchmark replaces each step by one that is timed.  Steps run once a
batch, so the clock itself costs nothing that shows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any

from streamdedup import engine, sketched
from streamdedup.admission import Gate
from streamdedup.engine import Deduplicator

STAGES = (
    "shingle",
    "keys",
    "probe",
    "admit",
    "candidates",
    "verify",
    "outcomes",
    "records",
    "append",
)


class Stages:
    """CPU and wall seconds of each stage, summed over all batches; a step inside another counts
    for itself only."""

    def __init__(self) -> None:
        self.cpu_s = dict.fromkeys(STAGES, 0.0)
        self.wall_s = dict.fromkeys(STAGES, 0.0)
        self._inner: list[tuple[float, float]] = []
        self._undo: list[Callable[[], None]] = []

    def watch(self, deduplicator: Deduplicator) -> None:
        """Time the steps of this engine from now on."""
        for owner, name, stage in (
            (deduplicator.scheme, "payloads", "shingle"),
            (deduplicator.scheme, "keys", "keys"),
            (sketched, "all_keys", "keys"),
            (deduplicator.store, "probe", "probe"),
            (engine, "known_ids", "admit"),
            (Gate, "admit", "admit"),
            (engine, "find_candidates", "candidates"),
            (engine, "verified", "verify"),
            (engine, "outcomes_of", "outcomes"),
            (engine, "record_batch", "records"),
            (deduplicator.store, "append", "append"),
        ):
            self._replace(owner, name, stage)

    def stop(self) -> None:
        """Put every step back."""
        while self._undo:
            self._undo.pop()()

    def _replace(self, owner: Any, name: str, stage: str) -> None:
        step = getattr(owner, name)
        on_instance = name in vars(owner)

        @functools.wraps(step)
        def timed(*arguments: Any, **options: Any) -> Any:
            self._inner.append((0.0, 0.0))
            wall, cpu = perf_counter(), thread_time()
            try:
                return step(*arguments, **options)
            finally:
                cpu, wall = thread_time() - cpu, perf_counter() - wall
                inner_cpu, inner_wall = self._inner.pop()
                self.cpu_s[stage] += cpu - inner_cpu
                self.wall_s[stage] += wall - inner_wall
                if self._inner:
                    outer_cpu, outer_wall = self._inner[-1]
                    self._inner[-1] = (outer_cpu + cpu, outer_wall + wall)

        setattr(owner, name, timed)
        self._undo.append(
            (lambda: setattr(owner, name, step)) if on_instance else (lambda: delattr(owner, name))
        )
