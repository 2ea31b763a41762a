"""Runs a command as a person does: on a terminal of 120 columns, answering what it asks."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from conftest import Finished, command, command_environment

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_SIZE = struct.pack("HHHH", 40, 120, 0, 0)


def on_terminal(
    directory: Path,
    *arguments: str | Path,
    env: Mapping[str, str] = {},
    answer: bytes = b"",
    timeout_seconds: float = 120.0,
) -> Finished:
    """What it showed, without colours; everything is in `out`, as it is on a screen."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, _SIZE)
    environment = command_environment(env) | {"TERM": "xterm-256color"}
    with subprocess.Popen(
        command(*arguments),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=directory,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(slave)
        if answer:
            os.write(master, answer)
        shown = _read_all(master, process, timeout_seconds)
    os.close(master)
    return Finished(process.returncode, _CONTROL.sub("", shown.decode()), "")


def _read_all(master: int, process: subprocess.Popen[bytes], timeout_seconds: float) -> bytes:
    shown = bytearray()
    until = time.monotonic() + timeout_seconds
    while True:
        if time.monotonic() > until:
            process.kill()
            raise AssertionError(f"not ended after {timeout_seconds:.0f} s:\n{shown.decode()}")
        try:
            piece = os.read(master, 65_536)
        except OSError:  # the other side is closed
            return bytes(shown)
        if not piece:
            return bytes(shown)
        shown += piece
