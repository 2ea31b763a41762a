"""Closing clients without waiting for ever for a broker that does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import KafkaException


def close_within(seconds: float, close: Callable[[], object]) -> None:
    """Call `close`, and go on after some seconds whether it has ended or not."""

    def quietly() -> None:
        # What a client says while it is put away changes nothing any more.
        with suppress(KafkaException, RuntimeError):
            close()

    closing = threading.Thread(target=quietly, daemon=True)
    closing.start()
    closing.join(seconds)
