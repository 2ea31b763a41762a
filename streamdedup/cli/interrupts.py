"""Ctrl-C and SIGTERM end a run between two batches, never inside one.

An article that is in the index then always has its verdict in the output as well.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupted(BaseException):
    """The user or the system asked the run to end."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number


class Interrupts:
    """While open, a signal waits for the next `allowed` section; a second one does not wait."""

    def __init__(self) -> None:
        self._requested: int | None = None
        self._allowed = False
        self._previous: dict[int, Any] = {}
        # A signal writes here: one that comes in the last moment before a read blocks would
        # else wait for the read to end.  Whoever may block waits for this as well.
        self.wake_fd, self._signal_fd = os.pipe()

    def __enter__(self) -> Self:
        os.set_blocking(self.wake_fd, False)
        os.set_blocking(self._signal_fd, False)
        self._previous_fd = signal.set_wakeup_fd(self._signal_fd, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_fd)
        os.close(self.wake_fd)
        os.close(self._signal_fd)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """A section, such as waiting for input, that a signal may break off at any point."""
        self._allowed = True
        try:
            if self._requested is not None:
                raise Interrupted(self._requested)
            yield
        finally:
            self._allowed = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._allowed or self._requested is not None:
            raise Interrupted(number)
        self._requested = number
