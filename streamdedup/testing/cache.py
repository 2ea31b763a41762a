"""Where things that are fetched once are kept: the user's cache directory.

What is in it appears complete or not at all: whatever is interrupted, and however many processes
fetch at the same time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_home() -> Path:
    """Our part of it."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "streamdedup"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """One process at a time; the lock ends with the process."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
