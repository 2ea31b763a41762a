"""What many tests need: the command line as a user calls it, and small feeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from broker import broker, local_kafka, mark_kafka_tests, own_broker, report_unproven
from hypothesis import settings

__all__ = ["broker", "local_kafka", "own_broker"]

# The first example of many a test compiles what it tests; time is measured in benchmarks.
settings.register_profile("streamdedup", deadline=None)
settings.load_profile("streamdedup")

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "streamdedup" / "sample"

HARBOUR = (
    "The harbour authority said on Monday that the old ferry terminal would be closed for the "
    "whole of the winter because the piers are no longer safe. A spokesman for the company told "
    "reporters that it had been warned in the spring, and that the repairs will cost more than "
    "the town can pay. The mayor of the island, who has asked the government for help, said that "
    "people would have to take the long road around the bay until the new bridge is finished. "
    "It is not the first time that the terminal has been shut: in the storm of two years ago the "
    "sea took away a part of the roof and the waiting room was under water for a week."
)
ORCHARD = (
    "An apple grower from the northern valley has bred a variety that keeps in a cellar until "
    "the following summer without any loss of taste. She began with a seedling that she had found "
    "at the edge of a forest, and crossed it with the trees of her grandfather for a dozen years. "
    "The fruit is small and of a dull green, but the judges at the county fair were so taken with "
    "it that they gave her the first prize. Nurseries from all over the country are now asking "
    "for cuttings, and she has had to hire two students to answer the letters."
)


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Finished]


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses among the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_kafka_tests(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    report_unproven(terminalreporter)


def command_environment(extra: Mapping[str, str] = {}) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("STREAMDEDUP_")}
    # A folder without terminal settings, so that widths and colours do not depend on who runs.
    return clean | {"COLUMNS": "120", "TERM": "dumb", "PYTHONPATH": str(ROOT)} | dict(extra)


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "streamdedup", *map(str, arguments)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `streamdedup` in a process of its own, inside the test's directory."""

    def call(*arguments: str | Path, stdin: bytes = b"", env: Mapping[str, str] = {}) -> Finished:
        done = subprocess.run(
            command(*arguments),
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env=command_environment(env),
            timeout=300,
            check=False,
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


def json_lines(objects: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(o).encode() + b"\n" for o in objects)


def small_feed() -> list[dict[str, Any]]:
    """Two stories and a copy of the first with a sentence of its own at the end."""
    return [
        {
            "id": "a1",
            "title": "Terminal shut",
            "text": HARBOUR,
            "published": "2026-03-02T06:00:00Z",
        },
        {"id": "b1", "title": "New apple", "text": ORCHARD, "published": "2026-03-02T07:00:00Z"},
        {
            "id": "a2",
            "title": "Ferry terminal closes",
            "text": HARBOUR + " The ferries will sail from the fishing port for now.",
            "published": "2026-03-02T08:00:00Z",
        },
    ]
