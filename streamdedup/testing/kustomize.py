"""Kustomize, built once by Go into the user's cache directory: what resolves our Kubernetes files.

    python -m streamdedup.testing.kustomize

fetches it where Go is installed, and says so where it is not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from streamdedup.errors import StreamdedupError

VERSION = "v5.7.1"
MODULE = f"sigs.k8s.io/kustomize/kustomize/v5@{VERSION}"
_BUILD_SECONDS = 600


class KustomizeUnavailable(StreamdedupError):
    """It is neither installed nor can it be built here."""


def kustomize() -> Path:
    """The command: from the path, from the cache, or built now."""
    if found := shutil.which("kustomize"):
        return Path(found)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cached = home / "streamdedup" / f"kustomize-{VERSION}"
    if not cached.exists():
        _build(cached)
    return cached


def _build(target: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise KustomizeUnavailable("no kustomize: install it, or Go, which builds it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Renamed at the end, so that the cache never has half of it.
        with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent) as workshop:
            done = subprocess.run(
                [go, "install", MODULE],
                env=os.environ | {"GOBIN": workshop, "GOFLAGS": "-mod=mod"},
                cwd=workshop,
                capture_output=True,
                text=True,
                timeout=_BUILD_SECONDS,
                check=False,
            )
            if done.returncode != 0:
                raise KustomizeUnavailable(f"Go could not build kustomize:\n{done.stderr[-2000:]}")
            (Path(workshop) / "kustomize").rename(target)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KustomizeUnavailable(f"Go could not build kustomize: {error}") from error


def main() -> None:
    """Make sure that it is there."""
    try:
        kustomize()
    except KustomizeUnavailable as error:
        sys.exit(f"warning: {error}\nwarning: without it, one test of the deployment is skipped")


if __name__ == "__main__":
    main()
