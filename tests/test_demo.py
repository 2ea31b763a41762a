"""`streamdedup demo`: without a broker the service does its work, and shows that it is right."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from threading import Event, Thread

import pytest
from conftest import SAMPLE, Run, command, command_environment
from service import Setup
from terminal import on_terminal

from streamdedup import Config
from streamdedup.config import KafkaConfig, StateConfig
from streamdedup.demo.cluster import InProcessKafka
from streamdedup.kafka.delivery import AT_LEAST_ONCE
from streamdedup.kafka.failpoints import Failpoints
from streamdedup.kafka.follow import Follower
from streamdedup.kafka.report import BatchReport, Listener, RestoreProgress
from streamdedup.kafka.sender import Sender
from streamdedup.kafka.service import Service
from streamdedup.testing import Kafka

LINES = (SAMPLE / "feed.jsonl").read_bytes().splitlines()
JUNK = (SAMPLE / "junk.jsonl").read_bytes().splitlines()
ROUND = len(LINES) + len(JUNK)


def test_every_line_is_answered_and_every_verdict_is_right(run: Run) -> None:
    done = run("demo", "--rate", "0", "--articles", "2000", "--json")
    assert done.code == 0
    figures = json.loads(done.out)
    assert figures["articles"] + figures["dead_letters"] == 2_000
    assert figures["unique"] + figures["duplicates"] == figures["articles"]
    assert figures["copies_found"] == figures["copies_owed"] > 900
    assert figures["copies_wrong"] == 0
    assert set(figures["reasons"]) == {"new", "near", "exact", "redelivery", "revision"}
    assert set(figures["dead_letter_reasons"]) == {"bad_json", "bad_field", "empty"}
    assert figures["full_speed_articles"] == 2_000 - ROUND - figures["dead_letters"] + len(JUNK)
    assert figures["full_speed_articles_per_second"] > 0


def test_a_round_is_shown_article_by_article_in_order(run: Run) -> None:
    done = run("demo", "--rate", "0", "--articles", str(ROUND))
    assert done.code == 0
    shown = done.out.split("\n\n")[1].splitlines()
    verdicts = [line for line in shown if not line.startswith("dead ")]
    assert len(shown) == ROUND
    assert len(verdicts) == len(LINES)
    for line, source in zip(verdicts, LINES, strict=True):
        assert json.loads(source)["id"] in line
    summary = done.out.split("\n\n")[2]
    assert f"dead       {len(JUNK):>10}" in summary
    assert "copied most:" in summary


def test_the_rate_is_kept(run: Run) -> None:
    began = time.monotonic()
    figures = json.loads(run("demo", "--rate", "25", "--articles", "100", "--json").out)
    assert figures["articles"] + figures["dead_letters"] == 100
    assert time.monotonic() - began > 99 / 25


def test_it_ends_after_so_many_seconds(run: Run) -> None:
    done = run("demo", "--loop", "--seconds", "2", "--rate", "50", "--json")
    assert done.code == 0
    assert 50 < json.loads(done.out)["articles"] < 250


def test_ctrl_c_ends_a_loop_with_the_summary(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("demo", "--loop", "--rate", "50"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=command_environment({"TMPDIR": str(tmp_path)}),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(20):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().decode()
        assert process.wait(30) == 130
        assert "Traceback" not in process.stderr.read().decode()
    assert "\nduplicates " in rest
    assert list(tmp_path.iterdir()) == []


def test_settings_for_a_real_broker_do_not_matter(run: Run) -> None:
    env = {
        "STREAMDEDUP_KAFKA__BOOTSTRAP": "127.0.0.1:1",
        "STREAMDEDUP_KAFKA__CLIENT__SECURITY_PROTOCOL": "SASL_SSL",
        "STREAMDEDUP_KAFKA__INPUT": "a,b",
    }
    done = run("demo", "--rate", "0", "--articles", "50", "--json", env=env)
    assert done.code == 0
    assert json.loads(done.out)["articles"] == 49


def test_other_settings_do(run: Run) -> None:
    done = run(
        "demo", "--rate", "0", "--articles", "194", "--json",
        "--set", "match.jaccard=0.99", "--set", "match.containment=1",
    )  # fmt: skip
    figures = json.loads(done.out)
    assert figures["copies_found"] < figures["copies_owed"]


def test_a_person_sees_articles_then_figures(tmp_path: Path) -> None:
    done = on_terminal(tmp_path, "demo", "--rate", "0", "--articles", "1000")
    assert done.code == 0
    assert done.out.startswith("A news feed, a Kafka and the service, all in this process")
    assert "Tarn Bay scraps bridge toll" in done.out
    assert "full speed: " in done.out


@pytest.mark.slow
def test_by_itself_it_takes_ten_to_twenty_seconds(run: Run) -> None:
    began = time.monotonic()
    figures = json.loads(run("demo", "--json").out)
    took = time.monotonic() - began
    assert figures["articles"] + figures["dead_letters"] == 20_000
    assert 10 < took < 60  # on a machine that has nothing else to do it is below twenty


def test_on_a_real_broker_every_line_is_answered_once_and_known_the_next_time(
    broker: Kafka, run: Run
) -> None:
    setup = Setup(broker)
    arguments = ("demo", "--kafka", broker.bootstrap, "--rate", "0", "--articles", "600", "--json")
    first, second = (run(*arguments, env=setup.environment) for _ in range(2))
    assert (first.code, second.code) == (0, 0)
    figures, again = json.loads(first.out), json.loads(second.out)
    assert figures["copies_found"] == figures["copies_owed"] > 0
    assert again["reasons"] == {"redelivery": figures["articles"]}
    assert again["dead_letters"] == figures["dead_letters"]
    setup.wait_for(1_200)
    setup.check_truth()


def test_a_broker_that_is_not_there_is_named_within_seconds(run: Run) -> None:
    done = run("demo", "--kafka", "127.0.0.1:1")
    assert (done.code, done.out) == (6, "")
    assert "cannot reach Kafka at 127.0.0.1:1" in done.err


class Quiet(Listener):
    """A listener that only waits."""

    def __init__(self) -> None:
        self.records = 0
        self.restored = 0

    def on_batch(self, report: BatchReport) -> None:
        self.records += report.records

    def on_restore(self, progress: RestoreProgress) -> None:
        self.restored = progress.records


def serve(config: Config, until: int) -> Quiet:
    """A life of the service in at-least-once mode that ends when so many records are judged."""
    listener, stop = Quiet(), Event()
    service = Service(config, listener, stop, Failpoints(), delivery=AT_LEAST_ONCE)
    thread = Thread(target=service.run)
    thread.start()
    patience = time.monotonic() + 30
    while listener.records < until and time.monotonic() < patience:
        time.sleep(0.05)
    time.sleep(0.3)  # for what should not come
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
    return listener


def test_at_least_once_goes_on_after_a_restart_where_it_stopped(tmp_path: Path) -> None:
    with InProcessKafka() as cluster:
        kafka = KafkaConfig(bootstrap=cluster.bootstrap)
        cluster.create_topics("articles", kafka.verdicts, kafka.changelog, kafka.dead_letters)
        sender = Sender[int](kafka, "articles", lambda place, reason: None)
        for life, lines in enumerate((LINES[:100], LINES[100:])):
            for line in lines:
                assert sender.offer(0, line, None, 0)
            assert sender.wait(10)
            # Each life begins without a state directory: the changelog has it all.
            state = StateConfig(path=str(tmp_path / f"state-{life}"), cache_mib=8)
            listener = serve(Config(kafka=kafka, state=state), len(lines))
            assert listener.records == len(lines)
            assert listener.restored == (100 if life else 0)
        with Follower(kafka, kafka.verdicts, 4, from_beginning=True) as verdicts:
            said = []
            while not verdicts.at_end:
                said += verdicts.read(1_000, 0.5)
    offsets = [json.loads(record.value() or b"")["source"]["offset"] for record in said]
    assert offsets == list(range(len(LINES)))


def test_the_demo_can_be_watched_like_the_service_also_where_its_port_is_taken() -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        environment = command_environment({"STREAMDEDUP_HTTP__PORT": str(port)})
        demo = subprocess.Popen(
            command("demo", "--loop", "--rate", "100"), stdout=subprocess.PIPE, env=environment
        )
        try:
            assert demo.stdout is not None
            address = next(
                line.split()[-1].decode() for line in demo.stdout if b"http://localhost:" in line
            )
            assert str(port) not in address
            next(line for line in demo.stdout if line.startswith(b"NEW"))
            with urllib.request.urlopen(f"{address}metrics", timeout=10) as response:
                assert b'streamdedup_role{role="working"} 1.0' in response.read()
        finally:
            demo.send_signal(signal.SIGINT)
            demo.communicate(timeout=30)
        assert demo.returncode == 130
