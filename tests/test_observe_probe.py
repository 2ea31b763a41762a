"""The probe that an image's health check runs: yes, no, and nobody there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from conftest import command_environment
from probes import address, ready
from service import Setup, feed, running, wait_until

from streamdedup.testing import Kafka
from streamdedup.testing.ports import free_port


def probe(path: str, port: str) -> tuple[int, str]:
    return probed(path, {"STREAMDEDUP_HTTP__HOST": "0.0.0.0", "STREAMDEDUP_HTTP__PORT": port})


def probed(path: str, environment: Mapping[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "streamdedup.observe.probe", path],
        env=command_environment(environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def test_it_says_what_the_instance_says(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker, extra={"STREAMDEDUP_HTTP__PORT": "0"})
    with running(setup, tmp_path, STREAMDEDUP_FAILPOINT="decided:1:hang") as instance:
        port = address(instance).rstrip("/").rpartition(":")[2]
        wait_until(lambda: ready(instance)["state"] == "owner", "an owner")
        assert probe("readyz", port)[0] == 0
        code, told = probe("healthz", port)
        assert (code, '"state":"owner"' in told) == (0, True)
        assert probe("no-such-page", port)[0] == 1
        instance.kill()
        assert probe("healthz", port)[0] == 1


def test_a_stuck_instance_is_not_healthy(broker: Kafka, tmp_path: Path) -> None:
    stuck = {"STREAMDEDUP_HTTP__PORT": "0", "STREAMDEDUP_HTTP__STUCK_SECONDS": "1"}
    setup = Setup(broker, extra=stuck)
    with running(setup, tmp_path, STREAMDEDUP_FAILPOINT="decided:1:hang") as instance:
        port = address(instance).rstrip("/").rpartition(":")[2]
        wait_until(lambda: ready(instance)["state"] == "owner", "an owner")
        setup.produce(feed(20))
        wait_until(lambda: probe("healthz", port)[0] == 1, "a stuck instance")
        assert '"state":"stuck"' in probe("healthz", port)[1]
        instance.kill()


def test_where_nobody_listens_the_answer_is_no() -> None:
    port = str(free_port())
    code, told = probe("healthz", port)
    assert code == 1
    assert f"127.0.0.1:{port} does not answer" in told
    assert probe("healthz", "-1")[0] == 1


def test_it_reads_the_settings_file_that_the_service_reads(tmp_path: Path) -> None:
    file, port = tmp_path / "c.toml", free_port()
    file.write_text(f"[http]\nport = {port}\n")
    code, told = probed("healthz", {"STREAMDEDUP_CONFIG": str(file)})
    assert (code, f"localhost:{port} does not answer" in told) == (1, True)
