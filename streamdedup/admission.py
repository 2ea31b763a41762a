"""Who enters the index: event times, the window's edge, redeliveries and revisions, in order.

An article with the id and the content of one that is already known is a redelivery: it is told
so and changes nothing.  With the same id and other content it is a revision.  Only articles whose
id is not new are looked at one by one; the others enter without a question.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streamdedup.candidates import find_same_key
from streamdedup.clock import UNDATED, Clock
from streamdedup.identity import EXACT_KIND, ID_KIND
from streamdedup.schemes.contract import Keys, Payloads
from streamdedup.store.contract import Hits, Store

_FOR_EVER = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Known:
    """An earlier article with the same id: stored, as the rank-th newest of its bucket, or
    (batch >= 0) earlier in this batch."""

    digest: int
    event_ms: int
    seen_ms: int
    rank: int = 0
    story: bytes = b""
    batch: int = -1


@dataclass(frozen=True)
class KnownIds:
    """By article of the batch, what is stored with its id: under the id, and under its content."""

    of_id: dict[int, list[Known]]
    of_content: dict[int, list[Known]]


@dataclass(frozen=True)
class Admission:
    """By article: whether it is judged by content, whether it goes into the index, whether its
    id was known, its event time, the clock at its arrival, and the edges of its window: what
    happened or arrived before them does not match.

    `redelivered` names for a redelivery what it repeats.
    """

    judged: NDArray[np.bool_]
    enters: NDArray[np.bool_]
    revises: NDArray[np.bool_]
    events_ms: NDArray[np.int64]
    seen_ms: NDArray[np.int64]
    oldest_event_ms: NDArray[np.int64]
    oldest_seen_ms: NDArray[np.int64]
    clock: Clock
    redelivered: dict[int, Known] = field(default_factory=dict)


class Gate:
    """Takes one batch in; every step depends only on what came before it."""

    def __init__(
        self,
        ids: list[bytes],
        payloads: Payloads,
        published_ms: NDArray[np.int64],
        clock: Clock,
        *,
        window_ms: int,
        bucket_entries: int,
        index_revisions: bool,
    ) -> None:
        self._ids = ids
        self._digests = payloads.digests
        self._published_ms = published_ms
        self._clock = clock
        self._window_ms = window_ms
        self._bucket_entries = bucket_entries
        self._index_revisions = index_revisions
        self._enters = ~payloads.empty
        self._judged = self._enters.copy()
        self._revises = np.zeros(len(ids), np.bool_)
        self._events_ms = published_ms.copy()
        self._seen_ms = np.zeros(len(ids), np.int64)
        self._redelivered: dict[int, Known] = {}
        self._entered_ids: dict[bytes, list[int]] = defaultdict(list)
        self._entered_contents: dict[int, list[int]] = defaultdict(list)

    def admit(self, known: KnownIds) -> Admission:
        """Go through the batch in order."""
        unclear = self._unclear(known)
        done = 0
        for article in unclear:
            if self._enters[article]:
                self._tick(done, article, remember=True)
                self._judge_id(article, known)
                done = article
        self._tick(done, len(self._ids), remember=False)
        return Admission(
            self._judged,
            self._enters,
            self._revises,
            self._events_ms,
            self._seen_ms,
            self._edge(self._events_ms),
            self._edge(self._seen_ms),
            self._clock,
            self._redelivered,
        )

    def _unclear(self, known: KnownIds) -> list[int]:
        """Articles whose id is stored or comes more than once in the batch."""
        if len(set(self._ids)) == len(self._ids):
            return sorted(known.of_id)
        times = Counter(self._ids)
        return [at for at, id in enumerate(self._ids) if at in known.of_id or times[id] > 1]

    def _tick(self, first: int, end: int, *, remember: bool) -> None:
        """Let the articles from `first` to before `end` in, and the clock go on over them."""
        entering = first + np.flatnonzero(self._enters[first:end])
        now_ms = self._clock.now_ms
        self._seen_ms[first:end] = now_ms
        events_ms = self._events_ms[first:end]
        events_ms[events_ms == UNDATED] = now_ms
        stamped = self._clock.after(self._published_ms[entering])
        self._events_ms[entering], self._seen_ms[entering] = stamped.events_ms, stamped.seen_ms
        self._clock = stamped.clock
        if remember:
            for article in entering.tolist():
                self._entered_ids[self._ids[article]].append(article)
                self._entered_contents[int(self._digests[article])].append(article)

    def _edge(self, times_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        if not self._window_ms:
            return np.full(len(times_ms), _FOR_EVER, np.int64)
        return times_ms - self._window_ms

    def _judge_id(self, article: int, known: KnownIds) -> None:
        """Redelivery, revision or (everything with that id has expired) new."""
        digest = int(self._digests[article])
        own_id = self._ids[article]
        alive = self._alive(article, known.of_id, self._entered_ids.get(own_id, []))
        # An id may have more revisions than its bucket keeps: its content finds an old one.
        alike = self._alive(article, known.of_content, self._entered_contents.get(digest, []))
        same = [earlier for earlier in (*alike, *alive) if earlier.digest == digest]
        if same:
            self._redelivered[article] = same[0]
            self._judged[article] = self._enters[article] = False
            return
        self._revises[article] = bool(alive)
        self._enters[article] = self._index_revisions or not alive

    def _alive(
        self, article: int, stored: dict[int, list[Known]], entered: list[int]
    ) -> list[Known]:
        """What a bucket would hold of the article's id had the batch come one by one."""
        room = self._bucket_entries - len(entered)
        found = [earlier for earlier in stored.get(article, ()) if earlier.rank < room]
        for other in entered[-self._bucket_entries :]:
            if self._ids[other] == self._ids[article]:
                found.append(self._known(other))
        if not self._window_ms:
            return found
        now_ms = self._clock.now_ms
        published_ms = int(self._published_ms[article])
        event_ms = (now_ms if published_ms == UNDATED else published_ms) - self._window_ms
        seen_ms = now_ms - self._window_ms
        return [
            earlier
            for earlier in found
            if earlier.event_ms >= event_ms and earlier.seen_ms >= seen_ms
        ]

    def _known(self, article: int) -> Known:
        return Known(
            int(self._digests[article]),
            int(self._events_ms[article]),
            int(self._seen_ms[article]),
            batch=article,
        )


def known_ids(ids: list[bytes], keys: Keys, hits: Hits, store: Store) -> KnownIds:
    """What is stored of articles with the same ids."""
    of_id = _known(ID_KIND, ids, keys, hits, store, None)
    if not of_id:
        return KnownIds({}, {})
    return KnownIds(of_id, _known(EXACT_KIND, ids, keys, hits, store, of_id.keys()))


def _known(
    kind: int,
    ids: list[bytes],
    keys: Keys,
    hits: Hits,
    store: Store,
    wanted: Iterable[int] | None,
) -> dict[int, list[Known]]:
    """What lies in the articles' buckets of one kind and has their id, earliest first."""
    articles, ranks, numbers = find_same_key(kind, hits.numbers, hits.starts, keys.starts)
    if wanted is not None:
        kept = np.isin(articles, np.fromiter(wanted, np.int64))
        articles, ranks, numbers = articles[kept], ranks[kept], numbers[kept]
    known: dict[int, list[Known]] = {}
    if len(numbers) == 0:
        return known
    records = store.fetch(numbers)
    digests, events_ms = records.payloads.digests.tolist(), records.events_ms.tolist()
    seen_ms = records.seen_ms.tolist()
    for at, (article, rank) in enumerate(zip(articles.tolist(), ranks.tolist(), strict=True)):
        if records.id(at) == ids[article]:
            earlier = Known(digests[at], events_ms[at], seen_ms[at], rank, records.story(at))
            known.setdefault(article, []).insert(0, earlier)
    return known
