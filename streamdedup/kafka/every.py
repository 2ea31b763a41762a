"""Work that is done now and then inside a loop that goes round more often.

It knows the time and nothing of the work.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic


class Every:
    """Due at once, or after a first pause, and then again after so many seconds.

    >>> now = [0.0]
    >>> every = Every(5, clock=lambda: now[0])
    >>> every.due(), every.due()
    (True, False)
    >>> now[0] = 5.0
    >>> every.due()
    True
    """

    def __init__(
        self, seconds: float, *, at_once: bool = True, clock: Callable[[], float] = monotonic
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = clock() if at_once else clock() + seconds

    def due(self) -> bool:
        """Whether to do it now; the pause begins anew."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True
