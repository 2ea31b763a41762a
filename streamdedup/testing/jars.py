"""Kafka's jars, fetched once by Maven into the user's cache directory.

A cache directory appears complete or not at all: whatever is interrupted, and however many
processes fetch at the same time.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from streamdedup.testing.cache import cache_home, locked
from streamdedup.testing.errors import BrokerUnavailable
from streamdedup.testing.java import java, maven

POM = Path(__file__).with_name("pom.xml")
FETCH_TIMEOUT_SECONDS = 600


def cache_directory() -> Path:
    """Where the jars of this version of `pom.xml` are, or will be."""
    pom = POM.read_bytes()
    version = re.search(rb"<kafka.version>(.+)</kafka.version>", pom)
    assert version is not None
    name = f"kafka-{version[1].decode()}-{hashlib.sha256(pom).hexdigest()[:12]}"
    return cache_home() / name


def jars() -> Path:
    """The directory of the jars; fetches them if need be."""
    directory = cache_directory()
    if directory.exists():
        return directory
    try:
        with locked(directory.with_suffix(".lock")):
            if not directory.exists():
                _fetch(directory)
    except OSError as error:
        raise BrokerUnavailable(f"cannot keep Kafka's jars in {directory}: {error}") from error
    return directory


def _fetch(directory: Path) -> None:
    # In the cache's own directory, because a rename is atomic on one file system only.
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=directory.parent) as workshop:
        shutil.copy(POM, workshop)
        command = [
            str(maven()),
            "--batch-mode",
            "--no-transfer-progress",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=jars",
        ]
        try:
            done = subprocess.run(
                command,
                cwd=workshop,
                # Debian's mvn looks for a compiler's Java home; the runtime is enough here.
                env=os.environ | {"JAVA_HOME": str(java().resolve().parent.parent)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=FETCH_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BrokerUnavailable(
                f"Maven did not fetch Kafka's jars within {FETCH_TIMEOUT_SECONDS} s"
            ) from error
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-15:])
            raise BrokerUnavailable(f"Maven could not fetch Kafka's jars:\n{tail}")
        (Path(workshop) / "jars").rename(directory)
