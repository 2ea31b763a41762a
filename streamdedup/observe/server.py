"""A small HTTP server beside the service: /metrics, /healthz, /readyz and a page at /.

It answers GET and HEAD and reads nothing of a request but its line and headers.  It never touches
the loop: what it tells are values that listeners have kept.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread
from types import TracebackType
from typing import Any, Self

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from streamdedup.errors import ConfigError
from streamdedup.observe.health import Health, HealthWatch
from streamdedup.observe.series import Series

_REQUEST_SECONDS = 5.0
_LOOK_SECONDS = 0.1  # for the end
_AT_ONCE = 16
_JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """What goes back."""

    status: HTTPStatus
    kind: str
    body: bytes


class Pages:
    """What stands under each path."""

    def __init__(self, health: HealthWatch, series: Series, page: Callable[[], str]) -> None:
        self._health = health
        self._page = page
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(series)

    def answer(self, path: str, accept: str) -> Answer:
        """One page."""
        match path.partition("?")[0]:
            case "/metrics":
                encode, kind = choose_encoder(accept)
                return Answer(HTTPStatus.OK, kind, encode(self._registry))
            case "/healthz":
                health = self._health.now()
                return _verdict(health, health.alive)
            case "/readyz":
                health = self._health.now()
                return _verdict(health, health.ready)
            case "/":
                return Answer(HTTPStatus.OK, "text/html; charset=utf-8", self._page().encode())
            case _:
                return Answer(HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")


class Server:
    """Listens between entering and leaving, in threads of its own."""

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        self._http = _listening(host, port, pages)
        bound = self._http.server_address[1]
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{bound}/"
        self._thread = Thread(
            target=self._http.serve_forever, args=(_LOOK_SECONDS,), name="http", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, family: int, address: Any, pages: Pages) -> None:
        self.address_family = socket.AddressFamily(family)
        self.pages = pages
        self._free = BoundedSemaphore(_AT_ONCE)
        super().__init__(address, _Request)

    def server_bind(self) -> None:
        # HTTPServer would ask the name service for its own name, which may take long.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread a request, but not more than so many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has gone away, or took too long; anything else is a bug and is shown."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Request(BaseHTTPRequestHandler):
    server: _Http
    timeout = _REQUEST_SECONDS
    server_version = "streamdedup"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a body."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """The same without."""
        self._answer(with_body=False)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Also what BaseHTTPRequestHandler does not like; nothing of the request is repeated."""
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED and self.command:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self._send(Answer(status, "text/plain", f"{status.phrase}\n".encode()), with_body=True)

    def log_message(self, format: str, *args: Any) -> None:
        """Probes come every few seconds; nobody wants to read of them."""

    def _answer(self, *, with_body: bool) -> None:
        accept = self.headers.get("Accept", "")
        self._send(self.server.pages.answer(self.path, accept), with_body=with_body)

    def _send(self, answer: Answer, *, with_body: bool) -> None:
        self.close_connection = True
        self.send_response(answer.status)
        if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)


def _listening(host: str, port: int, pages: Pages) -> _Http:
    where = f"http.host {host}, http.port {port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # A name with both kinds of addresses, as localhost has: the older one is everywhere.
        family, _, _, _, address = min(found, key=lambda one: one[0])
        return _Http(family, address, pages)
    except OSError as error:
        raise ConfigError(
            f"{where}: cannot listen: {error.strerror or error}; choose another http.port, "
            "0 for any free one, -1 for none"
        ) from None


def _verdict(health: Health, good: bool) -> Answer:
    body = {
        "ok": good,
        "state": health.state,
        "role": health.role,
        "why": health.why,
        "tick_age_seconds": round(health.tick_age_seconds, 3),
    }
    status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, _JSON, msgspec.json.encode(body) + b"\n")
