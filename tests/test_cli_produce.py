"""`streamdedup produce`: every line arrives as it is, once, and what does not is said."""

from __future__ import annotations

import gzip
import json
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import SAMPLE, Run, command, command_environment, json_lines, small_feed
from service import wait_until
from terminal import on_terminal

from streamdedup.cli.pace import Pace
from streamdedup.testing import Kafka, unique_name

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def topic(broker: Kafka) -> str:
    return broker.create_topic(unique_name("articles"))


@pytest.fixture
def env(broker: Kafka, topic: str) -> dict[str, str]:
    return {
        "STREAMDEDUP_KAFKA__BOOTSTRAP": broker.bootstrap,
        "STREAMDEDUP_KAFKA__INPUT": topic,
    }


def test_every_line_arrives_byte_for_byte_in_order_with_its_id_as_the_key(
    run: Run, broker: Kafka, topic: str, env: dict[str, str]
) -> None:
    done = run("produce", SAMPLE / "feed.jsonl", SAMPLE / "junk.jsonl", "--json", env=env)
    lines = (SAMPLE / "feed.jsonl").read_bytes().splitlines()
    junk = (SAMPLE / "junk.jsonl").read_bytes().splitlines()
    assert done.code == 0
    records = broker.read(topic)
    assert [record.value for record in records] == [*lines, *junk]
    assert [record.key for record in records[: len(lines)]] == [
        json.loads(line)["id"].encode() for line in lines
    ]
    assert [record.key for record in records[len(lines) :]] == [
        None,
        None,
        b"junk-001",
        b"junk-002",
        None,
        None,
    ]
    figures = json.loads(done.out)
    assert figures["delivered"] == len(records)
    assert figures["bytes"] == sum(len(record.value or b"") for record in records)
    assert (figures["not_delivered"], figures["bad_lines"]) == (0, 0)


def test_gzip_and_standard_input_are_read_too_and_blank_lines_are_left_out(
    run: Run, broker: Kafka, topic: str, env: dict[str, str], tmp_path: Path
) -> None:
    first, second, third = small_feed()
    (tmp_path / "a.gz").write_bytes(gzip.compress(json_lines([first])))
    piped = b"\n  \n" + json_lines([second]) + b"\n" + json.dumps(third).encode()
    done = run("produce", "a.gz", "-", env=env, stdin=piped)
    assert done.code == 0
    assert [json.loads(record.value or b"") for record in broker.read(topic)] == small_feed()
    assert "3 lines" in done.out


def test_check_sends_the_good_lines_names_the_bad_ones_and_exits_with_3(
    run: Run, broker: Kafka, topic: str, env: dict[str, str]
) -> None:
    junk = (SAMPLE / "junk.jsonl").read_bytes()
    done = run("produce", "--check", "-", env=env, stdin=junk + json_lines(small_feed()))
    assert done.code == 3
    assert [record.key for record in broker.read(topic)] == [b"a1", b"b1", b"a2"]
    places = [line.split(": ")[:2] for line in done.err.splitlines()]
    assert places == [
        ["standard input:1", "bad_json"],
        ["standard input:2", "bad_field"],
        ["standard input:3", "bad_field"],
        ["standard input:4", "empty"],
        ["standard input:5", "bad_field"],
        ["standard input:6", "bad_field"],
    ]


def test_a_line_that_kafka_refuses_is_named_and_the_exit_code_says_so(
    run: Run, broker: Kafka
) -> None:
    small = broker.create_topic(unique_name("small"), config={"max.message.bytes": "2000"})
    env = {"STREAMDEDUP_KAFKA__BOOTSTRAP": broker.bootstrap}
    large = json_lines([{"id": "large", "text": "far too long " * 1_000}])
    piped = json_lines(small_feed()[:1]) + large + json_lines(small_feed()[1:])
    done = run("produce", "-", "--topic", small, "--json", env=env, stdin=piped)
    assert done.code == 6
    assert [record.key for record in broker.read(small)] == [b"a1", b"b1", b"a2"]
    refused, error = done.err.splitlines()
    assert refused.startswith("standard input:2: not delivered: ")
    assert error == f"error: 1 lines did not arrive in {small}"
    figures = json.loads(done.out)
    assert (figures["delivered"], figures["not_delivered"]) == (3, 1)


def test_a_missing_topic_is_not_made_but_named(run: Run, broker: Kafka) -> None:
    env = {"STREAMDEDUP_KAFKA__BOOTSTRAP": broker.bootstrap}
    for _ in range(2):  # asking for it must not have made it either
        done = run("produce", "-", "--topic", "no-such-topic", env=env, stdin=b"{}\n")
        assert (done.code, done.out) == (6, "")
        assert "no-such-topic" in done.err
        assert "--create-topics" in done.err


def test_a_broker_that_is_not_there_is_named_within_seconds(run: Run) -> None:
    done = run("produce", "-", env={"STREAMDEDUP_KAFKA__BOOTSTRAP": NOWHERE}, stdin=b"{}\n")
    assert (done.code, done.out) == (6, "")
    assert done.err.startswith(f"error: cannot reach Kafka at {NOWHERE}: ")
    assert "Traceback" not in done.err


def test_the_demonstrations_feed_goes_out_at_the_rate_that_is_asked_for(
    broker: Kafka, topic: str, env: dict[str, str], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        command("produce", "--demo", "--rate", "20", "--json"),
        env=command_environment(env),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
    )
    with process:
        began = time.monotonic()
        wait_until(lambda: len(broker.read(topic)) >= 40, "forty articles")
        seconds = time.monotonic() - began
        process.terminate()
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 143
    # As many as the time allows, never more: an upper bound holds on a busy machine too.
    assert 40 <= json.loads(out)["delivered"] <= 20 * (seconds + 10)
    assert seconds > 40 / 20 - 0.5
    first = json.loads(broker.read(topic)[0].value or b"")
    today = datetime.now(UTC)
    assert abs(today - datetime.fromisoformat(first["published"])).days <= 3


def test_a_pace_never_runs_ahead_and_makes_up_for_no_stall() -> None:
    now = 0.0
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    pace = Pace(10, lambda: now, sleep)
    for _ in range(11):
        pace.wait()
    assert now == pytest.approx(1.0)
    now += 60  # the broker was away
    slept.clear()
    for _ in range(12):
        pace.wait()
    assert sum(slept) == pytest.approx(1.0)


@pytest.mark.parametrize("arguments", [[], ["--demo", "-"]], ids=["neither", "both"])
def test_produce_wants_files_or_the_demonstration(run: Run, arguments: list[str]) -> None:
    done = run("produce", *arguments)
    assert done.code == 2
    assert "--demo" in done.err


def test_several_inputs_need_a_choice(run: Run) -> None:
    done = run("produce", "-", env={"STREAMDEDUP_KAFKA__INPUT": "a,b"})
    assert done.code == 2
    assert "--topic" in done.err


def test_a_person_sees_a_summary(tmp_path: Path, env: dict[str, str], topic: str) -> None:
    done = on_terminal(tmp_path, "produce", SAMPLE / "feed.jsonl", env=env)
    lines = len((SAMPLE / "feed.jsonl").read_bytes().splitlines())
    assert done.code == 0
    assert f"{lines} lines" in done.out
    assert f"into {topic} at" in done.out
