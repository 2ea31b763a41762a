"""`streamdedup verdicts`: shows what is committed, and only that, as it comes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from conftest import Run, command, command_environment
from terminal import on_terminal

from streamdedup.testing import Kafka, unique_name
from streamdedup.verdict import Source, Verdict, encode_verdict


def said(number: int) -> bytes:
    verdict = Verdict(id=f"n{number}", verdict="unique", story=f"n{number}", published=number)
    return encode_verdict(verdict, Source(topic="articles", partition=0, offset=number))


COPY = Verdict(
    id="copy",
    verdict="duplicate",
    story="first",
    duplicate_of="first",
    similarity=0.87,
    measure="jaccard",
    reason="near",
    published=1_772_400_000_000,
)


@pytest.fixture
def topic(broker: Kafka) -> str:
    return broker.create_topic(unique_name("verdicts"), partitions=2)


@pytest.fixture
def env(broker: Kafka, topic: str) -> dict[str, str]:
    return {
        "STREAMDEDUP_KAFKA__BOOTSTRAP": broker.bootstrap,
        "STREAMDEDUP_KAFKA__VERDICTS": topic,
    }


def write(broker: Kafka, topic: str, values: list[bytes], *, commit: bool = True) -> None:
    """In a transaction, as the service does."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": unique_name("writer")}
    )
    producer.init_transactions()
    producer.begin_transaction()
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 2)
    producer.flush()
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()


@contextmanager
def following(tmp_path: Path, env: dict[str, str], *more: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command("verdicts", *more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=command_environment(env),
    ) as process:
        yield process
        if process.poll() is None:
            process.kill()


def test_a_pipe_gets_the_committed_verdicts_byte_for_byte_and_nothing_else(
    run: Run, broker: Kafka, topic: str, env: dict[str, str]
) -> None:
    write(broker, topic, [said(n) for n in range(50)])
    write(broker, topic, [said(n) for n in range(50, 60)], commit=False)
    write(broker, topic, [said(n) for n in range(60, 70)])
    done = run("verdicts", "--from-beginning", "--until-end", env=env)
    assert (done.code, done.err) == (0, "")
    expected = [said(n).decode() for n in (*range(50), *range(60, 70))]
    assert sorted(done.out.splitlines()) == sorted(expected)


def test_until_end_of_an_empty_topic_ends_at_once(run: Run, env: dict[str, str]) -> None:
    done = run("verdicts", "--from-beginning", "--until-end", env=env)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_limit_ends_after_so_many(
    run: Run, broker: Kafka, topic: str, env: dict[str, str]
) -> None:
    write(broker, topic, [said(n) for n in range(20)])
    done = run("verdicts", "--from-beginning", "--limit", "7", env=env)
    assert done.code == 0
    assert len(done.verdicts) == 7


def test_following_shows_only_what_comes_and_ctrl_c_ends_it_without_a_word(
    broker: Kafka, topic: str, env: dict[str, str], tmp_path: Path
) -> None:
    write(broker, topic, [said(0), said(1)])
    with following(tmp_path, env) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # It says nothing until it stands at the end, so that is asked by writing again and again.
        for number in range(2, 14):
            write(broker, topic, [said(number)])
            time.sleep(0.3)
        first = json.loads(process.stdout.readline())
        assert first["source"]["offset"] >= 2
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr.read() == b""


def test_a_person_sees_a_readable_line_a_verdict(
    broker: Kafka, topic: str, env: dict[str, str], tmp_path: Path
) -> None:
    write(broker, topic, [said(1), encode_verdict(COPY)])
    done = on_terminal(tmp_path, "verdicts", "--from-beginning", "--until-end", env=env)
    assert done.code == 0
    rows = sorted(" ".join(line.split()) for line in done.out.splitlines())
    assert rows == ["NEW n1", "near 87% copy copies first (jaccard)"]


def test_json_is_for_terminals_too(
    broker: Kafka, topic: str, env: dict[str, str], tmp_path: Path
) -> None:
    write(broker, topic, [said(1)])
    done = on_terminal(tmp_path, "verdicts", "--from-beginning", "--limit", "1", "--json", env=env)
    assert done.out.splitlines() == [said(1).decode()]


def test_what_is_no_verdict_is_named_by_its_place(
    broker: Kafka, topic: str, env: dict[str, str], tmp_path: Path
) -> None:
    write(broker, topic, [b"\x1b[2Jnonsense"])
    done = on_terminal(tmp_path, "verdicts", "--from-beginning", "--until-end", env=env)
    assert done.out.splitlines() == [f"{topic}[0] offset 0: not a verdict"]


def test_a_missing_topic_is_named(run: Run, broker: Kafka) -> None:
    env = {"STREAMDEDUP_KAFKA__BOOTSTRAP": broker.bootstrap}
    done = run("verdicts", "--set", "kafka.verdicts=no-such-topic", env=env)
    assert (done.code, done.out) == (6, "")
    assert "no-such-topic" in done.err
