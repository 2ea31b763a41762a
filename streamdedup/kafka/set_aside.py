"""Moves a state directory out of the way without deleting anything."""

from __future__ import annotations

from itertools import count
from pathlib import Path


def set_aside(path: Path) -> Path:
    """Rename the directory to the next free name beside it; tells the new name."""
    moved = _free(path.parent, f"{path.name}.set-aside")
    try:
        path.rename(moved)
    except OSError:
        # A mount point cannot be renamed, what is in it can.
        moved = _free(path, "set-aside")
        content = [entry for entry in path.iterdir() if not entry.name.startswith("set-aside")]
        moved.mkdir()
        for entry in content:
            entry.rename(moved / entry.name)
    return moved


def _free(parent: Path, name: str) -> Path:
    return next(
        candidate for number in count(1) if not (candidate := parent / f"{name}-{number}").exists()
    )
