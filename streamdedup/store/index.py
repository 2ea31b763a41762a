"""The frozen part of the buckets: live segments, heads that become one, and their upkeep.

Upkeep (freezing, merging, dropping what has expired) is done in small steps that the store asks
for, never in a thread.  Memory changes only after the write that it mirrors, so a failed write
leaves both as they were and the same step may be tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from streamdedup.store.build import Build, FullHead, Neighbours
from streamdedup.store.contract import Foreseen, Hits
from streamdedup.store.database import FILTERS, PAGES, RECORDS, Batch, Database
from streamdedup.store.head import Head
from streamdedup.store.hits import newer_then_older
from streamdedup.store.manifest import Manifest, put_manifest, read_manifest
from streamdedup.store.pieces import load_segment
from streamdedup.store.probe import Probe
from streamdedup.store.records import record_key
from streamdedup.store.segments import Geometry, LiveSegment, only_recent_at_hand, segment_key

# The keys of stored articles: row i is keys[starts[i]:starts[i + 1]].  Records that have to be read
# for it come to the dictionary.
KeysOfRecorded = Callable[
    [dict[int, bytes], NDArray[np.int64]], tuple[NDArray[np.uint64], NDArray[np.int64]]
]

_MAX_ARTICLES = 1 << 32  # an entry counts its article from the segment's base in 32 bits


class Index:
    """Every bucket entry but those of the newest head."""

    def __init__(
        self,
        database: Database,
        geometry: Geometry,
        *,
        head_articles: int,
        filter_bits: int,
        window_ms: int,
        keys_of_articles: KeysOfRecorded,
    ) -> None:
        self.pages_read = 0
        self._keys_of_articles = keys_of_articles
        self._database = database
        self._geometry = geometry
        self._head_articles = head_articles
        self._filter_bits = filter_bits
        self._window_ms = window_ms
        manifest = read_manifest(database)
        self._first_number = manifest.first_number
        self._next_id = manifest.next_id
        self._live = [load_segment(database, meta) for meta in manifest.segments]
        self._builds: list[Build] = []
        self._discard_unfinished(manifest)

    @property
    def segments(self) -> int:
        """How many segments are live."""
        return len(self._live)

    @property
    def first_number(self) -> int:
        """The oldest article that is still remembered."""
        return self._first_number

    @property
    def filter_bytes(self) -> int:
        """What the segments' filters take of memory."""
        return sum(segment.filter.nbytes for segment in self._live)

    @property
    def end(self) -> int:
        """The first article number behind the segments."""
        return self._live[-1].meta.end if self._live else self._first_number

    @property
    def heads(self) -> list[Head]:
        """Full heads that are not segments yet, newest first."""
        return [material.head for _, material in reversed(self._freezes())]

    def foresee(self, keys: NDArray[np.uint64], starts: NDArray[np.int64]) -> Foreseen:
        """What lies under the keys in the live segments; safe beside upkeep.

        Upkeep may take away the pages of segments that it replaces: what was foreseen in a list of
        segments that is no longer the live one is worth nothing, and is not used.
        """
        records: dict[int, bytes] = {}
        return self._in_segments(keys, starts, np.zeros(len(keys), np.int64), records)

    def probe(
        self,
        keys: NDArray[np.uint64],
        starts: NDArray[np.int64],
        newest: Hits,
        foreseen: Foreseen | None,
        records: dict[int, bytes],
    ) -> Hits:
        """What lies under the keys, newest first, behind what the newest head has.

        Records that are read on the way come to `records`.
        """
        for head in self.heads:
            newest = newest_of(newest, head.probe(keys, self._most), self._most)
        if foreseen is not None and foreseen.state is self._live:
            older = foreseen.hits
            records.update(foreseen.records)
            self.pages_read += foreseen.pages_read
        else:
            now = self._in_segments(keys, starts, np.diff(newest.starts), records)
            older = now.hits
            self.pages_read += now.pages_read
        if foreseen is not None:
            foreseen.let_go()
        return newest_of(newest, older, self._most)

    def add(self, head: Head) -> None:
        """Take over a full head; nothing is written yet."""
        self._builds.append(self._build(FullHead(head, self._geometry)))

    def work(self, articles: int) -> None:
        """Upkeep in proportion to the articles added, so that no batch pays for many."""
        pages = articles * self._geometry.pages(0) // self._head_articles
        for build, material in self._freezes()[:-1]:
            self._advance(build, material.steps)  # only the newest full head may wait
        for build in list(self._builds):
            # A head is done before the next is half full; a merge before its tier has another.
            rate = 2 if isinstance(build.material, FullHead) else 1
            self._advance(build, max(1, rate * pages))
        self._start_merges()

    def expire(self, before_ms: int) -> None:
        """Drop whole segments from the oldest on: later ones never show through an earlier gap."""
        busy = self._being_merged()
        dropped = list(
            takewhile(
                lambda segment: (
                    segment.meta.last_seen_ms < before_ms and segment.meta.id not in busy
                ),
                self._live,
            )
        )
        if not dropped:
            return
        self._database.flush()
        first, end = record_key(self._first_number), record_key(dropped[-1].meta.end)
        batch = self._database.batch()
        batch.delete_range(RECORDS, first, end)
        for segment in dropped:
            _delete_segment(batch, segment.meta.id)
        self._commit(
            batch, self._live[len(dropped) :], self._builds, first_number=dropped[-1].meta.end
        )
        self._database.flush()

    # -- inside ------------------------------------------------------------------------------

    @property
    def _most(self) -> int:
        return self._geometry.bucket_entries

    def _in_segments(
        self,
        keys: NDArray[np.uint64],
        starts: NDArray[np.int64],
        taken: NDArray[np.int64],
        records: dict[int, bytes],
    ) -> Foreseen:
        live = self._live
        keys_of = partial(self._keys_of_articles, records)
        probe = Probe(self._database, live, self._geometry, keys_of)
        hits = probe.buckets(keys, starts, taken)
        return Foreseen(live, hits, records, probe.pages_read)

    def _build(self, material: FullHead | Neighbours) -> Build:
        build = Build(self._database, self._geometry, self._next_id, material, self._filter_bits)
        self._next_id += 1
        return build

    def _freezes(self) -> list[tuple[Build, FullHead]]:
        """Heads under work, oldest first."""
        return [
            (build, build.material)
            for build in self._builds
            if isinstance(build.material, FullHead)
        ]

    def _merges(self) -> list[Neighbours]:
        return [build.material for build in self._builds if isinstance(build.material, Neighbours)]

    def _being_merged(self) -> set[int]:
        return {meta.id for merge in self._merges() for meta in merge.segments}

    def _advance(self, build: Build, steps: int) -> None:
        if build.advance(steps):
            self._swap_in(build)

    def _swap_in(self, build: Build) -> None:
        """Manifest and the end of what was merged, in one write: small, however big the segment."""
        new = build.result()
        material = build.material
        merged = {meta.id for meta in material.segments} if isinstance(material, Neighbours) else {}
        batch = self._database.batch()
        for id in sorted(merged):
            _delete_segment(batch, id)
        live = [segment for segment in self._live if segment.meta.id not in merged]
        live = sorted([*live, new], key=lambda segment: segment.meta.base)
        others = [other for other in self._builds if other is not build]
        self._commit(batch, live, others, first_number=self._first_number)

    def _commit(
        self, batch: Batch, live: list[LiveSegment], builds: list[Build], *, first_number: int
    ) -> None:
        """Write the batch together with the manifest that it leads to, then be that."""
        put_manifest(
            batch,
            Manifest(
                segments=tuple(segment.meta for segment in live),
                next_id=self._next_id,
                building=tuple(build.id for build in builds),
                first_number=first_number,
            ),
        )
        self._database.write(batch)
        self._live = only_recent_at_hand(live)
        self._builds, self._first_number = builds, first_number

    def _start_merges(self) -> None:
        """At most one merge a tier, of its oldest segments: so a big one never holds up a small."""
        busy = self._being_merged()
        tiers_under_work = {merge.tier for merge in self._merges()}
        fan_in = self._geometry.fan_in
        for last in range(fan_in, len(self._live) + 1):
            group = self._live[last - fan_in : last]
            tiers = {segment.meta.tier for segment in group}
            if len(tiers) > 1 or max(tiers) + 1 in tiers_under_work:
                continue
            if any(segment.meta.id in busy for segment in group) or self._too_big(group):
                continue
            self._builds.append(self._build(Neighbours(self._database, group, self._geometry)))
            tiers_under_work.add(max(tiers) + 1)

    def _too_big(self, group: list[LiveSegment]) -> bool:
        """A segment goes when its newest article expires: it may span an eighth of the window.

        Old dates inside a segment do not count: they cost space only, and every feed has some.
        """
        if sum(segment.meta.count for segment in group) > _MAX_ARTICLES:
            return True
        newest = [segment.meta.last_seen_ms for segment in group]
        span_ms = (max(newest) - min(newest)) * len(group) // (len(group) - 1)
        return 0 < self._window_ms < 8 * span_ms

    def _discard_unfinished(self, manifest: Manifest) -> None:
        batch = self._database.batch()
        for id in manifest.building:
            _delete_segment(batch, id)
        # Builds begun after the manifest was written have ids from `next_id` on.
        for family in (PAGES, FILTERS):
            batch.delete_range(family, segment_key(manifest.next_id), b"\xff" * 8)
        self._commit(batch, self._live, [], first_number=manifest.first_number)


def newest_of(newer: Hits, older: Hits, most: int) -> Hits:
    """Both, key by key, newest first."""
    if len(older.numbers) == 0:
        return newer
    return Hits(*newer_then_older(newer.numbers, newer.starts, older.numbers, older.starts, most))


def _delete_segment(batch: Batch, id: int) -> None:
    for family in (PAGES, FILTERS):
        batch.delete_range(family, segment_key(id), segment_key(id + 1))
