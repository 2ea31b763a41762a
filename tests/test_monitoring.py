"""Prometheus for tests is fetched once, whole or not at all, and what is missing is said."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import ROOT

from streamdedup.testing import monitoring
from streamdedup.testing.errors import MonitoringUnavailable
from streamdedup.testing.monitoring import NAMES, cache_directory, install, program

# Unpacks an empty program of every name, as Debian calls it.
DPKG = """
/bin/mkdir -p "$3/usr/bin" "$3/usr/share/prometheus/alertmanager"
for name in prometheus promtool prometheus-alertmanager amtool; do
    : > "$3/usr/bin/$name"
done
: > "$3/usr/share/prometheus/alertmanager/default.tmpl"
"""
APT_GET = 'case "$*" in *download*) : > one.deb;; esac\n'


def executable(file: Path, script: str) -> None:
    file.write_text("#!/bin/sh\n" + script)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Prometheus; the directory returned is its whole PATH."""
    commands = tmp_path / "bin"
    commands.mkdir()
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(monitoring, "TEMPLATES", tmp_path / "usr" / "share" / "prometheus")
    return commands


def test_what_is_missing_is_said_with_what_to_do(bare: Path) -> None:
    with pytest.raises(MonitoringUnavailable, match=r"no promtool found; run `make install`, or"):
        program("promtool")
    with pytest.raises(MonitoringUnavailable, match="apt-get: there is none; install Prometheus"):
        install()


def test_a_program_of_the_machine_comes_before_one_of_the_cache(bare: Path) -> None:
    for called in NAMES.values():
        executable(bare / called[-1], "")
    install()  # needs neither apt-get nor dpkg
    assert program("alertmanager") == bare / "prometheus-alertmanager"
    assert not cache_directory().parent.exists()


def test_a_fetch_that_fails_leaves_no_half_and_shows_why(bare: Path) -> None:
    executable(bare / "apt-get", "echo 'Could not resolve the mirror'; exit 100")
    executable(bare / "dpkg", DPKG)
    with pytest.raises(MonitoringUnavailable, match=r"(?s)apt-get failed.*resolve the mirror"):
        install()
    assert [file.suffix for file in cache_directory().parent.iterdir()] == [".lock"]


def test_packages_are_unpacked_and_not_installed_once_whoever_asks_at_the_same_time(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = bare / "calls"
    executable(bare / "apt-get", f'echo "$*" >> {calls}; /bin/sleep 0.2\n' + APT_GET)
    executable(bare / "dpkg", f'echo "$*" >> {calls}\n' + DPKG)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with ThreadPoolExecutor(3) as askers:
        for asked in [askers.submit(install) for _ in range(3)]:
            asked.result()
    told = calls.read_text().splitlines()
    assert sum(line.endswith(" update") for line in told) == 1
    assert sum(" download " in line for line in told) == 1
    assert [line.split()[0] for line in told if not line.startswith("--quiet")] == ["--extract"]
    assert program("promtool") == cache_directory() / "usr" / "bin" / "promtool"
    assert program("alertmanager").name == "prometheus-alertmanager"
    assert [file.name for file in monitoring.TEMPLATES.iterdir()] == ["default.tmpl"]


def test_whoever_is_not_root_gets_all_but_alertmanager(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(bare / "apt-get", APT_GET)
    executable(bare / "dpkg", DPKG)
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    with pytest.raises(MonitoringUnavailable, match="run `make install` once as root"):
        install()
    assert program("prometheus").exists()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    install()
    assert program("alertmanager").exists()


def test_promises_that_could_not_be_tried_are_counted_at_the_end(bare: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_alerts.py"],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d promises about monitoring went unproven: no Prometheus: no", done.stdout)
