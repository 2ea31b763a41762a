"""Gets what a local broker needs: Java and Maven from Debian, Kafka's jars from Maven Central.

    python -m streamdedup.testing.install

Does nothing where everything is there.  Only root can install packages; others are told what to
install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from streamdedup.testing.errors import BrokerUnavailable
from streamdedup.testing.jars import cache_directory, jars
from streamdedup.testing.java import OLDEST_JAVA, java, maven

# Debian 12, Debian 13 and Ubuntu 24.04, and what comes after them.
JAVA_PACKAGES = [f"openjdk-{version}-jre-headless" for version in (17, 21, 25)]
APT_GET = ["apt-get", "--quiet", "--yes", "-o", "Acquire::Retries=2", "-o", "Dpkg::Use-Pty=0"]


def install() -> None:
    """Make a local broker possible, or raise `BrokerUnavailable` with the reason."""
    packages = [] if _has_java() else [JAVA_PACKAGES]
    if not cache_directory().exists() and not _has_maven():
        packages.append(["maven"])
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        _apt_get("update")
        for choices in packages:
            _install_first_of(choices)
    java()
    if not cache_directory().exists():
        print("Fetching Kafka's jars with Maven", file=sys.stderr)
    jars()


def _has_java() -> bool:
    try:
        java()
    except BrokerUnavailable:
        return False
    return True


def _has_maven() -> bool:
    try:
        maven()
    except BrokerUnavailable:
        return False
    return True


def _install_first_of(choices: list[str]) -> None:
    for package in choices:
        shown = subprocess.run(["apt-cache", "show", package], capture_output=True, check=False)
        if shown.returncode == 0:
            print(f"Installing the Debian package {package}", file=sys.stderr)
            _apt_get("install", "--no-install-recommends", package)
            return
    raise BrokerUnavailable(f"Debian has none of {', '.join(choices)}: install Java {OLDEST_JAVA}")


def _apt_get(*arguments: str) -> None:
    done = subprocess.run(
        [*APT_GET, *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-10:])
        raise BrokerUnavailable(f"apt-get {' '.join(arguments)} failed:\n{tail}")


def main() -> None:
    try:
        install()
    except BrokerUnavailable as error:
        sys.exit(f"warning: {error}\nwarning: without it, the tests that need Kafka are skipped")


if __name__ == "__main__":
    main()
