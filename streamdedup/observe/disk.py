"""How much room the state directory has, and why it cannot be written, if it cannot."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DiskSpace:
    """Of the file system that the directory is on."""

    free_bytes: int
    size_bytes: int
    read_only: bool


def disk_space(path: Path) -> DiskSpace:
    """Asks the nearest directory that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    found = os.statvfs(path)
    return DiskSpace(
        free_bytes=found.f_bavail * found.f_frsize,
        size_bytes=found.f_blocks * found.f_frsize,
        read_only=bool(found.f_flag & os.ST_RDONLY),
    )


def disk_trouble(path: Path) -> str:
    """Why nothing can be written there; empty if something can."""
    try:
        space = disk_space(path.absolute())
    except OSError as error:
        return f"the state directory cannot be looked at: {error.strerror}"
    if space.read_only:
        return "the state directory's file system is read-only"
    if space.free_bytes == 0:
        return "the state directory's disk is full"
    return ""
