"""A look into a state directory without opening it for writing, also beside a live process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from streamdedup.article import rfc3339
from streamdedup.errors import StateError
from streamdedup.store.database import Database
from streamdedup.store.manifest import read_identity, read_manifest, read_position


def state_info(path: Path) -> dict[str, Any]:
    """What the directory holds, as plain values; raises `StateError` if it cannot be read."""
    database = Database(path, read_only=True)
    try:
        identity = read_identity(database)
        if identity is None:
            raise StateError(f"{path} is not a state directory of streamdedup")
        manifest = read_manifest(database)
        position = read_position(database)
    finally:
        database.close()
    return {
        "path": str(path),
        "format": identity.format,
        "articles": position.next_number - manifest.first_number,
        "first_number": manifest.first_number,
        "next_number": position.next_number,
        "watermark": rfc3339(position.watermark_ms) if position.watermark_ms else None,
        "disk_bytes": sum(file.stat().st_size for file in path.iterdir() if file.is_file()),
        "segments": [msgspec.to_builtins(segment) for segment in manifest.segments],
        "parameters": identity.parameters,
    }
