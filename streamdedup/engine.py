"""The Deduplicator: scheme + store + policy.  Articles in, one verdict each out, deterministic.

`decide` only reads, `apply` is one atomic write: whoever publishes verdicts commits them between
the two.  There is no clock, no thread and no randomness here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from streamdedup.admission import Admission, Gate, known_ids
from streamdedup.article import FIRST_MS, LAST_MS
from streamdedup.candidates import ALL_KINDS, choose, find_candidates
from streamdedup.clock import UNDATED, Clock
from streamdedup.config import Config
from streamdedup.identity import OWN_KINDS, all_keys, rekeyed
from streamdedup.schemes.contract import Item, Keys, Payloads, Scheme
from streamdedup.schemes.shingled import ShingledScheme
from streamdedup.store.contract import Store
from streamdedup.store.memory import MemoryStore
from streamdedup.store.records import MAX_ID_BYTES, RecordBatch, Records, encode_record
from streamdedup.store.rocks import RocksStore
from streamdedup.verdict import Rejection, Verdict

Measure = Literal["jaccard", "containment", "exact", "signature"]

EXACT_RANK = np.int8(100)
MOST_KINDS = ALL_KINDS - OWN_KINDS
Lap = Callable[[str], None]
"""Called at the end of each step of `decide`, with its name: a stop-watch, if somebody has one."""


def _unheard(step: str) -> None:
    """Nobody has."""


@dataclass(frozen=True)
class Sketch:
    """Everything that can be known of a batch without the index; safe to make ahead."""

    items: Sequence[Item]
    ids: list[bytes]
    published_ms: NDArray[np.int64]
    refused: dict[int, Rejection]
    payloads: Payloads
    keys: Keys


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


@dataclass(frozen=True)
class Matches:
    """By candidate pair: how similar, by which measure (rank; below zero is no match), and where
    the other article is.  `best` names by article its best pair, or -1."""

    similarity: NDArray[np.float64]
    rank: NDArray[np.int8]
    source: NDArray[np.int64]
    best: NDArray[np.int64]


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

    @classmethod
    def open(
        cls,
        path: str | Path | None,
        config: Config | None = None,
        *,
        scheme: Scheme | None = None,
    ) -> Self:
        """Open a state directory, or with None an index in memory that goes with the process."""
        config = config if config is not None else Config()
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
        """Judge a batch and remember it: `sketch`, `decide`, `apply`."""
        decision = self.decide(self.sketch(items))
        self.apply(decision)
        return decision.outcomes

    def sketch(self, items: Sequence[Item]) -> Sketch:
        """The pure part: payloads and keys."""
        payloads = self.scheme.payloads(items)
        ids = [_id_bytes(item) for item in items]
        published = [_published_ms(item) for item in items]
        refused = _refused(items, ids, published)
        if refused:
            payloads = replace(payloads, empty=payloads.empty.copy())
            for article in refused:
                payloads.empty[article] = True
                ids[article], published[article] = b"", UNDATED
        scheme_keys = self.scheme.keys(payloads)
        if len(items) and int(np.diff(scheme_keys.starts).max()) > self.scheme.max_keys:
            raise ValueError(f"the scheme gave an item more keys than its {self.scheme.max_keys}")
        keys = all_keys(ids, payloads, scheme_keys)
        return Sketch(items, ids, np.array(published, np.int64), refused, payloads, keys)

    def decide(self, sketch: Sketch, lap: Lap = _unheard) -> Decision:
        """Probe, verify, choose.  Reads only."""
        keys, store = sketch.keys, self.store
        hits = store.probe(keys.values, keys.starts)
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
        records, matches = self._verify(sketch, admission, entering, article, number)
        lap("verify")
        outcomes, stories = self._outcomes(sketch, admission, records, matches)
        batch = _record_batch(sketch, admission, entering, stories)
        lap("decide")
        found = Found(
            np.bincount(article, minlength=len(sketch.items)),
            int(np.count_nonzero(matches.rank >= 0)),
            matches.similarity[matches.best[matches.best >= 0]],
            cut,
        )
        return Decision(outcomes, entering, batch, store.next_number, found)

    def apply(self, decision: Decision, mark: bytes | None = None) -> None:
        """Write what was decided; a decision can be applied once, on the state it was made on.

        A mark is the caller's note of how far its source is contained, written together with it.
        """
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
        """Let go of the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- the steps of `decide` ---------------------------------------------------------------

    def _verify(
        self,
        sketch: Sketch,
        admission: Admission,
        entering: NDArray[np.int64],
        article: NDArray[np.int64],
        number: NDArray[np.int64],
    ) -> tuple[Records, Matches]:
        """Compare each article with its candidates that are still inside the window."""
        in_batch = number >= self.store.next_number
        stored = ~in_batch
        wanted, place = np.unique(number[stored], return_inverse=True)
        records = self.store.fetch(wanted)
        source = np.empty(len(number), np.int64)
        source[stored] = place.reshape(-1)
        source[in_batch] = entering[number[in_batch] - self.store.next_number]

        similarity = np.zeros(len(number), np.float64)
        rank = np.full(len(number), -1, np.int8)
        own = sketch.payloads
        for side, payloads, times in (
            (stored, records.payloads, records),
            (in_batch, own, admission),
        ):
            if not side.any():
                continue
            left, right = article[side], source[side]
            found = self.scheme.compare(own, left, payloads, right)
            exact = own.digests[left] == payloads.digests[right]
            expired = times.events_ms[right] < admission.oldest_event_ms[left]
            expired |= times.seen_ms[right] < admission.oldest_seen_ms[left]
            similarity[side] = np.where(exact, 1.0, found.values)
            rank[side] = np.where(expired, -1, np.where(exact, EXACT_RANK, found.measures))
        # An exact copy wins a tie; jaccard and containment are equals, the earlier one wins.
        strength = np.where(rank == EXACT_RANK, rank, np.minimum(rank, 0))
        best = choose(len(sketch.items), article, number, similarity, strength)
        source[in_batch] = -1 - source[in_batch]  # below zero: an article of this batch
        return records, Matches(similarity, rank, source, best)

    def _outcomes(
        self, sketch: Sketch, admission: Admission, records: Records, matches: Matches
    ) -> tuple[list[Verdict | Rejection], list[bytes]]:
        """The verdicts in order, and the story of each article."""
        outcomes: list[Verdict | Rejection] = []
        stories: list[bytes] = []
        best = matches.best.tolist()
        judged = admission.judged.tolist()
        for article, item in enumerate(sketch.items):
            pair = best[article]
            if pair >= 0:
                source = int(matches.source[pair])
                if source < 0:
                    story, matched = stories[-1 - source], sketch.ids[-1 - source]
                else:
                    story, matched = records.story(source), records.id(source)
                outcome: Verdict | Rejection = self._duplicate(
                    item, story, matched, matches, pair, bool(admission.revises[article])
                )
            elif judged[article]:
                story = sketch.ids[article]
                outcome = Verdict(
                    id=item.id,
                    verdict="unique",
                    story=item.id,
                    reason="revision" if admission.revises[article] else "new",
                    published=item.published,
                )
            elif article in admission.redelivered:
                earlier = admission.redelivered[article]
                story = stories[earlier.batch] if earlier.batch >= 0 else earlier.story
                outcome = _redelivery(item, story)
            else:
                story = b""
                outcome = sketch.refused.get(article) or Rejection(
                    id=item.id, reason="empty", detail="the text has no word in it"
                )
            stories.append(story)
            outcomes.append(outcome)
        return outcomes, stories

    def _duplicate(
        self,
        item: Item,
        story: bytes,
        matched: bytes,
        matches: Matches,
        pair: int,
        revises: bool,
    ) -> Verdict:
        exact = matches.rank[pair] == EXACT_RANK
        measure = "exact" if exact else self.scheme.measures[matches.rank[pair]]
        return Verdict(
            id=item.id,
            verdict="duplicate",
            story=story.decode(),
            duplicate_of=matched.decode(),
            similarity=float(matches.similarity[pair]),
            measure=cast("Measure", measure),
            reason="revision" if revises else "exact" if exact else "near",
            published=item.published,
        )


def _id_bytes(item: Item) -> bytes:
    if not isinstance(item.id, str):
        raise TypeError(f"an article's id is {type(item.id).__name__}, not str: {item.id!r}")
    try:
        return item.id.encode()
    except UnicodeEncodeError:  # half a surrogate pair: no verdict could name it
        return b""


def _published_ms(item: Item) -> int:
    if item.published is None:
        return UNDATED
    if type(item.published) is not int:
        raise TypeError(
            f"article {item.id!r}: published is {type(item.published).__name__}, not whole "
            "milliseconds since 1970 (streamdedup.article.milliseconds makes them of a datetime)"
        )
    return item.published


def _refused(items: Sequence[Item], ids: list[bytes], published: list[int]) -> dict[int, Rejection]:
    """What no index can hold; sources that decode JSON have tighter limits of their own."""
    refused = {}
    for article, (id, published_ms) in enumerate(zip(ids, published, strict=True)):
        if not 0 < len(id) <= MAX_ID_BYTES:
            refused[article] = Rejection(
                id=items[article].id,
                reason="bad_id",
                detail=f"the id is not Unicode text of 1 to {MAX_ID_BYTES:,} bytes",
            )
        elif published_ms != UNDATED and not FIRST_MS <= published_ms <= LAST_MS:
            refused[article] = Rejection(
                id=items[article].id,
                reason="bad_published",
                detail=f"{published_ms} ms is not in the years 1 to 9999",
            )
    return refused


def _redelivery(item: Item, story: bytes) -> Verdict:
    return Verdict(
        id=item.id,
        verdict="duplicate",
        story=story.decode(),
        duplicate_of=item.id,
        similarity=1.0,
        measure="exact",
        reason="redelivery",
        published=item.published,
    )


def _record_batch(
    sketch: Sketch,
    admission: Admission,
    entering: NDArray[np.int64],
    stories: list[bytes],
) -> RecordBatch:
    """The records of the articles that enter, and their keys."""
    payloads, keys = sketch.payloads, sketch.keys
    data = payloads.data.tobytes()
    starts, ends = payloads.starts.tolist(), payloads.ends.tolist()
    events_ms, seen_ms = admission.events_ms.tolist(), admission.seen_ms.tolist()
    digests = payloads.digests.tolist()
    records = []
    for article in entering.tolist():
        own, story = sketch.ids[article], stories[article]
        root = b"" if story == own else story
        payload = data[starts[article] : ends[article]]
        records.append(
            encode_record(
                events_ms[article], seen_ms[article], digests[article], own, root, payload
            )
        )
    clock = admission.clock.encoded()
    if len(entering) == len(sketch.items):
        return RecordBatch(records, admission.seen_ms, keys.values, keys.starts, clock)
    lengths = np.diff(keys.starts)
    key_starts = np.zeros(len(entering) + 1, np.int64)
    np.cumsum(lengths[entering], out=key_starts[1:])
    kept = np.repeat(admission.enters, lengths)
    return RecordBatch(records, admission.seen_ms[entering], keys.values[kept], key_starts, clock)
