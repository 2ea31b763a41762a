"""The plainest users of a store: records that carry their own keys, and integers as items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from streamdedup.config import StateConfig
from streamdedup.schemes.contract import KeyKind, Keys, Payloads, Similarities
from streamdedup.store.contract import Hits, Store
from streamdedup.store.records import RecordBatch, Records, encode_record
from streamdedup.store.rocks import RocksStore

MAX_KEYS = 6
TINY = StateConfig(head_articles=16, fan_in=2, bucket_entries=4, cache_mib=8)


def key_of(bucket: int) -> int:
    """A bucket's 64-bit key: stores expect keys that are hashes."""
    return xxhash.xxh3_64_intdigest(bucket.to_bytes(8, "little"))


def records_of(
    rows: Sequence[Sequence[int]], events_ms: Sequence[int], filler: bytes = b""
) -> RecordBatch:
    """Articles as lists of buckets; the keys are the payload, so they can be read back."""
    keys = [[key_of(bucket) for bucket in row] for row in rows]
    payloads = [np.array(row, np.uint64).tobytes() + filler for row in keys]
    encoded = [
        encode_record(event_ms, event_ms, len(row), b"id", b"", payload)
        for event_ms, row, payload in zip(events_ms, keys, payloads, strict=True)
    ]
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in keys], out=starts[1:])
    flat = np.array([key for row in keys for key in row], np.uint64)
    return RecordBatch(encoded, np.array(events_ms, np.int64), flat, starts)


def keys_in(records: Records) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The keys that `records_of` put into the payloads; the digest says how many."""
    counts = records.payloads.digests.astype(np.int64)
    starts = np.zeros(len(records) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    rows = [
        np.frombuffer(records.payloads.of(index)[: 8 * int(count)], np.uint64)
        for index, count in enumerate(counts)
    ]
    return np.concatenate([np.zeros(0, np.uint64), *rows]), starts


def open_rocks(path: Path, state: StateConfig = TINY, *, window_ms: int = 0) -> RocksStore:
    return RocksStore(
        path,
        state,
        parameters={"scheme.name": "plain"},
        max_keys=MAX_KEYS,
        window_ms=window_ms,
        rekey=keys_in,
    )


def buckets_in(
    store: Store, buckets: Sequence[int], article_starts: Sequence[int] | None = None
) -> list[list[int]]:
    """What lies in each bucket, newest first; as if one article had all of them unless told."""
    keys = np.array([key_of(bucket) for bucket in buckets], np.uint64)
    article = np.array(article_starts or [0, len(keys)], np.int64)
    return listed(store.probe(keys, article))


def listed(hits: Hits) -> list[list[int]]:
    """Hits as plain lists, one a key."""
    starts = hits.starts.tolist()
    return [hits.numbers[first:end].tolist() for first, end in pairwise(starts)]


@dataclass(frozen=True)
class Number:
    """An item that is nothing but an integer."""

    id: str
    value: int
    published: int | None = None


class NumberScheme:
    """Integers are near each other if all but their last decimal digit agree."""

    kinds = (KeyKind("tens", 1),)
    measures = ("jaccard",)
    max_keys = 1
    fingerprint = {"scheme.name": "numbers"}  # noqa: RUF012

    def payloads(self, items: Sequence[Number]) -> Payloads:
        return Payloads.from_bytes(
            [item.value.to_bytes(8, "little") for item in items], [item.value for item in items]
        )

    def keys(self, payloads: Payloads) -> Keys:
        tens = [int.from_bytes(payloads.of(i), "little") // 10 for i in range(len(payloads))]
        values = np.array([key_of(ten) for ten in tens], np.uint64)
        return Keys(values, np.zeros(len(tens), np.uint8), np.arange(len(tens) + 1))

    def compare(
        self,
        left: Payloads,
        left_index: NDArray[np.int64],
        right: Payloads,
        right_index: NDArray[np.int64],
    ) -> Similarities:
        one = left.digests[left_index].astype(np.int64)
        other = right.digests[right_index].astype(np.int64)
        near = one // 10 == other // 10
        measures = np.where(near, 0, -1).astype(np.int8)
        return Similarities(np.where(near, 1.0 - np.abs(one - other) / 10, 0.0), measures)
