"""The changelog, byte for byte: one record an article, the truth of which the index is a view.

A value is a little-endian header, then five byte strings without separators:

    offset  size  field
    0       1     format version, 1
    1       1     outcome: place in OUTCOMES
    2       4     input partition
    6       8     input offset
    14      8     event time in milliseconds since 1970; the lowest number if unknown
    22      8     fingerprint: xxh3 of the parameters below
    30      2     length of the input topic's name
    32      2     length of the article's id
    34      2     length of the story's id
    36      2     length of the parameters
    38            topic, id, story (UTF-8), parameters, the store's record

The parameters (JSON, sorted keys) of everything that records depend on stand in the first record of
every transaction, the fingerprint in every record.  The store's record (`store/records.py`) is
empty for an article that did not enter the index, such as a redelivery.  It knows no Kafka client.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import xxhash

from streamdedup.errors import ChangelogMismatch
from streamdedup.store.manifest import FORMAT
from streamdedup.verdict import Source, Verdict

VERSION = 1
HEADER = struct.Struct("<BBiqqQHHHH")
UNKNOWN_MS = -(1 << 63)
OUTCOMES = (
    ("unique", "new"),
    ("unique", "revision"),
    ("duplicate", "near"),
    ("duplicate", "exact"),
    ("duplicate", "redelivery"),
    ("duplicate", "revision"),
)
_CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}


class Entry(NamedTuple):
    """A changelog record, read."""

    place: Source
    event_ms: int
    verdict: str
    reason: str
    id: bytes
    story: bytes
    record: bytes


class Changelog:
    """Writes and reads values for one set of parameters, and refuses any other."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        # The store's record is part of a value, so its format counts too.
        everything = {**parameters, "state.format": str(FORMAT)}
        self.parameters = msgspec.json.encode(dict(sorted(everything.items())))
        self.fingerprint = xxhash.xxh3_64_intdigest(self.parameters)

    def encode(
        self, place: Source, verdict: Verdict, record: bytes = b"", *, first: bool = False
    ) -> bytes:
        """A value; `first` is the one that carries the parameters for its transaction."""
        topic = place.topic.encode()
        id = verdict.id.encode("utf-8", "surrogatepass")
        story = verdict.story.encode("utf-8", "surrogatepass")
        parameters = self.parameters if first else b""
        header = HEADER.pack(
            VERSION,
            _CODES[verdict.verdict, verdict.reason],
            place.partition,
            place.offset,
            UNKNOWN_MS if verdict.published is None else verdict.published,
            self.fingerprint,
            len(topic),
            len(id),
            len(story),
            len(parameters),
        )
        return b"".join((header, topic, id, story, parameters, record))

    def record(self, value: bytes) -> bytes:
        """The store's record in a value, empty if there is none; refuses other parameters."""
        if len(value) < HEADER.size:
            raise ChangelogMismatch("the changelog topic holds records that are not streamdedup's")
        fields = HEADER.unpack_from(value)
        if fields[0] != VERSION or fields[5] != self.fingerprint:
            self.refuse(value)
        return value[HEADER.size + fields[6] + fields[7] + fields[8] + fields[9] :]

    def refuse(self, value: bytes) -> None:
        """Raise the error that names what differs, as far as this value tells."""
        if value[0] != VERSION:
            raise ChangelogMismatch(
                f"the changelog is in format {value[0]}, this version writes format {VERSION}"
            )
        there = parameters_in(value)
        if there is None:
            raise ChangelogMismatch("the changelog was written with other parameters")
        here: dict[str, str] = msgspec.json.decode(self.parameters)
        differences = [
            f"{name}: the changelog has {there.get(name, 'none')}, "
            f"the configuration {here.get(name, 'none')}"
            for name in sorted(there.keys() | here.keys())
            if there.get(name) != here.get(name)
        ]
        raise ChangelogMismatch(
            "the changelog was written with other parameters:\n  "
            + "\n  ".join(differences)
            + "\nuse those settings, or another changelog topic and consumer group"
        )


def parameters_in(value: bytes) -> dict[str, str] | None:
    """The parameters that a value carries, if it is the first of its transaction."""
    if len(value) < HEADER.size or value[0] != VERSION:
        return None
    fields = HEADER.unpack_from(value)
    end = HEADER.size + fields[6] + fields[7] + fields[8] + fields[9]
    text = value[end - fields[9] : end]
    return msgspec.json.decode(text, type=dict[str, str]) if text else None


def read_entry(value: bytes) -> Entry:
    """All of a value, for whoever looks into a changelog.

    >>> from streamdedup.verdict import Verdict
    >>> value = Changelog({"k": "3"}).encode(
    ...     Source(topic="wire", partition=0, offset=7),
    ...     Verdict(id="a", verdict="unique", story="a"),
    ...     b"record",
    ... )
    >>> read_entry(value).place, read_entry(value).reason, read_entry(value).record
    (Source(topic='wire', partition=0, offset=7), 'new', b'record')
    """
    (_, code, partition, offset, event_ms, _, *lengths) = HEADER.unpack_from(value)
    parts, at = [], HEADER.size
    for length in lengths:
        parts.append(value[at : at + length])
        at += length
    verdict, reason = OUTCOMES[code]
    place = Source(topic=parts[0].decode(), partition=partition, offset=offset)
    return Entry(place, event_ms, verdict, reason, parts[1], parts[2], value[at:])


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """How much of which changelog an index contains: everything before `next_offset`.

    The digest of the last record contained tells a topic that was cut off and written anew.
    """

    topic_id: str
    next_offset: int
    last_digest: int

    @staticmethod
    def behind(topic_id: str, offset: int, value: bytes) -> Mark:
        """The mark of an index whose last record is this one."""
        return Mark(topic_id=topic_id, next_offset=offset + 1, last_digest=digest(value))

    def encode(self) -> bytes:
        """As the store keeps it."""
        return msgspec.json.encode(self)

    @staticmethod
    def decode(stored: bytes) -> Mark | None:
        """None for an index that was never part of a service."""
        try:
            return msgspec.json.decode(stored, type=Mark)
        except msgspec.MsgspecError:
            return None


def digest(value: bytes) -> int:
    """What a record is known by."""
    return xxhash.xxh3_64_intdigest(value)
