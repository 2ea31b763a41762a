"""What has been sent and not been answered yet, so that the sender never runs ahead of the answers.

The sender waits for room, the reader makes it; they meet nowhere else.
"""

from __future__ import annotations

from collections import deque
from threading import Condition
from typing import NamedTuple

from streamdedup.demo.feed import Line


class Sent(NamedTuple):
    """A line under way."""

    line: Line
    shown: bool  # whether it is one of those that are shown one by one


class Flow:
    """Lines under way, by their keys; a key may be there several times."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._lines: dict[bytes, deque[Sent]] = {}
        self._changed = Condition()

    @property
    def is_empty(self) -> bool:
        """Whether everything that was sent has been answered."""
        with self._changed:
            return not self._lines

    def add(self, sent: Sent, timeout_seconds: float) -> bool:
        """Before a line is sent; False if there was no room in time."""
        with self._changed:
            if not self._changed.wait_for(self._has_room, timeout_seconds):
                return False
            self._lines.setdefault(sent.line.key, deque()).append(sent)
            self._bytes += len(sent.line.content)
            return True

    def answered(self, key: bytes) -> Sent | None:
        """The line that an answer with this key is about; None if we did not send it."""
        with self._changed:
            waiting = self._lines.get(key)
            if waiting is None:
                return None
            sent = waiting.popleft()
            if not waiting:
                del self._lines[key]
            self._bytes -= len(sent.line.content)
            self._changed.notify()
            return sent

    def _has_room(self) -> bool:
        return self._bytes < self._most_bytes
