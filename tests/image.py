"""Builds and runs our Dockerfile where there is no Docker engine: its very instructions, in order.

A stage is a throw-away layer over this machine's root file system, which stands in for the base
image, with the Python that runs the tests under /usr/local.  A container is such a root mounted
read-only, with a volume, a tmpfs, the image's user and no capability.  Needs root.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conftest import ROOT

_BUILD_SECONDS = 500
_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
_IGNORE = [line for line in (ROOT / ".dockerignore").read_text().split("\n") if line[:1] != "#"]


def instructions(text: str) -> list[tuple[str, str]]:
    """Of a Dockerfile, each in one line."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(line.split()[0], line.split(None, 1)[1]) for line in joined.splitlines() if line]


@dataclass
class Stage:
    """A file system and what is set for processes in it."""

    directory: Path
    env: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def layer(self) -> Path:
        """What differs from the base."""
        return self.directory / "upper"

    def command(self, inside: Sequence[str], mounts: Sequence[str] = ()) -> list[str]:
        """A command that becomes `inside`, in this root; `mounts` are lines of shell before."""
        for name in ("upper", "work", "root"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        root = shlex.quote(str(self.directory / "root"))
        options = f"lowerdir=/,upperdir={self.layer},workdir={self.directory / 'work'}"
        script = [
            "set -e",
            "mount --make-rprivate /",
            f"mount -t overlay overlay -o {shlex.quote(options)} {root}",
            f"ROOT={root}",
            'mount --rbind /dev "$ROOT/dev"',
            'mount --rbind /proc "$ROOT/proc"',
        ]
        if sys.base_prefix not in ("/usr", "/usr/local"):
            script.append(f'mount --bind {shlex.quote(sys.base_prefix)} "$ROOT/usr/local"')
            script.append('chroot "$ROOT" /sbin/ldconfig')
        script += [*mounts, f'exec chroot "$ROOT" {shlex.join(inside)}']
        return ["unshare", "--mount", "sh", "-c", "\n".join(script)]


def build(dockerfile: str, workshop: Path) -> Stage:
    """Do what it says; the last stage is the image."""
    stages: dict[str, Stage] = {}
    stage = Stage(workshop / "none")
    for name, value in instructions(dockerfile):
        match name:
            case "FROM":
                label = value.partition(" AS ")[2] or "image"
                stage = stages[label] = Stage(workshop / label)
            case "ENV":
                for pair in shlex.split(value):
                    key, _, content = pair.partition("=")
                    stage.env[key] = content.replace("${PATH}", stage.env["PATH"])
            case "COPY":
                _copy(stage, value, stages)
            case "RUN":
                _run(stage, value)
            case "ARG" | "LABEL":
                pass
            case _:
                stage.settings[name] = value
    return stage


def _copy(stage: Stage, value: str, stages: Mapping[str, Stage]) -> None:
    *sources, target = value.split()
    origin = ROOT
    if sources[0].startswith("--from="):
        origin = stages[sources.pop(0).removeprefix("--from=")].layer
    workdir = stage.settings.get("WORKDIR", "/")
    folder = stage.layer / (Path(workdir) / target).relative_to("/")
    for source in sources:
        if origin == ROOT:
            assert f"!{source}" in _IGNORE, f"{source} is not in the build context"
        path = origin / source.lstrip("/")
        place = folder / path.name if target.endswith("/") else folder
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            unwanted = [line[3:] for line in _IGNORE if line.startswith("**/")]
            ignore = shutil.ignore_patterns(*unwanted) if origin == ROOT else None
            shutil.copytree(path, place, symlinks=True, ignore=ignore)
        else:
            shutil.copy2(path, place)


def _run(stage: Stage, value: str) -> None:
    workdir = stage.settings.get("WORKDIR", "/")
    # Where packages come from is the business of whoever builds.
    env = {k: v for k, v in os.environ.items() if k.upper().startswith(("PIP_", "HTTP", "SSL_"))}
    env |= {"HOME": "/root", **stage.env}
    pairs = [f"{key}={content}" for key, content in env.items()]
    inside = ["env", "-i", f"--chdir={workdir}", *pairs, "sh", "-e", "-c", value]
    done = subprocess.run(
        stage.command(inside), capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False
    )
    assert done.returncode == 0, f"RUN {value}\n{done.stdout}{done.stderr}"


def container(
    image: Stage,
    volume: Path,
    *arguments: str,
    env: Mapping[str, str] = {},
    entrypoint: Sequence[str] | None = None,
) -> list[str]:
    """The command that starts one: read-only but for the volume and /tmp, nobody's user."""
    uid, _, gid = image.settings["USER"].partition(":")
    state = json.loads(image.settings["VOLUME"])[0]
    mounts = [
        f'mount --bind {shlex.quote(str(volume))} "$ROOT{state}"',
        # As Docker mounts a tmpfs: what lies there cannot be run either.
        'mount -t tmpfs -o mode=1777,size=64m,noexec,nosuid,nodev tmpfs "$ROOT/tmp"',
        'mount -o remount,bind,ro "$ROOT"',
        'if mountpoint -q "$ROOT/usr/local"; then mount -o remount,bind,ro "$ROOT/usr/local"; fi',
    ]
    pairs = [f"{key}={value}" for key, value in {**image.env, "HOME": "/", **env}.items()]
    program = entrypoint or json.loads(image.settings["ENTRYPOINT"])
    inside = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs"]
    inside += ["--bounding-set=-all", "--inh-caps=-all"]
    inside += ["env", "-i", f"--chdir={image.settings['WORKDIR']}", *pairs, *program, *arguments]
    return image.command(inside, mounts)


def why_not(workshop: Path) -> str:
    """Why images cannot be built here; empty if they can."""
    if os.geteuid() != 0:
        return "only root can mount the image's file system"
    tried = subprocess.run(
        Stage(workshop / "trial").command(["true"]), capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else f"no throw-away root here: {tried.stderr.strip()}"
