"""The Dockerfile: its linter, and its image built and run as nobody on a read-only tree."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import ROOT, SAMPLE
from image import Stage, build, container, instructions, why_not
from probes import ask
from service import Setup, feed, wait_until

from streamdedup.testing import Kafka
from streamdedup.testing.ports import free_port

DOCKERFILE = (ROOT / "Dockerfile").read_text()
HADOLINT = Path(sysconfig.get_path("scripts")) / "hadolint"
NOBODY = 65532


def hadolint(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HADOLINT, "-"], input=text, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_linter_is_content() -> None:
    done = hadolint(DOCKERFILE)
    assert done.returncode == 0, done.stdout


def test_the_linter_would_notice_a_moving_base_and_a_shell_as_entry_point() -> None:
    moving = DOCKERFILE.replace("ARG PYTHON=python:3.11.14-slim-bookworm\n", "").replace(
        "FROM ${PYTHON}", "FROM python"
    )
    assert "DL3006" in hadolint(moving).stdout
    shell = DOCKERFILE.replace('ENTRYPOINT ["streamdedup"]', "ENTRYPOINT streamdedup")
    assert "DL3025" in hadolint(shell).stdout


def test_the_image_says_who_runs_it_and_how_it_ends() -> None:
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    settings = dict(instructions("FROM " + final))
    assert settings["USER"] == f"{NOBODY}:{NOBODY}"
    assert settings["STOPSIGNAL"] == "SIGTERM"
    assert "streamdedup.observe.probe" in settings["HEALTHCHECK"]
    assert re.search(r"^ARG PYTHON=python:\d+\.\d+\.\d+-slim-\w+$", DOCKERFILE, re.M)
    assert "HTTP__HOST" not in DOCKERFILE  # who may reach it is for the deployment to say


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    workshop = tmp_path_factory.mktemp("image")
    if reason := why_not(workshop):
        pytest.skip(f"no image: {reason}")
    return build(DOCKERFILE, workshop)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """As a new volume is: the image's directory, with its owner."""
    folder = tmp_path / "volume"
    folder.mkdir(mode=0o750)
    os.chown(folder, NOBODY, NOBODY)
    return folder


def finished(command: list[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)


def test_nothing_in_the_image_can_be_written_but_the_volume_and_tmp(
    image: Stage, volume: Path
) -> None:
    program = """
import os, sys
places = ["/", "/opt/streamdedup", os.environ["NUMBA_CACHE_DIR"], sys.prefix, "/usr/local", "/etc"]
places += ["/tmp", "/var/lib/streamdedup"]
def written(place):
    try:
        open(place + "/probe", "w").close()
    except OSError:
        return False
    return True
print(os.getuid(), os.getgid(), [place for place in places if written(place)])
print([line for line in open("/proc/self/status") if line.startswith(("CapEff", "NoNewPrivs"))])
"""
    done = finished(container(image, volume, "-c", program, entrypoint=["python"]))
    assert done.returncode == 0, done.stderr
    who, privileges = done.stdout.decode().splitlines()
    assert who == f"{NOBODY} {NOBODY} ['/tmp', '/var/lib/streamdedup']"
    assert "CapEff:\\t0000000000000000" in privileges
    assert "NoNewPrivs:\\t1" in privileges


def test_the_entry_point_has_help_and_the_wheel_brings_its_data(image: Stage, volume: Path) -> None:
    done = finished(container(image, volume, "--help"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Usage: streamdedup")
    sample = (SAMPLE / "feed.jsonl").read_bytes()
    scanned = finished(container(image, volume, "scan", "-", "--state", "scanned"), sample)
    assert scanned.returncode == 0, scanned.stderr
    verdicts = [json.loads(line) for line in scanned.stdout.splitlines()]
    assert len(verdicts) == len(sample.splitlines())
    assert {"unique", "duplicate"} == {verdict["verdict"] for verdict in verdicts}
    assert (volume / "scanned").stat().st_uid == NOBODY


def test_every_loop_comes_from_the_images_cache(image: Stage, volume: Path) -> None:
    entry = ["python", "-m", "streamdedup.warm", "--check"]
    began = time.monotonic()
    done = finished(container(image, volume, entrypoint=entry))
    seconds = time.monotonic() - began
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    print(f"all loops loaded in {seconds:.1f} s")
    # The same, told of a cache that is not there: it compiles, and says so.
    without = {"NUMBA_CACHE_DIR": "/opt/streamdedup/nothing"}
    assert finished(container(image, volume, env=without, entrypoint=entry)).returncode == 1


def served(setup: Setup, extra: Mapping[str, str]) -> dict[str, str]:
    # The image says where state lies; a container on this machine listens for this machine only.
    local = {"STREAMDEDUP_HTTP__HOST": "127.0.0.1", **extra}
    return {**setup.environment, **local}


def test_the_service_gets_ready_judges_compiles_nothing_and_leaves_within_five_seconds(
    image: Stage, volume: Path, broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker)
    setup.produce(feed(300))
    port = str(free_port())
    env = served(setup, {"STREAMDEDUP_HTTP__PORT": port, "NUMBA_DEBUG_CACHE": "1"})
    command = container(image, volume, "run", "--create-topics", env=env)
    out, log = tmp_path / "out", tmp_path / "log"
    with out.open("wb") as stdout, log.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr)
    try:
        url = f"http://127.0.0.1:{port}"

        def is_owner() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                return ask(f"{url}/readyz")[0] == 200 and '"owner"' in ask(f"{url}/readyz")[1]
            except OSError:
                return False

        wait_until(is_owner, "an owner that is ready")
        entry = json.loads(image.settings["HEALTHCHECK"].partition("CMD ")[2])
        assert finished(container(image, volume, env=env, entrypoint=entry)).returncode == 0
        setup.wait_for(300)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0, log.read_text()
        assert time.monotonic() - began < 5
    finally:
        process.kill()
        process.wait()
    setup.check_truth()
    told = out.read_text()
    assert told.count("data loaded from '/opt/streamdedup/loops/") > 20
    assert "saved to" not in told
    assert "Read-only file system" not in log.read_text()
    assert "compiling" not in log.read_text()
    assert (volume / "state").stat().st_uid == NOBODY
    probe = env | {"STREAMDEDUP_HTTP__PORT": port}
    assert finished(container(image, volume, env=probe, entrypoint=entry)).returncode == 1
