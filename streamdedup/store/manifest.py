"""What the index consists of at one moment: identity, segments, how far it has come.

Every value here is one RocksDB key, written in the same batch as what it describes, so it is
never ahead of or behind the data (`docs/state-format.md`, "Meta").
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec

from streamdedup.errors import StateMismatch
from streamdedup.store.database import META, Batch, Database

FORMAT = 1
_IDENTITY, _MANIFEST, _POSITION = b"identity", b"manifest", b"position"
CLOCK, MARK = b"clock", b"mark"
T = TypeVar("T")
_POSITION_FORMAT = struct.Struct("<Qq")


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable run of buckets over the articles base … base + count - 1."""

    id: int
    tier: int
    base: int
    count: int
    entries: int
    blocks: Annotated[int, msgspec.Meta(ge=1)]  # of its filter
    last_seen_ms: int

    @property
    def end(self) -> int:
        """The first article number after the segment."""
        return self.base + self.count


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Live segments, oldest first; `building` are ids below `next_id` that were under work."""

    segments: tuple[Segment, ...] = ()
    next_id: int = 1
    building: tuple[int, ...] = ()
    first_number: int = 0


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How far the store has come."""

    next_number: int = 0
    watermark_ms: int = 0


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What an index depends on: the format of its bytes and every parameter of its keys."""

    format: int
    parameters: dict[str, str]


def check_identity(database: Database, parameters: Mapping[str, str]) -> None:
    """Claim a new directory, or refuse one that was made with other parameters."""
    wanted = Identity(format=FORMAT, parameters=dict(parameters))
    found = read_identity(database)
    if found is None:
        batch = database.batch()
        batch.put(META, _IDENTITY, msgspec.json.encode(wanted))
        database.write(batch)
        return
    differences = []
    if found.format != wanted.format:
        differences.append(f"format: the directory has {found.format}, this version {FORMAT}")
    for name in sorted(found.parameters.keys() | wanted.parameters.keys()):
        there, here = found.parameters.get(name, "none"), wanted.parameters.get(name, "none")
        if there != here:
            differences.append(f"{name}: the directory has {there}, the configuration {here}")
    if differences:
        raise StateMismatch(
            f"state directory {database.path} was made with other parameters:\n  "
            + "\n  ".join(differences)
            + "\nuse those settings, or another directory"
        )


def read_identity(database: Database) -> Identity | None:
    """What the directory says of itself; None if it is new."""
    return _read(database, _IDENTITY, Identity)


def read_manifest(database: Database) -> Manifest:
    """The live segments."""
    return _read(database, _MANIFEST, Manifest) or Manifest()


def put_manifest(batch: Batch, manifest: Manifest) -> None:
    """Make these the live segments."""
    batch.put(META, _MANIFEST, msgspec.json.encode(manifest))


def read_position(database: Database) -> Position:
    """How far the store has come."""
    value = database.get(META, _POSITION)
    if value is None:
        return Position()
    if len(value) != _POSITION_FORMAT.size:
        raise database.damaged("the position is not readable")
    number, watermark = _POSITION_FORMAT.unpack(value)
    return Position(next_number=number, watermark_ms=watermark)


def put_position(batch: Batch, position: Position) -> None:
    """Record how far the store has come."""
    packed = _POSITION_FORMAT.pack(position.next_number, position.watermark_ms)
    batch.put(META, _POSITION, packed)


def read_note(database: Database, name: bytes) -> bytes:
    """What the store's user left under `CLOCK` or `MARK`; empty if nothing."""
    return database.get(META, name) or b""


def put_note(batch: Batch, name: bytes, note: bytes) -> None:
    """Leave a note, together with what it speaks of."""
    batch.put(META, name, note)


def _read(database: Database, key: bytes, shape: type[T]) -> T | None:
    value = database.get(META, key)
    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=shape)
    except msgspec.MsgspecError as error:
        raise database.damaged(f"{key.decode()} is not readable: {error}") from None
