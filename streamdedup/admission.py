"""Who enters the index: event times, the window's edge, redeliveries and revisions, in order.

An article with the id and the content of one that is already known is a redelivery: it is told
so and changes nothing.  With the same id and other content it is a revision.  Event time is the
article's own; one that has none happens "now", at the latest time seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streamdedup.candidates import find_same_key
from streamdedup.identity import ID_KIND
from streamdedup.schemes.contract import Item, Keys, Payloads
from streamdedup.store.contract import Hits, Store


@dataclass(frozen=True)
class Known:
    """An earlier article with the same id: stored, or (batch >= 0) earlier in this batch."""

    digest: int
    event_ms: int
    story: bytes = b""
    batch: int = -1


@dataclass(frozen=True)
class Admission:
    """By article: whether it is judged by content, whether it goes into the index, whether its
    id was known, its event time and the window's edge when it arrives.

    `redelivered` names for a redelivery what it repeats.
    """

    judged: NDArray[np.bool_]
    enters: NDArray[np.bool_]
    revises: NDArray[np.bool_]
    events_ms: NDArray[np.int64]
    oldest_ms: NDArray[np.int64]
    redelivered: dict[int, Known] = field(default_factory=dict)


def admit(
    items: Sequence[Item],
    ids: list[bytes],
    payloads: Payloads,
    known: dict[int, list[Known]],
    *,
    watermark_ms: int,
    window_ms: int,
    bucket_entries: int,
    index_revisions: bool,
) -> Admission:
    """Go through the batch in order; every step depends only on what came before it."""
    count = len(items)
    admission = Admission(
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
        np.zeros(count, np.int64),
        np.full(count, np.iinfo(np.int64).min, np.int64),
    )
    empty = payloads.empty.tolist()
    digests = payloads.digests.tolist()
    in_batch: dict[bytes, deque[Known]] = {}
    watermark = watermark_ms
    for article, item in enumerate(items):
        if empty[article]:
            continue
        event = watermark if item.published is None else item.published
        admission.events_ms[article] = event
        # As many as the id's bucket keeps, or the cut into batches would show.
        earlier_ones = [*known.get(article, ()), *in_batch.get(ids[article], ())]
        alive = earlier_ones[-bucket_entries:]
        if window_ms:
            oldest = max(watermark, event) - window_ms
            admission.oldest_ms[article] = oldest
            alive = [earlier for earlier in alive if earlier.event_ms >= oldest]
        same = [earlier for earlier in alive if earlier.digest == digests[article]]
        if same:
            admission.redelivered[article] = same[0]
            continue
        admission.judged[article] = True
        admission.revises[article] = bool(alive)
        if alive and not index_revisions:
            continue
        admission.enters[article] = True
        own = in_batch.setdefault(ids[article], deque(maxlen=bucket_entries))
        own.append(Known(digests[article], event, batch=article))
        watermark = max(watermark, event)
    return admission


def known_ids(ids: list[bytes], keys: Keys, hits: Hits, store: Store) -> dict[int, list[Known]]:
    """By article of the batch, what is stored under its id, earliest first."""
    articles, numbers = find_same_key(ID_KIND, hits.numbers, hits.starts, keys.starts)
    if len(numbers) == 0:
        return {}
    known: dict[int, list[Known]] = {}
    records = store.fetch(numbers)
    digests, events = records.payloads.digests.tolist(), records.events_ms.tolist()
    for at, article in enumerate(articles.tolist()):
        if records.id(at) == ids[article]:
            earlier = Known(digests[at], events[at], records.story(at))
            known.setdefault(article, []).insert(0, earlier)
    return known
