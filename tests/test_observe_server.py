"""The HTTP server: what it answers, what it refuses, and that nobody can make it suffer."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as open_metrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from streamdedup.errors import ConfigError
from streamdedup.kafka.report import InputReport, Role
from streamdedup.observe.health import HealthWatch
from streamdedup.observe.metrics import Metrics
from streamdedup.observe.page import StatusPage
from streamdedup.observe.server import Pages, Server

STUCK_SECONDS = 30.0


@dataclass
class Site:
    """A server whose clock is the test's."""

    path: Path
    now: float = 0.0
    server: Server = field(init=False)

    def __post_init__(self) -> None:
        self.health = HealthWatch(lambda: self.now, lambda: "", stuck_seconds=STUCK_SECONDS)
        self.metrics = Metrics(self.health, self.path, {})
        page = StatusPage(self.health, self.metrics.series)
        self.server = Server("127.0.0.1", 0, Pages(self.health, self.metrics.series, page.html))

    @property
    def port(self) -> int:
        return int(self.server.address.rstrip("/").rpartition(":")[2])

    def ask(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None
    ) -> tuple[HTTPResponse, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response, body

    def send(self, request: bytes) -> bytes:
        """Bytes that are no proper request."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(request)
            answer = b""
            while more := connection.recv(65_536):
                answer += more
            return answer


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    with site.server:
        yield site


def test_metrics_are_in_the_format_that_is_asked_for(site: Site) -> None:
    response, body = site.ask("/metrics")
    assert response.status == 200
    assert (response.getheader("Content-Type") or "").startswith("text/plain")
    names = {family.name for family in text_string_to_metric_families(body)}
    assert {"streamdedup_records", "streamdedup_stage_seconds", "streamdedup_role"} <= names
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    response, body = site.ask("/metrics", headers=accept)
    assert (response.getheader("Content-Type") or "").startswith("application/openmetrics-text")
    assert {"streamdedup_records"} <= {family.name for family in open_metrics_families(body)}


def test_probes_tell_state_and_reason(site: Site) -> None:
    response, body = site.ask("/readyz")
    assert (response.status, json.loads(body)["state"]) == (503, "starting")
    assert site.ask("/healthz")[0].status == 200
    site.health.on_role(Role.WORKING)
    response, body = site.ask("/readyz")
    assert (response.status, json.loads(body)["state"]) == (200, "owner")
    assert json.loads(body)["why"]
    site.now += STUCK_SECONDS + 1
    for path in ("/healthz", "/readyz"):
        response, body = site.ask(path)
        assert (response.status, json.loads(body)["state"]) == (503, "stuck")
        assert json.loads(body)["tick_age_seconds"] == STUCK_SECONDS + 1


def test_the_status_page_is_plain_and_escaped(site: Site) -> None:
    site.health.on_role(Role.CONNECTING)
    site.health.on_trouble("cannot reach <script>alert(1)</script> & co")
    site.metrics.on_input(InputReport({("articles", 0): 1_234}, {("articles", 0): 0}))
    response, body = site.ask("/")
    assert response.status == 200
    assert "<script" not in body
    assert "&lt;script&gt;" in body
    assert "1,234 offsets behind" in body
    assert "http" not in body.replace("http-equiv", "")  # nothing from elsewhere


def test_the_status_page_of_a_standby_does_not_tell_what_only_the_owner_knows(site: Site) -> None:
    site.health.on_role(Role.STANDBY)
    body = site.ask("/")[1]
    assert "records/s" not in body
    assert "this instance does not judge" in body
    assert "offsets behind" not in body
    assert "only the owner knows it" in body
    site.health.on_role(Role.WORKING)
    site.metrics.on_input(InputReport({("articles", 0): 7}, {("articles", 0): 7}))
    body = site.ask("/")[1]
    assert "0 records/s" in body
    assert "0 offsets behind" in body


def test_head_has_the_headers_and_no_body(site: Site) -> None:
    response, body = site.ask("/metrics", "HEAD")
    assert response.status == 200
    assert int(response.getheader("Content-Length") or 0) > 1_000
    assert body == ""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_everything_but_get_and_head_is_refused(site: Site, method: str) -> None:
    response, _ = site.ask("/metrics", method)
    assert response.status == 405
    assert response.getheader("Allow") == "GET, HEAD"


def test_what_is_not_there_is_not_found(site: Site) -> None:
    response, body = site.ask("/../../etc/passwd<b>")
    assert (response.status, body) == (404, "not found\n")


def test_a_request_without_end_is_refused(site: Site) -> None:
    assert b"414" in site.send(b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n").splitlines()[0]
    many = b"".join(b"X-%d: y\r\n" % n for n in range(200))
    assert b"431" in site.send(b"GET / HTTP/1.1\r\n" + many + b"\r\n").splitlines()[0]


def test_connections_that_say_nothing_do_not_keep_others_out_for_long(site: Site) -> None:
    silent = [socket.create_connection(("127.0.0.1", site.port)) for _ in range(40)]
    try:
        until = time.monotonic() + 10
        status = 0
        while status != 200 and time.monotonic() < until:
            try:
                status = site.ask("/healthz")[0].status
            except OSError:
                time.sleep(0.2)
        assert status == 200
    finally:
        for connection in silent:
            connection.close()


def test_a_port_in_use_is_said_with_the_remedy(site: Site) -> None:
    with pytest.raises(ConfigError, match=rf"http.port {site.port}: .*in use.*another http.port"):
        Server("127.0.0.1", site.port, Pages(site.health, site.metrics.series, str))


def test_a_host_that_is_not_ours_is_said(site: Site) -> None:
    with pytest.raises(ConfigError, match=r"http.host 192\.0\.2\.1"):
        Server("192.0.2.1", 0, Pages(site.health, site.metrics.series, str))
