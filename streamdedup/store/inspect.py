"""A look into a state directory without opening it for writing, also beside a live process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from streamdedup.article import rfc3339
from streamdedup.errors import StateCorrupt, StateError
from streamdedup.store.database import Database
from streamdedup.store.manifest import (
    MARK,
    Identity,
    read_identity,
    read_manifest,
    read_note,
    read_position,
)

T = TypeVar("T")
_ATTEMPTS = 100


def state_info(path: Path) -> dict[str, Any]:
    """What the directory holds, as plain values; raises `StateError` if it cannot be read.

    Beside a live process it may lag: a log that was flushed and deleted meanwhile is not seen.
    """
    return beside_a_writer(path, _info)


def beside_a_writer(path: Path, read: Callable[[Database, Identity], T]) -> T:
    """What `read` finds in the directory as it is at one moment."""
    for _ in range(_ATTEMPTS):
        before = _manifests(path)
        try:
            return _read(path, read)
        except StateCorrupt:
            # A live process may delete a table after we have read of it; it first says so in
            # RocksDB's manifest.  Damage in a directory that stands still is damage.
            if _manifests(path) == before:
                raise
    raise StateError(f"state directory {path} changes too fast to be looked at; try again later")


def _read(path: Path, read: Callable[[Database, Identity], T]) -> T:
    database = Database(path, read_only=True)
    try:
        identity = read_identity(database)
        if identity is None:
            raise StateError(f"{path} is not a state directory of streamdedup")
        return read(database, identity)
    finally:
        database.close()


def _info(database: Database, identity: Identity) -> dict[str, Any]:
    manifest = read_manifest(database)
    position = read_position(database)
    return {
        "path": str(database.path),
        "format": identity.format,
        "articles": position.next_number - manifest.first_number,
        "first_number": manifest.first_number,
        "next_number": position.next_number,
        "watermark": rfc3339(position.watermark_ms) if position.watermark_ms else None,
        "mark": read_note(database, MARK),
        "disk_bytes": sum(_file_bytes(database.path, "*").values()),
        "segments": [msgspec.to_builtins(segment) for segment in manifest.segments],
        "parameters": identity.parameters,
    }


def _manifests(path: Path) -> dict[str, int]:
    return _file_bytes(path, "MANIFEST-*")


def _file_bytes(path: Path, pattern: str) -> dict[str, int]:
    """Sizes by name; files that a live process deletes meanwhile are left out."""
    sizes = {}
    for file in path.glob(pattern):
        with suppress(FileNotFoundError):
            sizes[file.name] = file.stat().st_size
    return sizes
