"""The store that lasts: a head in memory, segments and records in RocksDB.

Records are the truth, segments are derived from them: after a crash the head is made again from
the records behind the last segment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamdedup.clock import Clock
from streamdedup.config import StateConfig
from streamdedup.errors import StateCorrupt, StateError
from streamdedup.store.contract import Foreseen, Hits
from streamdedup.store.database import RECORDS, Batch, Database
from streamdedup.store.directory import refuse_foreign
from streamdedup.store.figures import StoreFigures
from streamdedup.store.head import Head
from streamdedup.store.hits import met_twice
from streamdedup.store.index import Index
from streamdedup.store.manifest import (
    CLOCK,
    MARK,
    Position,
    check_identity,
    put_note,
    put_position,
    read_note,
    read_position,
)
from streamdedup.store.records import RecordBatch, Records, record_key, record_number
from streamdedup.store.segments import Geometry

Rekey = Callable[[Records], tuple[NDArray[np.uint64], NDArray[np.int64]]]

_RELOAD = 4_096


@dataclass(frozen=True)
class _Prepared:
    """A write that lacks only where it ends."""

    batch: RecordBatch
    first: int
    write: Batch


class RocksStore:
    """Buckets and records in a state directory that one process owns."""

    def __init__(
        self,
        path: Path,
        config: StateConfig,
        *,
        parameters: Mapping[str, str],
        max_keys: int,
        window_ms: int,
        rekey: Rekey,
    ) -> None:
        self.bucket_entries = config.bucket_entries
        self._head_articles = config.head_articles
        self._max_keys = max_keys
        self._window_ms = window_ms
        self._rekey = rekey
        # What was read since the last probe or append: a lead's record is soon verified against.
        self._read: dict[int, bytes] = {}
        self._prepared: _Prepared | None = None
        refuse_foreign(path)
        self._db = Database(path, cache_mib=config.cache_mib)
        try:
            check_identity(self._db, {**parameters, **_layout(config, max_keys)})
            self._position = read_position(self._db)
            self._clock = self._readable_clock()
            self._mark = read_note(self._db, MARK)
            self._index = Index(
                self._db,
                _geometry(config, max_keys),
                head_articles=config.head_articles,
                filter_bits=config.filter_bits,
                window_ms=window_ms,
                keys_of_articles=self._keys_of_articles,
            )
            self._head = self._new_head(self._index.end)
            self._reload()
        except BaseException:
            self._db.close()
            raise

    @property
    def next_number(self) -> int:
        """The number that the next record gets."""
        return self._position.next_number

    @property
    def watermark_ms(self) -> int:
        """The stream's clock."""
        return self._position.watermark_ms

    @property
    def clock(self) -> bytes:
        """The clock's state."""
        return self._clock

    @property
    def mark(self) -> bytes:
        """What the last append that gave one was marked with."""
        return self._mark

    @property
    def segments(self) -> int:
        """How many segments are live."""
        return self._index.segments

    @property
    def pages_read(self) -> int:
        """How many pages of segments were read by all probes so far."""
        return self._index.pages_read

    def foresee(self, keys: NDArray[np.uint64], starts: NDArray[np.int64]) -> Foreseen | None:
        """What the segments have, and the records that will be compared; heads change too often."""
        try:
            foreseen = self._index.foresee(keys, starts)
            likely = met_twice(foreseen.hits.numbers, foreseen.hits.starts, starts)
            self._load(likely.tolist(), foreseen.records)
            return foreseen
        except StateError:  # taken away in between by upkeep; if not, the probe meets it again
            return None

    def probe(
        self,
        keys: NDArray[np.uint64],
        starts: NDArray[np.int64],
        foreseen: Foreseen | None = None,
    ) -> Hits:
        """Head, then heads being frozen and segments: newest first."""
        self._read.clear()
        newest = self._head.probe(keys, self.bucket_entries)
        return self._index.probe(keys, starts, newest, foreseen, self._read)

    def fetch(self, numbers: NDArray[np.int64]) -> Records:
        """From memory if they are recent or just read, from RocksDB if not."""
        wanted = numbers.tolist()
        heads = [self._head, *self._index.heads]
        in_memory = heads[-1].base
        self._load([number for number in wanted if number < in_memory], self._read)
        encoded: list[bytes] = []
        for number in wanted:
            if number < in_memory:
                encoded.append(self._read[number])
            else:
                head = next(head for head in heads if number >= head.base)
                encoded.append(head.records[number - head.base])
        return Records(encoded)

    def prepare(self, batch: RecordBatch) -> None:
        """Upkeep, and the records' part of the write."""
        self._upkeep(len(batch.records))
        write = self._db.batch()
        for number, record in enumerate(batch.records, self.next_number):
            write.put(RECORDS, record_key(number), record)
        self._prepared = _Prepared(batch, self.next_number, write)

    def append(self, batch: RecordBatch, mark: bytes | None = None) -> None:
        """Upkeep, then one atomic write, then memory.

        In this order an error means that nothing was added: upkeep may fail before the write but
        changes no answer, and what follows the write cannot fail.  The same batch may come again.
        """
        count = len(batch.records)
        if count == 0 and mark is None:
            return
        self._read.clear()
        write = self._prepared_write(batch)
        newest_ms = int(batch.seen_ms.max()) if count else 0
        position = Position(
            next_number=self.next_number + count,
            watermark_ms=max(self.watermark_ms, newest_ms),
        )
        put_position(write, position)
        clock = batch.clock if count else self._clock
        put_note(write, CLOCK, clock)
        if mark is not None:
            put_note(write, MARK, mark)
        self._db.write(write)
        self._position, self._clock = position, clock
        self._mark = self._mark if mark is None else mark
        self._insert(batch)

    def figures(self) -> StoreFigures:
        """How it is doing."""
        return StoreFigures(
            articles=self.next_number - self._index.first_number,
            segments=self._index.segments,
            filter_bytes=self._index.filter_bytes,
            pages_read=self._index.pages_read,
            database=self._db.figures(),
        )

    def close(self) -> None:
        """Let go of the directory."""
        self._db.close()

    # -- inside ------------------------------------------------------------------------------

    def _readable_clock(self) -> bytes:
        clock = read_note(self._db, CLOCK)
        try:
            Clock.decoded(clock)
        except ValueError as error:
            raise self._damaged(str(error)) from None
        return clock

    def _load(self, numbers: list[int], records: dict[int, bytes]) -> None:
        """Read those records that are not there."""
        missing = sorted({number for number in numbers if number not in records})
        stored = self._db.get_many(RECORDS, [record_key(number) for number in missing])
        for number, record in zip(missing, stored, strict=True):
            if record is None:
                raise self._damaged(f"record {number} is missing")
            records[number] = record

    def _keys_of_articles(
        self, records: dict[int, bytes], numbers: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Of articles in segments: their records are on disk."""
        wanted = numbers.tolist()
        self._load(wanted, records)
        return self._rekey(Records([records[number] for number in wanted]))

    def _new_head(self, base: int) -> Head:
        return Head(base=base, articles=self._head_articles, max_keys=self._max_keys)

    def _prepared_write(self, batch: RecordBatch) -> Batch:
        """It can be written once only, so it is given away."""
        prepared, self._prepared = self._prepared, None
        if prepared is None or prepared.batch is not batch or prepared.first != self.next_number:
            self.prepare(batch)
            return self._prepared_write(batch)
        return prepared.write

    def _upkeep(self, articles: int) -> None:
        self._index.work(articles)
        if self._window_ms:
            self._index.expire(self.watermark_ms - self._window_ms)

    def _insert(self, batch: RecordBatch) -> None:
        """Into the head, in memory; whenever it is full a new one begins."""
        first = 0
        while first < len(batch.records):
            last = min(len(batch.records), first + self._head.room)
            self._head.insert(
                batch.records[first:last],
                batch.seen_ms[first:last],
                batch.keys,
                batch.key_starts[first : last + 1],
            )
            if self._head.room == 0:
                full = self._head
                self._index.add(full)
                self._head = self._new_head(full.base + full.count)
            first = last

    def _reload(self) -> None:
        """Make the head again from the records behind the last segment."""
        number = self._head.base
        # The scan is closed at once: RocksDB keeps its lock as long as an iterator lives.
        with closing(self._db.scan(RECORDS, record_key(number))) as stored:
            while chunk := list(islice(stored, _RELOAD)):
                for key, _ in chunk:
                    if record_number(key) != number:
                        raise self._damaged(f"record {number} is missing")
                    number += 1
                records = Records([value for _, value in chunk])
                keys, key_starts = self._rekey(records)
                self._insert(RecordBatch(records.encoded, records.seen_ms, keys, key_starts))
                self._index.work(len(chunk))
        if number != self.next_number:
            raise self._damaged(f"records end at {number}, not at {self.next_number}")

    def _damaged(self, what: str) -> StateCorrupt:
        return self._db.damaged(what)


def _geometry(config: StateConfig, max_keys: int) -> Geometry:
    return Geometry.of(
        head_articles=config.head_articles,
        max_keys=max_keys,
        fan_in=config.fan_in,
        bucket_entries=config.bucket_entries,
    )


def _layout(config: StateConfig, max_keys: int) -> dict[str, str]:
    return {
        "state.head_articles": str(config.head_articles),
        "state.fan_in": str(config.fan_in),
        "state.filter_bits": str(config.filter_bits),
        "state.bucket_entries": str(config.bucket_entries),
        "state.max_keys": str(max_keys),
    }
