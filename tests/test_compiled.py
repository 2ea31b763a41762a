"""The cache of compiled loops forgets what was made of other sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from conftest import ROOT, command_environment

PROGRAM = """
import numpy as np
from streamdedup.sketch.minhash import crop_keys
out = np.zeros(1, np.uint64)
crop_keys(np.array([7], np.uint32), np.array([8], np.uint16), out)
print(out[0])
"""


def a_key(package: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        env=command_environment({"PYTHONPATH": os.fspath(package)}),
        cwd=package,
        timeout=120,
        check=True,
    )
    return done.stdout.decode()


def test_a_step_that_changed_in_another_module_is_compiled_anew(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "streamdedup",
        tmp_path / "streamdedup",
        ignore=shutil.ignore_patterns("__pycache__", "sample"),
    )
    first = a_key(tmp_path)
    assert a_key(tmp_path) == first
    # `crop_keys` stands in another file and is itself left as it is.
    hashing = tmp_path / "streamdedup" / "hashing.py"
    hashing.write_text(hashing.read_text().replace("0xC4CEB9FE1A85EC53", "0xC4CEB9FE1A85EC55"))
    assert a_key(tmp_path) != first


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
