"""Prometheus and Alertmanager for tests: those of the machine, or Debian's, fetched once.

    python -m streamdedup.testing.monitoring

Packages are downloaded and unpacked into the user's cache directory, not installed: nobody's
services are started, and nobody has to be root.  One thing cannot be done that way: Debian's
Alertmanager looks for a template in /usr, and root puts it there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from streamdedup.testing.cache import cache_home, locked
from streamdedup.testing.errors import MonitoringUnavailable

PACKAGES = ("prometheus", "prometheus-alertmanager")
# What each is called on a path: upstream's name first, Debian's behind it.
NAMES = {
    "prometheus": ("prometheus",),
    "promtool": ("promtool",),
    "alertmanager": ("alertmanager", "prometheus-alertmanager"),
    "amtool": ("amtool",),
}
TEMPLATES_UNPACKED = Path("usr/share/prometheus/alertmanager")
TEMPLATES = Path("/") / TEMPLATES_UNPACKED
TIMEOUT_SECONDS = 300
ADVICE = (
    "install Prometheus and Alertmanager, for example Debian's packages "
    f"{' and '.join(PACKAGES)}, without starting their services"
)


def program(name: str) -> Path:
    """An executable that is there already: on the path, or in the cache."""
    for called in NAMES[name]:
        found = shutil.which(called)
        if found is not None:
            return Path(found)
    cached = cache_directory() / "usr" / "bin" / NAMES[name][-1]
    if not cached.exists():
        raise MonitoringUnavailable(f"no {name} found; run `make install`, or {ADVICE}")
    if name == "alertmanager" and not (TEMPLATES / "default.tmpl").exists():
        raise MonitoringUnavailable(
            f"Debian's Alertmanager wants its templates in {TEMPLATES}: run `make install` once as "
            f"root, or {ADVICE}"
        )
    return cached


def cache_directory() -> Path:
    """Where the packages are unpacked, or will be."""
    return cache_home() / "monitoring"


def install() -> None:
    """Make every program findable, or raise `MonitoringUnavailable` with the reason."""
    if not all(any(map(shutil.which, called)) for called in NAMES.values()):
        directory = cache_directory()
        try:
            with locked(directory.with_suffix(".lock")):
                if not directory.exists():
                    _fetch(directory)
                _give_templates(directory / TEMPLATES_UNPACKED)
        except OSError as error:
            raise MonitoringUnavailable(
                f"cannot keep Prometheus in {directory}: {error}"
            ) from error
    for name in NAMES:
        program(name)


def _fetch(directory: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise MonitoringUnavailable(f"Prometheus is fetched by apt-get: there is none; {ADVICE}")
    print(f"Fetching the Debian packages {' and '.join(PACKAGES)}", file=sys.stderr)
    # In the cache's own directory, because a rename is atomic on one file system only.
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=directory.parent) as workshop:
        work = Path(workshop)
        for part in ("lists", "cache", "packages"):
            (work / part / "partial").mkdir(parents=True)
        # Lists of our own: those of the system may be missing or old, and only root may renew them.
        options = [
            "-o",
            f"Dir::State::lists={work / 'lists'}",
            "-o",
            f"Dir::Cache={work / 'cache'}",
        ]
        options += ["-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=2"]
        _run(["apt-get", "--quiet", *options, "update"], work)
        _run(["apt-get", "--quiet", *options, "download", *PACKAGES], work / "packages")
        for package in (work / "packages").glob("*.deb"):
            _run(["dpkg", "--extract", str(package), str(work / "root")], work)
        (work / "root").rename(directory)


def _give_templates(unpacked: Path) -> None:
    if os.geteuid() == 0 and unpacked.exists() and not TEMPLATES.exists():
        print(f"Putting Alertmanager's templates into {TEMPLATES}", file=sys.stderr)
        TEMPLATES.mkdir(parents=True)
        for template in unpacked.glob("*.tmpl"):
            shutil.copy(template, TEMPLATES)


def _run(command: list[str], directory: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MonitoringUnavailable(
            f"{command[0]} did not end within {TIMEOUT_SECONDS} s; {ADVICE}"
        ) from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-10:])
        raise MonitoringUnavailable(f"{command[0]} failed:\n{tail}\n{ADVICE}")


def main() -> None:
    try:
        install()
    except MonitoringUnavailable as error:
        sys.exit(f"warning: {error}\nwarning: without it, the tests that need it are skipped")


if __name__ == "__main__":
    main()
