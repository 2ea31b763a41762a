"""A real Prometheus and a real Alertmanager on this machine, with the files that are shipped.

What a test changes of these files is done to a copy, by key, so that it is seen here what it is:
addresses, and how often it looks.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from broker import NO_MONITORING
from conftest import ROOT
from service import wait_until

from streamdedup.testing.errors import MonitoringUnavailable
from streamdedup.testing.monitoring import program
from streamdedup.testing.ports import free_port
from streamdedup.testing.process import LeashedProcess

PROMETHEUS = ROOT / "deploy" / "prometheus"
SCRAPE_SECONDS = 1
Series = list[dict[str, Any]]


def found(name: str) -> Path:
    """A program, or the test is skipped and counted."""
    try:
        return program(name)
    except MonitoringUnavailable as error:
        pytest.skip(NO_MONITORING + str(error))


def shipped(name: str) -> Any:
    """A file of deploy/prometheus, parsed."""
    return yaml.safe_load((PROMETHEUS / name).read_text())


class Monitor:
    """One server, its port and its log."""

    def __init__(self, name: str, directory: Path, *arguments: str) -> None:
        self.port = free_port()
        self.log = directory / f"{name}.log"
        self.process = LeashedProcess(
            [str(found(name)), f"--web.listen-address=127.0.0.1:{self.port}", *arguments], self.log
        )

    @property
    def is_ready(self) -> bool:
        assert self.process.exit_code is None, self.log.read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=10):
                return True
        except OSError:
            return False

    def get(self, path: str, **parameters: str | float) -> Any:
        """An answer of its API; its own words where it refuses."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{path}?{query}", timeout=30
            ) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from None


class Prometheus(Monitor):
    """Scrapes the given ports of localhost."""

    def query(self, expr: str, at: float) -> Series:
        """As a panel of one value asks."""
        return values(self.get("/api/v1/query", query=expr, time=at))

    def query_range(self, expr: str, start: float, end: float) -> Series:
        """As a panel of lines asks."""
        return values(
            self.get("/api/v1/query_range", query=expr, start=start, end=end, step=SCRAPE_SECONDS)
        )

    @property
    def rules(self) -> list[dict[str, Any]]:
        groups = self.get("/api/v1/rules")["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    @property
    def metric_names(self) -> set[str]:
        """Of all that it has scraped or recorded."""
        return set(self.get("/api/v1/label/__name__/values")["data"])


def values(answer: dict[str, Any]) -> Series:
    """Series with at least one number; NaN is what Grafana draws as nothing."""
    kept = []
    for series in answer["data"]["result"]:
        points = series["values"] if "values" in series else [series["value"]]
        numbers = [float(value) for _, value in points if value != "NaN"]
        if numbers:
            kept.append({"labels": series["metric"], "numbers": numbers})
    return kept


@contextmanager
def prometheus(
    directory: Path,
    ports: Iterable[int],
    *,
    rules: Path = PROMETHEUS / "rules.yml",
    alertmanager_port: int | None = None,
) -> Iterator[Prometheus]:
    """The shipped configuration, but for addresses and a look every second."""
    config = shipped("prometheus.yml")
    config["global"] = dict.fromkeys(config["global"], f"{SCRAPE_SECONDS}s")
    config["rule_files"] = [str(rules)]
    [scrape] = config["scrape_configs"]
    del scrape["dns_sd_configs"]
    scrape["static_configs"] = [{"targets": [f"localhost:{port}" for port in ports]}]
    alertmanagers = [] if alertmanager_port is None else [f"127.0.0.1:{alertmanager_port}"]
    config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": alertmanagers}]}]
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    server = Prometheus(
        "prometheus",
        directory,
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'prometheus'}",
    )
    with lasting(server):
        yield server


@contextmanager
def alertmanager(directory: Path) -> Iterator[Monitor]:
    """The shipped configuration as it is."""
    server = Monitor(
        "alertmanager",
        directory,
        f"--config.file={PROMETHEUS / 'alertmanager.yml'}",
        f"--storage.path={directory / 'alertmanager'}",
        "--cluster.listen-address=",
    )
    with lasting(server):
        yield server


@contextmanager
def lasting(server: Monitor) -> Iterator[None]:
    """Ready at the beginning, ended at the end."""
    try:
        wait_until(lambda: server.is_ready, f"{server.log.name} to say that it is ready")
        yield
    finally:
        server.process.kill()
