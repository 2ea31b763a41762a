"""What is stored under an article's id, found without opening the directory for writing.

The segments are asked as a probe asks them; behind the last one, in a live process the head, the
records themselves are read.
"""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamdedup.article import rfc3339
from streamdedup.identity import id_key
from streamdedup.store.database import RECORDS, Database
from streamdedup.store.inspect import beside_a_writer
from streamdedup.store.manifest import Identity, read_manifest
from streamdedup.store.pieces import load_segment
from streamdedup.store.probe import Probe
from streamdedup.store.records import Record, Records, read_record, record_key, record_number
from streamdedup.store.segments import Geometry, LiveSegment

_CHUNK = 4_096
_SHINGLED = frozenset({"news", "shingles"})


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One record under the id; `shingles` is None where a signature is kept in their place."""

    number: int
    published: str
    story: str
    shingles: int | None


def lookup(path: Path, id: str) -> list[Found]:
    """Newest first, as many as a bucket keeps."""
    wanted = id.encode("utf-8", "surrogatepass")
    return beside_a_writer(path, lambda database, identity: _lookup(database, identity, wanted))


def _lookup(database: Database, identity: Identity, wanted: bytes) -> list[Found]:
    manifest = read_manifest(database)
    parameters = identity.parameters
    geometry = Geometry.of(
        head_articles=int(parameters["state.head_articles"]),
        max_keys=int(parameters["state.max_keys"]),
        fan_in=int(parameters["state.fan_in"]),
        bucket_entries=int(parameters["state.bucket_entries"]),
    )
    live = [load_segment(database, segment) for segment in manifest.segments]
    numbers = _in_segments(database, geometry, live, wanted)
    stored = database.get_many(RECORDS, [record_key(number) for number in numbers])
    found = [
        (number, read_record(record))
        for number, record in zip(numbers, stored, strict=True)
        if record is not None
    ]
    end = live[-1].meta.end if live else manifest.first_number
    found += _behind(database, end, wanted)
    shingled = parameters.get("scheme.name") in _SHINGLED
    by_set = shingled and parameters.get("match.verify") == "exact"
    # Another id may have the same hash, or differ where a page does not tell.
    ours = sorted((each for each in found if each[1].id == wanted), reverse=True)
    return [
        _shown(number, record, by_set=by_set) for number, record in ours[: geometry.bucket_entries]
    ]


def _in_segments(
    database: Database, geometry: Geometry, live: list[LiveSegment], wanted: bytes
) -> list[int]:
    if not live:
        return []
    probe = Probe(database, live, geometry, _unneeded)
    hits = probe.buckets(
        np.array([id_key(wanted)], np.uint64), np.array([0, 1], np.int64), np.zeros(1, np.int64)
    )
    numbers: list[int] = hits.numbers.tolist()
    return numbers


def _unneeded(numbers: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    raise AssertionError("a single key leads nowhere")


def _behind(database: Database, end: int, wanted: bytes) -> list[tuple[int, Record]]:
    """What is in no segment yet."""
    found = []
    with closing(database.scan(RECORDS, record_key(end))) as stored:
        while chunk := list(islice(stored, _CHUNK)):
            records = Records([value for _, value in chunk])
            found += [
                (record_number(key), read_record(value))
                for index, (key, value) in enumerate(chunk)
                if records.id(index) == wanted
            ]
    return found


def _shown(number: int, record: Record, *, by_set: bool) -> Found:
    return Found(
        number=number,
        published=rfc3339(record.event_ms),
        story=record.story.decode("utf-8", "surrogatepass"),
        shingles=record.payload_bytes // 4 if by_set else None,
    )
