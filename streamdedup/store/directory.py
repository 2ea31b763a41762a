"""Which directories an index may be in: its own, and one that nobody keeps anything in."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from streamdedup.errors import StateError

# The first file that is written, those that are always there, and what damage may have left.
_OURS = ("rocksdict-config.json", "CURRENT", "LOCK", "[0-9]*.sst")
# A file system's own, at the root of a volume, and an index that could not be moved out of one.
_NOBODYS = (".*", "lost+found", "set-aside-*")


def refuse_foreign(path: Path) -> None:
    """RocksDB would put its files among those of whoever has the directory."""
    entries: list[Path] = []
    with suppress(OSError):  # not there yet, or opening it says what is wrong
        entries = sorted(path.iterdir())
    if any(_is_one_of(entry, _OURS) for entry in entries):
        return
    for entry in entries:
        if not _is_one_of(entry, _NOBODYS):
            raise StateError(
                f"{path} is not a state directory, and not empty ({entry.name} is in it); "
                "choose a new directory or an empty one"
            )


def _is_one_of(entry: Path, patterns: tuple[str, ...]) -> bool:
    return any(entry.match(pattern) for pattern in patterns)
