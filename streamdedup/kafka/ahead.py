"""A second thread that makes the next batches ready while the first judges and commits one.

Both have about as much to do, and a commit is a round trip of idle time.  Two batches may be ready:
with one, either thread would wait whenever the other has a slow one.  That bounds the memory.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from time import monotonic
from types import TracebackType
from typing import Self

from streamdedup.kafka.intake import Intake, Prepared

_BATCHES = 2
_IN_USE = 2  # whoever has taken a batch lets go of it once it has the next but one
_LOOK_SECONDS = 0.1
_HANGING_SECONDS = 10.0


class Ahead:
    """Batches of an intake, made while those before are being dealt with."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._closed = Event()
        self._looked = monotonic()
        self._taken: deque[Prepared] = deque()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")
        self._made = deque(self._pool.submit(self._make) for _ in range(_BATCHES))

    def take(self, timeout_seconds: float) -> Prepared | None:
        """The next batch, or None if nothing has arrived in time; another one is begun."""
        wait([self._made[0]], timeout_seconds)
        if not self._made[0].done():
            return None
        self._made.append(self._pool.submit(self._make))
        taken = self._made.popleft().result()
        if taken is not None:
            self._taken.append(taken)
        return taken

    @property
    def goes_round(self) -> bool:
        """Whether a batch is ready or was looked for of late; a hanging disk is no quiet input."""
        return self._made[0].done() or monotonic() - self._looked < _HANGING_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _make(self) -> Prepared | None:
        # Freeing a batch takes a tenth as long as judging it; here it holds nobody up.
        while len(self._taken) > _IN_USE:
            self._taken.popleft()
        while not self._closed.is_set():
            self._looked = monotonic()
            batch = self._intake.next_batch(_LOOK_SECONDS)
            if batch is not None:
                return batch
        return None
