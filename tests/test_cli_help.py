"""The command line before any work: help, version, and what it must not import."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import Run, command_environment

from streamdedup import __version__
from streamdedup.cli.app import COMMANDS

HEAVY = {"numba", "numpy", "rocksdict", "rich", "confluent_kafka", "msgspec", "xxhash"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["demo", "--help"],
        ["run", "--help"],
        ["produce", "--help"],
        ["verdicts", "--help"],
        ["dlq", "replay", "--help"],
        ["scan", "--help"],
        ["eval", "--help"],
        ["state", "rebuild", "--help"],
    ],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    probe = (
        "import sys; from streamdedup.cli.app import run; "
        f"code = run({arguments!r}); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe],
        capture_output=True,
        text=True,
        env=command_environment(),
        check=True,
    )
    assert done.stdout.startswith("Usage: streamdedup")
    assert not HEAVY & set(done.stderr.split())


def test_help_lists_every_command_and_each_has_help(run: Run) -> None:
    overview = run("--help")
    assert overview.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in overview.out
        assert run(name, "--help").code == 0


def test_version(run: Run) -> None:
    assert run("--version").out == f"streamdedup {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["scan"], ["scan", "missing.jsonl"], ["scan", "--nonsense", "-"]],
)
def test_wrong_usage_exits_with_2_and_keeps_stdout_empty(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "Usage: streamdedup" in done.err
    assert "Traceback" not in done.err
