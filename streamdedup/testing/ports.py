"""Finds TCP ports that stay free while a broker is down.

A port that the system also hands out for outgoing connections is no good: a client that knocks at
a stopped broker's port again and again ends up connected to itself, and the broker cannot come
back.  So they come from below that range, which begins at 32768 on Linux and higher elsewhere.
"""

from __future__ import annotations

import random
import socket

from streamdedup.testing.errors import BrokerFailed
from streamdedup.testing.settings import HOST

FIRST, LAST = 20_000, 32_000
ATTEMPTS = 200


def free_port() -> int:
    """A port on which nobody listens at this moment."""
    # Not the program's own generator: tests seed it, and would all try the same ports.
    choice = random.SystemRandom()
    for _ in range(ATTEMPTS):
        port = choice.randrange(FIRST, LAST)
        if is_free(port):
            return port
    raise BrokerFailed(f"no free port found between {FIRST} and {LAST}")


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        # As servers do it: connections of an earlier life that still time out do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
