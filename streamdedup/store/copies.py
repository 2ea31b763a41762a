"""A state directory as a whole: a consistent copy of it, or out of the way with it.

Both need it for themselves: a directory that a process works with is refused.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamdedup.errors import StateCorrupt, StateError, StateLocked
from streamdedup.store.database import Database
from streamdedup.store.manifest import MARK, read_identity, read_note, read_position

_ROOT, _LOCK = "CURRENT", "LOCK"


def checkpoint(path: Path, copy: Path) -> None:
    """Copy the directory; on the same file system hard links make that quick and small."""
    _refuse_foreign(path)
    if copy.exists():
        raise StateError(f"{copy} exists; a checkpoint is made into a new directory")
    if not copy.parent.is_dir():
        raise StateError(f"{copy.parent} is not a directory; make it first")
    database = Database(path)
    try:
        if read_identity(database) is None:
            raise StateError(f"{path} is not a state directory of streamdedup")
        database.checkpoint(copy)
    finally:
        database.close()


@contextmanager
def for_ourselves(path: Path) -> Generator[None]:
    """Nobody has the directory open, and nobody can open it meanwhile; damage does not matter."""
    _refuse_foreign(path)
    with (path / _LOCK).open("ab") as lock:
        try:
            # The lock that RocksDB takes, so each sees the other's.
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StateLocked(
                f"state directory {path} is in use by another process; stop that process"
            ) from None
        yield


def refuse_without_changelog(path: Path) -> None:
    """An index that no service made cannot be made again from a changelog."""
    if not (path / _ROOT).is_file():
        return  # too damaged to tell
    with suppress(StateCorrupt):
        database = Database(path, read_only=True)
        try:
            used, mark = read_position(database).next_number, read_note(database, MARK)
        finally:
            database.close()
        if used and not mark:
            raise StateError(
                f"{path} was not made by `streamdedup run`: there is no changelog to make it again "
                "from, only the articles themselves"
            )


def _refuse_foreign(path: Path) -> None:
    if not any((path / name).is_file() for name in (_ROOT, _LOCK)):
        raise StateError(f"{path} is not a state directory")
