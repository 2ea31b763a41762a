"""The Deduplicator: scheme + store + policy.  Articles in, one verdict each out, deterministic.

`decide` only reads, `apply` is one atomic write: whoever publishes verdicts commits them between
the two.  There is no clock, no thread and no randomness here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streamdedup.admission import Gate, known_ids
from streamdedup.candidates import ALL_KINDS, find_candidates
from streamdedup.clock import Clock
from streamdedup.config import Config, checked
from streamdedup.errors import StateError
from streamdedup.identity import OWN_KINDS, rekeyed
from streamdedup.matching import verified
from streamdedup.outcomes import outcomes_of, record_batch
from streamdedup.schemes.contract import Item, Scheme
from streamdedup.schemes.shingled import ShingledScheme
from streamdedup.sketched import Sketch, sketched
from streamdedup.store.contract import Store
from streamdedup.store.memory import MemoryStore
from streamdedup.store.records import RecordBatch, Records
from streamdedup.store.rocks import RocksStore
from streamdedup.verdict import Rejection, Verdict

MOST_KINDS = ALL_KINDS - OWN_KINDS
Lap = Callable[[str], None]
"""Called at the end of each step of `decide`, with its name: a stop-watch, if somebody has one."""


def _unheard(step: str) -> None:
    """Nobody has."""


@dataclass(frozen=True)
class Found:
    """What the index proposed for a batch, and what was left of it, for whoever watches."""

    by_article: NDArray[np.int64]  # how many candidates each article had
    verified: int  # candidates that were similar enough
    similarities: NDArray[np.float64]  # of the articles that match, to their best match
    cut_entries: int  # what full buckets have let go


@dataclass(frozen=True)
class Decision:
    """Verdicts of a batch, and what `apply` will write; nothing has been written yet."""

    outcomes: list[Verdict | Rejection]
    entering: NDArray[np.int64]  # the articles, by place in the batch, that `batch` has records of
    batch: RecordBatch
    first_number: int
    found: Found

    @property
    def candidates(self) -> int:
        """How many candidates were compared."""
        return int(self.found.by_article.sum())


@dataclass(frozen=True)
class EngineStats:
    """Counts since the Deduplicator was opened."""

    articles: int = 0
    candidates: int = 0
    cut_entries: int = 0


class Deduplicator:
    """Tells for every article whether it is new.

    >>> from streamdedup import Article
    >>> with Deduplicator.open(None) as d:
    ...     verdicts = d.process([Article(id="a", text="Short but quite exact words.")])
    ...     again = d.process([Article(id="b", text="Short, but quite exact: words!")])
    >>> verdicts[0].verdict, again[0].verdict, again[0].duplicate_of
    ('unique', 'duplicate', 'a')
    """

    def __init__(self, scheme: Scheme, store: Store, config: Config) -> None:
        if len(scheme.kinds) > MOST_KINDS:
            raise ValueError(f"a scheme has at most {MOST_KINDS} kinds of keys")
        self.scheme = scheme
        self.store = store
        self._index_revisions = config.match.index_revisions
        self._window_ms = config.window.seconds * 1_000
        needed = [1] * OWN_KINDS + [kind.needed for kind in scheme.kinds]
        self._needed = np.array(needed, np.int64)
        self._stats = EngineStats()
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | Path | None,
        config: Config | None = None,
        *,
        scheme: Scheme | None = None,
    ) -> Self:
        """Open a state directory, or with None an index in memory that goes with the process."""
        config = checked(config) if config is not None else Config()
        if scheme is None:
            scheme = ShingledScheme(config.scheme, config.match)
        if path is not None and not str(path):
            raise ValueError("an empty path is no state directory; None keeps the index in memory")
        if path is None:
            memory = MemoryStore(bucket_entries=config.state.bucket_entries)
            return cls(scheme, memory, config)
        store = RocksStore(
            Path(path),
            config.state,
            parameters=scheme.fingerprint,
            max_keys=scheme.max_keys + OWN_KINDS,
            window_ms=config.window.seconds * 1_000,
            rekey=lambda records: rekeyed(scheme, records),
        )
        return cls(scheme, store, config)

    def process(self, items: Sequence[Item]) -> list[Verdict | Rejection]:
        """Judge a batch and remember it: `sketch`, `decide`, `apply`.

        A batch is in memory several times over: a long feed is better given in pieces, on which
        the verdicts do not depend.
        """
        decision = self.decide(self.sketch(items))
        self.apply(decision)
        return decision.outcomes

    def sketch(self, items: Sequence[Item]) -> Sketch:
        """The pure part: payloads and keys."""
        return sketched(self.scheme, items)

    def foresee(self, sketch: Sketch) -> Sketch:
        """Look into the index for what will hardly change until the batch's turn.

        Another thread may do it while earlier batches are decided and applied; it changes no
        verdict.
        """
        self._check_open()
        keys = sketch.keys
        return replace(sketch, foreseen=self.store.foresee(keys.values, keys.starts))

    def decide(self, sketch: Sketch, lap: Lap = _unheard) -> Decision:
        """Probe, verify, choose.  Reads only."""
        self._check_open()
        keys, store = sketch.keys, self.store
        hits = store.probe(keys.values, keys.starts, sketch.foreseen)
        lap("probe")
        gate = Gate(
            sketch.ids,
            sketch.payloads,
            sketch.published_ms,
            Clock.decoded(store.clock),
            window_ms=self._window_ms,
            bucket_entries=store.bucket_entries,
            index_revisions=self._index_revisions,
        )
        admission = gate.admit(known_ids(sketch.ids, keys, hits, store))
        article, number, cut = find_candidates(
            keys.values,
            keys.kinds,
            keys.starts,
            hits.numbers,
            hits.starts,
            admission.judged,
            admission.enters,
            store.next_number,
            self._needed,
            store.bucket_entries,
        )
        entering = np.flatnonzero(admission.enters)
        lap("decide")
        records, matches = verified(
            self.scheme, store, sketch, admission, entering, article, number
        )
        lap("verify")
        outcomes, stories = outcomes_of(sketch, admission, records, matches, self.scheme.measures)
        batch = record_batch(sketch, admission, entering, stories)
        lap("decide")
        found = Found(
            np.bincount(article, minlength=len(sketch.items)),
            int(np.count_nonzero(matches.rank >= 0)),
            matches.similarity[matches.best[matches.best >= 0]],
            cut,
        )
        return Decision(outcomes, entering, batch, store.next_number, found)

    def prepare(self, decision: Decision) -> None:
        """Do ahead what `apply` needs; worth it only where there is time to be filled.

        It changes no verdict, also if the decision is never applied.
        """
        self._check_open()
        self.store.prepare(decision.batch)

    def apply(self, decision: Decision, mark: bytes | None = None) -> None:
        """Write what was decided; a decision can be applied once, on the state it was made on.

        A mark is the caller's note of how far its source is contained, written together with it.
        """
        self._check_open()
        if decision.first_number != self.store.next_number:
            raise ValueError("the index has changed since this decision was made")
        self.store.append(decision.batch, mark)
        self._stats = replace(
            self._stats,
            articles=self._stats.articles + len(decision.outcomes),
            candidates=self._stats.candidates + decision.candidates,
            cut_entries=self._stats.cut_entries + decision.found.cut_entries,
        )

    def restore(self, encoded: Sequence[bytes], mark: bytes) -> None:
        """Remember articles that were judged before, from their records alone, in that order."""
        records = Records(encoded)
        keys, key_starts = rekeyed(self.scheme, records)
        # The clock is made again from the event times; each record already has its stamp.
        clock = Clock.decoded(self.store.clock).after(records.events_ms).clock
        batch = RecordBatch(encoded, records.seen_ms, keys, key_starts, clock.encoded())
        self.store.append(batch, mark)

    @property
    def mark(self) -> bytes:
        """The last mark that was written; empty if there was none."""
        return self.store.mark

    def stats(self) -> EngineStats:
        """What happened since opening."""
        return self._stats

    def close(self) -> None:
        """Let go of the store; nothing is judged or remembered after that."""
        self._closed = True
        self.store.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StateError("this Deduplicator is closed; open a new one")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
