"""What time it is in the stream, told by the articles alone.

The clock shows the median event time of the last articles that entered the index and never goes
back.  So a wrong date, however far off, moves nothing by itself: a leap needs a majority.  Every
article is stamped with the clock's time at its arrival, and the index forgets by these stamps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled

VOTES = 33
UNDATED = int(np.iinfo(np.int64).min)  # an article without a date: it happens "now"


@dataclass(frozen=True)
class Clock:
    """The time, and the votes that it comes from: `VOTES` event times, and how many were cast."""

    state: NDArray[np.int64]

    @staticmethod
    def started() -> Clock:
        """A clock that has seen no article.

        >>> clock = Clock.started()
        >>> stamped = clock.after(np.array([1_000, 9_000_000, 1_002], np.int64))
        >>> stamped.seen_ms.tolist(), stamped.clock.now_ms
        ([1000, 9000000, 1002], 1002)
        """
        return Clock(np.zeros(2 + VOTES, np.int64))

    @property
    def now_ms(self) -> int:
        """The time."""
        return int(self.state[0])

    def after(self, published_ms: NDArray[np.int64]) -> Stamped:
        """Articles enter in this order; `UNDATED` ones happen when they arrive."""
        state = self.state.copy()
        return Stamped(*_advance(state, published_ms), Clock(state))

    def encoded(self) -> bytes:
        """For keeping beside the index."""
        return self.state.astype("<i8").tobytes()

    @staticmethod
    def decoded(stored: bytes) -> Clock:
        """The inverse; nothing stored is a clock that has seen no article."""
        if not stored:
            return Clock.started()
        if len(stored) != 8 * (2 + VOTES):
            raise ValueError("the clock is not readable")
        return Clock(np.frombuffer(stored, "<i8").astype(np.int64))


@dataclass(frozen=True)
class Stamped:
    """By article its event time and the clock's time at its arrival; the clock behind the last."""

    events_ms: NDArray[np.int64]
    seen_ms: NDArray[np.int64]
    clock: Clock


@compiled
def _advance(
    state: NDArray[np.int64], published_ms: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """State: the time, how many votes were ever cast, the last of them in a ring."""
    events = np.empty(len(published_ms), np.int64)
    stamps = np.empty(len(published_ms), np.int64)
    ordered = np.empty(VOTES, np.int64)
    for article in range(len(published_ms)):
        vote = published_ms[article]
        if vote == UNDATED:
            vote = state[0]
        events[article] = vote
        state[2 + state[1] % VOTES] = vote
        state[1] += 1
        votes = min(state[1], VOTES)
        for index in range(votes):
            value = state[2 + index]
            place = index
            while place > 0 and ordered[place - 1] > value:
                ordered[place] = ordered[place - 1]
                place -= 1
            ordered[place] = value
        median = ordered[votes // 2]
        # Until there are votes enough, an early wrong date may still be put right.
        state[0] = median if state[1] < VOTES else max(state[0], median)
        stamps[article] = state[0]
    return events, stamps
