"""Calls into librdkafka that are waited for, but not for ever.

Its own timeouts do not always hold: closing may wait for a broker that does not answer, and sending
offsets was seen to hang for good when the coordinator died in the middle of it (librdkafka 2.16).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import KafkaException

# Said of a producer that is put away while a call into it hangs; it would be no line of a log.
warnings.filterwarnings("ignore", "Producer abort_transaction failed during close", RuntimeWarning)


class Call:
    """A call in a thread of its own, which is left alone if nobody can wait for it any longer."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._error: BaseException | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def ended(self, timeout_seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        return self._ended.wait(timeout_seconds)

    def result(self) -> None:
        """Raises what the call raised."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()


def close_within(seconds: float, close: Callable[[], object]) -> None:
    """Call `close`, and go on after some seconds whether it has ended or not."""
    closing = Call(close)
    # What a client says while it is put away changes nothing any more.
    with suppress(KafkaException, RuntimeError):
        if closing.ended(seconds):
            closing.result()
