"""So many things a second, and no burst after a pause."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Call `wait` before each; a rate of 0 is no limit."""

    def __init__(
        self,
        rate: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._gap_seconds = 1 / rate if rate else 0.0
        self._clock = clock
        self._sleep = sleep
        self._due = clock()

    def wait(self) -> None:
        """Until the next one is due."""
        if not self._gap_seconds:
            return
        now = self._clock()
        if self._due > now:
            self._sleep(self._due - now)
        # What a stall has missed is not made up for, but for one gap: clocks are not exact.
        self._due = max(self._due, now - self._gap_seconds) + self._gap_seconds
