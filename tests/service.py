"""Runs `streamdedup run` as an operator does, feeds it, and reads what is true afterwards.

Truth: a `read_committed` reader finds exactly one verdict or dead letter for every input offset.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from confluent_kafka import KafkaException, Producer
from conftest import command, command_environment
from crash_child import news

from streamdedup import Article
from streamdedup.article import rfc3339
from streamdedup.testing import Kafka, Record, unique_name

PATIENCE_SECONDS = 60.0
# Small heads and segments, so that a feed of hundreds freezes and merges them.
SMALL_STATE = {
    "STREAMDEDUP_STATE__HEAD_ARTICLES": "64",
    "STREAMDEDUP_STATE__FAN_IN": "2",
    "STREAMDEDUP_STATE__CACHE_MIB": "8",
}
# A member that was killed is missed sooner than an operator would want.
IMPATIENT = {
    "STREAMDEDUP_KAFKA__CLIENT__SESSION_TIMEOUT_MS": "2000",
    "STREAMDEDUP_KAFKA__CLIENT__HEARTBEAT_INTERVAL_MS": "500",
}
# Records of any date are accepted and stay.
ANY_TIME = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
# For tests that read the log as people do, of many instances on one machine.
PLAIN = {"STREAMDEDUP_LOG__FORMAT": "human", "STREAMDEDUP_HTTP__PORT": "-1"}
Place = tuple[int, int]
CALM_MESSAGES = 1_000
_CALM: dict[str, list[bytes]] = {}


def wait_until(
    holds: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS, every: float = 0.05
) -> None:
    """Look again and again; fail with `what` was waited for."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"waited {seconds:.0f} s for {what}"
        time.sleep(every)


def message(article: Article) -> bytes:
    """An article as it stands in the input."""
    published = None if article.published is None else rfc3339(article.published)
    return json.dumps({"id": article.id, "text": article.text, "published": published}).encode()


def feed(count: int, seed: int = 1) -> list[bytes]:
    """Messages, two in five of them near-duplicates."""
    return [message(article) for article in news(count, seed)]


@dataclass
class Setup:
    """Names of topics and a group that no other test has, on one broker."""

    kafka: Kafka
    partitions: int = 1
    names: dict[str, str] = field(default_factory=dict)
    extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for role in ("input", "verdicts", "changelog", "dead_letters", "group"):
            self.names[role] = unique_name(role.replace("_", "-"))
        # The changelog is left to --create-topics.
        for role in ("input", "verdicts", "dead_letters"):
            self.kafka.create_topic(self.names[role], self.partitions, ANY_TIME)

    @property
    def environment(self) -> dict[str, str]:
        named = {f"STREAMDEDUP_KAFKA__{role.upper()}": name for role, name in self.names.items()}
        bootstrap = {"STREAMDEDUP_KAFKA__BOOTSTRAP": self.kafka.bootstrap}
        return {**SMALL_STATE, **IMPATIENT, **PLAIN, **named, **bootstrap, **self.extra}

    def produce(self, messages: Iterable[bytes | None], partition: int = 0, **more: Any) -> None:
        """Into one partition of the input, in order."""
        producer = Producer(
            {"bootstrap.servers": self.kafka.bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )
        for value in messages:
            producer.produce(self.names["input"], value, partition=partition, **more)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def read(self, role: str) -> list[Record]:
        return self.kafka.read(self.names[role])

    def verdicts(self) -> list[bytes]:
        """The verdicts of a one-partition input, in order."""
        return [record.value or b"" for record in self.read("verdicts")]

    def wait_for(self, count: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Until so many records have been answered; a broker in trouble may not tell yet."""

        def there() -> bool:
            with suppress(KafkaException):
                return len(self.answered()) >= count
            return False

        wait_until(there, f"{count} answers", seconds, 0.2)

    def answered(self) -> list[Place]:
        """Input partition and offset of everything that has a verdict or a dead letter."""
        places = []
        for record in self.read("verdicts"):
            source = json.loads(record.value or b"")["source"]
            places.append((source["partition"], source["offset"]))
        for record in self.read("dead_letters"):
            headers = dict(record.headers)
            places.append(
                (
                    int(headers["streamdedup-partition"] or b""),
                    int(headers["streamdedup-offset"] or b""),
                )
            )
        return places

    def check_truth(self) -> None:
        """Every input offset has one answer and no answer is about anything else."""
        answered = Counter(self.answered())
        owed = {(record.partition, record.offset) for record in self.read("input")}
        twice = {place: count for place, count in answered.items() if count > 1}
        assert not twice, f"answered more than once: {sorted(twice)[:5]}"
        assert set(answered) == owed, (
            f"unanswered: {sorted(owed - set(answered))[:5]}, "
            f"answered without being there: {sorted(set(answered) - owed)[:5]}"
        )


class Instance:
    """One process of `streamdedup run`."""

    def __init__(
        self,
        setup: Setup,
        directory: Path,
        *arguments: str,
        create_topics: bool = True,
        env: Mapping[str, str] = {},
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.state = directory / "state"
        self._log = directory / f"log-{time.time_ns()}"
        environment = {
            **setup.environment,
            "STREAMDEDUP_STATE__PATH": str(self.state),
            **env,
        }
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command("run", *(["--create-topics"] if create_topics else []), *arguments),
                env=command_environment(environment),
                cwd=directory,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_for_log(self, text: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Until a line says this."""
        wait_until(
            lambda: text in self.log or self.process.poll() is not None, f"{text!r}", seconds
        )
        assert text in self.log, f"ended with {self.process.returncode}:\n{self.log}"

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def wait_for_freeze(self) -> None:
        """Until its failpoint has stopped it."""
        look = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        wait_until(
            lambda: os.waitid(os.P_PID, self.process.pid, look) is not None, "it to be frozen"
        )

    def kill(self) -> None:
        """As a crash does."""
        self.process.kill()
        self.process.wait()

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Its exit code; below zero for a signal."""
        return self.process.wait(seconds)

    def stop(self) -> int:
        """As a supervisor does."""
        self.process.terminate()
        return self.wait(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if exception[0] is not None:
            print(f"--- {self._log}\n{self.log}")


@contextmanager
def running(
    setup: Setup, directory: Path, *arguments: str, create_topics: bool = True, **env: str
) -> Iterator[Instance]:
    """An instance that is killed at the end if it has not ended."""
    with Instance(setup, directory, *arguments, create_topics=create_topics, env=env) as instance:
        yield instance


def undisturbed(setup: Setup, count: int) -> list[bytes]:
    """What one instance says about the first messages of `feed` when nothing happens to it.

    Worked out once; the name of the input topic is `setup`'s.
    """
    bootstrap = setup.kafka.bootstrap
    if bootstrap not in _CALM:
        calm = Setup(setup.kafka)
        calm.produce(feed(CALM_MESSAGES))
        with TemporaryDirectory() as directory, running(calm, Path(directory)) as instance:
            calm.wait_for(CALM_MESSAGES)
            assert instance.stop() == 0
        topic = calm.names["input"].encode()
        _CALM[bootstrap] = [verdict.replace(topic, b"INPUT") for verdict in calm.verdicts()]
    topic = setup.names["input"].encode()
    return [verdict.replace(b"INPUT", topic) for verdict in _CALM[bootstrap][:count]]
