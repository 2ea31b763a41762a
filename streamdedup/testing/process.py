"""One process of a broker: started so that it cannot outlive its parent, signalled, ended.

This knows processes and log files, not Kafka.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Becomes the broker after asking Linux to kill it when its parent dies, however that dies.
_LEASH = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("parent died")
os.execv(sys.argv[2], sys.argv[2:])
"""


class LeashedProcess:
    """A running child with a log file; it ends when this object's owner does."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        # The signal follows the thread that forked, not the process: one that lasts is needed.
        self._forker = ThreadPoolExecutor(1, thread_name_prefix="broker-parent")
        leashed = [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid()), *command]
        with log.open("ab") as output:
            self._child = self._forker.submit(
                subprocess.Popen,
                leashed,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C on a terminal goes to whoever owns the broker, who then stops it.
                start_new_session=True,
            ).result()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._child.poll()

    def freeze(self) -> None:
        self._child.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._child.send_signal(signal.SIGCONT)

    def terminate(self, timeout_seconds: float) -> bool:
        """Ask it to end; False if it had to be killed after the timeout."""
        self.thaw()
        self._child.terminate()
        try:
            self._child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self._forker.shutdown()
        return True

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        self._forker.shutdown()
