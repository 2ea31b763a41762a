"""A real Kafka broker as a child of this process, with its own ports and its own data.

It can be stopped, killed, frozen and started again on the same port and the same data; it dies
with the process that started it.  Nothing of it is reachable from another machine.
"""

from __future__ import annotations

import base64
import re
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from streamdedup.testing.errors import BrokerFailed
from streamdedup.testing.jars import jars
from streamdedup.testing.java import java
from streamdedup.testing.kafka import Kafka
from streamdedup.testing.ports import free_port, is_free
from streamdedup.testing.process import LeashedProcess
from streamdedup.testing.scratch import Scratch
from streamdedup.testing.settings import HOST, server_properties

START_TIMEOUT_SECONDS = 90.0
STOP_TIMEOUT_SECONDS = 30.0
LOG_TAIL_LINES = 15
# Another process may take a port between our look and the broker's.
PORT_ATTEMPTS = 3
HEAP = "-Xmx512m"
# Shutting down after a failure fills many lines below its cause.
COMPLAINT = re.compile(r" ERROR |Exception: |^Caused by: ")
STARTED = b"Kafka Server started"


class LocalBroker(Kafka):
    """Apache Kafka on localhost.

        with LocalBroker() as broker:
            broker.create_topic("articles", partitions=3)
            client = Producer({"bootstrap.servers": broker.bootstrap})

    The data lies in a temporary directory that `close` removes, or in `directory`, which stays.
    `settings` are lines of Kafka's server.properties that matter to a test.
    """

    def __init__(
        self,
        *,
        port: int | None = None,
        directory: Path | None = None,
        settings: Mapping[str, str] | None = None,
        heap: str = HEAP,
    ) -> None:
        self._scratch: Scratch | None = None
        self._directory = directory
        self._settings = dict(settings or {})
        self._heap = heap
        self._port_is_given = port is not None
        self._port = port or free_port()
        self._process: LeashedProcess | None = None
        super().__init__(f"{HOST}:{self._port}")

    @property
    def directory(self) -> Path:
        """Where the data, the configuration and the log of the broker are."""
        if self._directory is not None:
            return self._directory
        if self._scratch is None:
            self._scratch = Scratch()
        return self._scratch.path

    @property
    def log_file(self) -> Path:
        return self.directory / "broker.log"

    @property
    def pid(self) -> int | None:
        """The process id of the broker; None when it does not run."""
        return self._process.pid if self.is_running and self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.exit_code is None

    def start(self) -> None:
        """Start and wait until clients are served; a broker that runs already is left alone."""
        if self.is_running:
            return
        command = [str(java()), self._heap, "-XX:+ExitOnOutOfMemoryError"]
        command += ["-cp", f"{jars()}/*", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
        command += ["-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]
        # Clients know the port of a broker that has run before.
        may_move = not self._port_is_given and not self._is_formatted
        for _ in range(PORT_ATTEMPTS):
            if not is_free(self._port):
                if not may_move:
                    break
                self._move()
            try:
                self._start_once(command)
                return
            except _PortTaken:
                continue
        raise BrokerFailed(
            f"port {self._port} of {HOST} is in use: stop what listens there, or choose another"
        )

    def stop(self) -> None:
        """Shut down as an operator would; data and port stay for the next `start`."""
        process, self._process = self._process, None
        if process and process.exit_code is None:
            process.terminate(STOP_TIMEOUT_SECONDS)

    def kill(self) -> None:
        """SIGKILL: what a broker's crash looks like to its clients."""
        process, self._process = self._process, None
        if process:
            process.kill()

    def restart(self) -> None:
        """Stop if need be, and start again on the same port and the same data."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Keep connections open and answer nothing, until `thaw`."""
        self._running().freeze()

    def thaw(self) -> None:
        self._running().thaw()

    def close(self) -> None:
        """Stop for good; a temporary directory is removed."""
        if self._directory is not None:
            self.stop()
            return
        # What will be thrown away need not be flushed.
        self.kill()
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def __enter__(self) -> LocalBroker:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def log_tail(self) -> str:
        """The end of the broker's log, after the complaints that came before it."""
        if not self.log_file.exists():
            return ""
        lines = self.log_file.read_text(errors="replace").splitlines()
        earlier, tail = lines[:-LOG_TAIL_LINES], lines[-LOG_TAIL_LINES:]
        complaints = [line for line in earlier if COMPLAINT.search(line)]
        return "\n".join([*complaints[-LOG_TAIL_LINES:], *tail])

    def _start_once(self, command: list[str]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        properties = self.directory / "server.properties"
        # Nobody but the broker itself talks to its controller, so that port may change.
        properties.write_text(
            server_properties(self.directory, self._port, free_port(), self._settings)
        )
        if not self._is_formatted:
            self._format(command, properties)
        before = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._process = LeashedProcess([*command, "kafka.Kafka", str(properties)], self.log_file)
        until = time.monotonic() + START_TIMEOUT_SECONDS
        while STARTED not in (log := self._log_since(before)):
            ended = self._process.exit_code
            if ended is None and time.monotonic() < until:
                time.sleep(0.05)
                continue
            self.kill()
            why = f"exit code {ended}" if ended is not None else f"{START_TIMEOUT_SECONDS:.0f} s"
            message = f"the Kafka broker did not start ({why}):\n{self.log_tail()}"
            raise _PortTaken(message) if b"Address already in use" in log else BrokerFailed(message)

    def _format(self, command: list[str], properties: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = ["kafka.tools.StorageTool", "format", "--cluster-id=" + cluster]
        done = subprocess.run(
            [*command, "-XX:TieredStopAtLevel=1", *tool, "--config", str(properties)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-LOG_TAIL_LINES:])
            raise BrokerFailed(f"Kafka could not prepare {self.directory}:\n{tail}")

    @property
    def _is_formatted(self) -> bool:
        return (self.directory / "data" / "meta.properties").exists()

    def _log_since(self, offset: int) -> bytes:
        with self.log_file.open("rb") as log:
            log.seek(offset)
            return log.read()

    def _move(self) -> None:
        self._port = free_port()
        self.bootstrap = f"{HOST}:{self._port}"

    def _running(self) -> LeashedProcess:
        if self._process is None or self._process.exit_code is not None:
            raise BrokerFailed(f"the broker is not running:\n{self.log_tail()}")
        return self._process


class _PortTaken(BrokerFailed):
    """Somebody else was quicker."""
