"""Temporary directories that do not pile up, even when their owners are killed.

An owner holds a lock in its directory for as long as it lives; whoever makes the next directory
removes those whose lock is free.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path

PREFIX = "streamdedup-kafka-"
LOCK = "owner.lock"


class Scratch:
    """A directory that is removed by `remove`, or after the death of this process."""

    def __init__(self) -> None:
        _sweep()
        # It gets the name that others look for when its lock is held.
        made = Path(tempfile.mkdtemp(prefix="streamdedup-new-"))
        self._lock = (made / LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = made.rename(made.with_name(made.name.replace("streamdedup-new-", PREFIX)))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _sweep() -> None:
    for directory in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            with (directory / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
        except OSError:  # somebody's who lives, or another user's
            continue
