"""Everything that watches one service, put together from the settings.

It owns the log, health, metrics, the watchdog and HTTP for as long as the service lives.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from streamdedup.config import Config
from streamdedup.errors import ConfigError
from streamdedup.kafka.report import Listener
from streamdedup.observe.disk import disk_trouble
from streamdedup.observe.health import HealthWatch
from streamdedup.observe.listeners import Listeners
from streamdedup.observe.log import EventLog, chosen_format
from streamdedup.observe.metrics import Metrics
from streamdedup.observe.page import StatusPage
from streamdedup.observe.server import Pages, Server
from streamdedup.observe.watchdog import Watchdog
from streamdedup.schemes.shingled import ShingledScheme


class Observatory:
    """Give its `listener` to the service that runs between entering and leaving."""

    def __init__(
        self,
        config: Config,
        stream: TextIO,
        *,
        listener: Listener | None = None,
        any_port: bool = False,
    ) -> None:
        """`listener` takes the log's place; `any_port` where the one that is set is in use."""
        self._http = config.http
        self._any_port = any_port
        path = Path(config.state.path)
        self.log = EventLog(stream, chosen_format(config.log.format, stream))
        self.health = HealthWatch(
            time.monotonic,
            lambda: disk_trouble(path),
            stuck_seconds=config.http.stuck_seconds,
        )
        scheme = ShingledScheme(config.scheme, config.match)
        self.metrics = Metrics(self.health, path, scheme.fingerprint)
        said = self.log if listener is None else listener
        self.listener: Listener = Listeners(self.health, self.metrics, said)
        self.address = ""
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        host, port = self._http.host, self._http.port
        if host and port >= 0:
            page = StatusPage(self.health, self.metrics.series)
            pages = Pages(self.health, self.metrics.series, page.html)
            self.address = self._stack.enter_context(self._server(host, port, pages)).address
        stuck_seconds = self._http.stuck_seconds
        watchdog = Watchdog(self.health.now, self.log, stuck_seconds=stuck_seconds)
        self._stack.enter_context(watchdog)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _server(self, host: str, port: int, pages: Pages) -> Server:
        try:
            return Server(host, port, pages)
        except ConfigError:
            if not self._any_port:
                raise
            return Server(host, 0, pages)
