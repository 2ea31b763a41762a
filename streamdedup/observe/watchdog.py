"""A thread that notices when the loop stands still, and writes down where every thread is.

It looks at health alone; what it finds goes into the log, once for each standstill.
"""

from __future__ import annotations

import faulthandler
import tempfile
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

from streamdedup.observe.health import Health, State
from streamdedup.observe.log import EventLog

_LOOK_SECONDS = 1.0


class Watchdog:
    """Looks every second between entering and leaving."""

    def __init__(self, health: Callable[[], Health], log: EventLog) -> None:
        self._health = health
        self._log = log
        self._told = False
        self._over = Event()
        self._thread = Thread(target=self._run, name="watchdog", daemon=True)

    def look(self) -> None:
        """Once; says so when the loop stands still, and when it goes on."""
        health = self._health()
        stuck = health.state is State.STUCK
        if stuck and not self._told:
            self._log.event("stuck", f"{health.why}; all stacks follow", "error")
            self._log.event("stacks", stacks(), "error")
        elif self._told and not stuck:
            self._log.event("unstuck", "the loop goes round again")
        self._told = stuck

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(_LOOK_SECONDS)

    def _run(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self.look()


def stacks() -> str:
    """Files, lines and functions of every thread; no values."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()
