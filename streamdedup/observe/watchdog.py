"""A thread that notices when the loop stands still, and writes down where every thread is.

It looks at health alone; what it finds goes into the log, once for each standstill.

A call that keeps the interpreter to itself (RocksDB holding a write back, on a disk that does not
come back) stops this thread too.  For that, every look winds up a timer outside of the interpreter;
when that runs out, it writes the stacks to standard error.
"""

from __future__ import annotations

import faulthandler
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Self

from streamdedup.observe.health import Health, State
from streamdedup.observe.log import EventLog

_LOOK_SECONDS = 1.0
_MARGIN_SECONDS = 3.0  # later than the loop's own limit: that one says more


class Watchdog:
    """Looks every second between entering and leaving."""

    def __init__(
        self, health: Callable[[], Health], log: EventLog, *, stuck_seconds: float
    ) -> None:
        self._timer_seconds = stuck_seconds + _MARGIN_SECONDS
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
        faulthandler.cancel_dump_traceback_later()

    def _run(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self._wind_up()
            self.look()

    def _wind_up(self) -> None:
        if sys.__stderr__ is None:
            return
        with suppress(OSError, ValueError):  # it is closed, or no file
            faulthandler.dump_traceback_later(self._timer_seconds, file=sys.__stderr__)


def stacks() -> str:
    """Files, lines and functions of every thread; no values."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()
