"""Verification: every candidate pair compared, and the best match of every article chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamdedup.admission import Admission
from streamdedup.candidates import choose
from streamdedup.schemes.contract import Scheme
from streamdedup.sketched import Sketch
from streamdedup.store.contract import Store
from streamdedup.store.records import Records

EXACT_RANK = np.int8(100)


@dataclass(frozen=True)
class Matches:
    """By candidate pair: how similar, by which measure (rank; below zero is no match), and where
    the other article is.  `best` names by article its best pair, or -1."""

    similarity: NDArray[np.float64]
    rank: NDArray[np.int8]
    source: NDArray[np.int64]
    best: NDArray[np.int64]


def verified(
    scheme: Scheme,
    store: Store,
    sketch: Sketch,
    admission: Admission,
    entering: NDArray[np.int64],
    article: NDArray[np.int64],
    number: NDArray[np.int64],
) -> tuple[Records, Matches]:
    """Compare each article with its candidates that are still inside the window."""
    in_batch = number >= store.next_number
    stored = ~in_batch
    wanted, place = np.unique(number[stored], return_inverse=True)
    records = store.fetch(wanted)
    source = np.empty(len(number), np.int64)
    source[stored] = place.reshape(-1)
    source[in_batch] = entering[number[in_batch] - store.next_number]

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
        found = scheme.compare(own, left, payloads, right)
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
