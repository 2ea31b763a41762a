"""The record of an article, byte for byte (`docs/state-format.md`, "Record").

A record starts on eight bytes and so does its payload: a batch of records is one buffer that
compiled code reads in place.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdedup.schemes.contract import Payloads

# event time, the stream's clock at arrival, digest, length of id, length of story id (0 = its own
# story), length of payload
HEADER = struct.Struct("<qqQHHI")
MAX_ID_BYTES = 0xFFFF
_KEY = struct.Struct(">Q")
_PADDING = tuple(bytes(count) for count in range(8))


def record_key(number: int) -> bytes:
    """Keys sort as their numbers do."""
    return _KEY.pack(number)


def record_number(key: bytes) -> int:
    """The number that a key stands for."""
    number: int = _KEY.unpack(key)[0]
    return number


def encode_record(
    event_ms: int, seen_ms: int, digest: int, id: bytes, story: bytes, payload: bytes
) -> bytes:
    """One record; `story` is the id of the story's root, empty if it is this article."""
    return b"".join(
        (
            HEADER.pack(event_ms, seen_ms, digest, len(id), len(story), len(payload)),
            id,
            story,
            _PADDING[-(len(id) + len(story)) % 8],
            payload,
            _PADDING[-len(payload) % 8],
        )
    )


class Record(NamedTuple):
    """One record, read."""

    event_ms: int
    id: bytes
    story: bytes
    payload_bytes: int


def read_record(encoded: bytes) -> Record:
    """For whoever looks at single records.

    >>> read_record(encode_record(5, 6, 0, b"a2", b"a1", b"shingles"))
    Record(event_ms=5, id=b'a2', story=b'a1', payload_bytes=8)
    """
    event_ms, _, _, id_bytes, story_bytes, payload_bytes = HEADER.unpack_from(encoded)
    id_end = HEADER.size + id_bytes
    id = encoded[HEADER.size : id_end]
    return Record(event_ms, id, encoded[id_end : id_end + story_bytes] or id, payload_bytes)


@dataclass(frozen=True)
class RecordBatch:
    """What one `append` adds: encoded records, the clock at the arrival of each, their keys, and
    the clock's state behind them."""

    records: Sequence[bytes]
    seen_ms: NDArray[np.int64]
    keys: NDArray[np.uint64]
    key_starts: NDArray[np.int64]
    clock: bytes = b""


class Records:
    """Encoded records side by side, read in place."""

    def __init__(self, encoded: Sequence[bytes]) -> None:
        self.encoded = encoded
        starts = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=starts[1:])
        data = np.frombuffer(b"".join(encoded), np.uint8)
        self._head = starts[:-1]
        words = data.view(np.int64)
        lengths = data.view(np.uint16)
        at = self._head // 8
        self.events_ms = words[at]
        self.seen_ms = words[at + 1]
        digests = words[at + 2].view(np.uint64)
        id_bytes = lengths[self._head // 2 + 12].astype(np.int64)
        story_bytes = lengths[self._head // 2 + 13].astype(np.int64)
        payload_bytes = data.view(np.uint32)[self._head // 4 + 7].astype(np.int64)
        self._id_bytes = id_bytes
        self._story_bytes = story_bytes
        first = self._head + HEADER.size + (id_bytes + story_bytes + 7) // 8 * 8
        self.payloads = Payloads(
            data, first, first + payload_bytes, digests, np.zeros(len(encoded), np.bool_)
        )

    def __len__(self) -> int:
        return len(self.encoded)

    def id(self, index: int) -> bytes:
        """The article's id."""
        return self.encoded[index][HEADER.size : HEADER.size + int(self._id_bytes[index])]

    def story(self, index: int) -> bytes:
        """The id of the story's root."""
        first = HEADER.size + int(self._id_bytes[index])
        return self.encoded[index][first : first + int(self._story_bytes[index])] or self.id(index)
