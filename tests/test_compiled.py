"""The cache of compiled loops forgets what was made of other sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, command_environment

A_KEY = """
import numpy as np
from streamdedup.sketch.minhash import crop_keys
out = np.zeros(1, np.uint64)
crop_keys(np.array([7], np.uint32), np.array([8], np.uint16), out)
print(out[0])
"""
COMPOSES = """
import numpy as np
from streamdedup.text.folding import PADDING, needs_normalising
text = "\u0301".encode()
padded = np.frombuffer(text + bytes(PADDING), np.uint8)
entries = np.full(0x400, 1 << 25, np.uint32)
print(needs_normalising(padded, np.array([0, len(text)], np.int64), entries)[0])
"""
# By program a constant in another module than the loop that it runs, which stays as it is.
CHANGES = {
    "a step": (A_KEY, "hashing.py", "0xC4CEB9FE1A85EC53", "0xC4CEB9FE1A85EC55"),
    "a table's layout": (COMPOSES, "text/tables.py", "COMPOSES = 1 << 25", "COMPOSES = 1 << 24"),
}


def printed(program: str, package: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        env=command_environment({"PYTHONPATH": os.fspath(package)}),
        cwd=package,
        timeout=120,
        check=True,
    )
    return done.stdout.decode()


@pytest.mark.parametrize(("program", "module", "now", "then"), CHANGES.values(), ids=CHANGES.keys())
def test_what_changed_in_another_module_is_compiled_anew(
    tmp_path: Path, program: str, module: str, now: str, then: str
) -> None:
    shutil.copytree(
        ROOT / "streamdedup",
        tmp_path / "streamdedup",
        ignore=shutil.ignore_patterns("__pycache__", "sample"),
    )
    first = printed(program, tmp_path)
    assert printed(program, tmp_path) == first
    source = tmp_path / "streamdedup" / module
    assert now in source.read_text()
    source.write_text(source.read_text().replace(now, then))
    assert printed(program, tmp_path) != first


def warmed(cache: Path, *arguments: str, cpu: str = "generic") -> subprocess.CompletedProcess[str]:
    environment = command_environment(
        {
            "NUMBA_CACHE_DIR": os.fspath(cache),
            "NUMBA_CPU_NAME": cpu,
            "HOME": os.fspath(cache.parent),
        }
    )
    return subprocess.run(
        [sys.executable, "-m", "streamdedup.warm", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_shipped_cache_is_complete_and_one_for_another_processor_is_none(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    incomplete = warmed(cache, "--check")
    assert incomplete.returncode == 1
    assert "not complete" in incomplete.stderr
    complete = warmed(cache, "--check")
    assert (complete.returncode, "nothing" in complete.stdout) == (0, True), complete.stderr
    assert warmed(cache, "--check", cpu="x86-64").returncode == 1
