"""`streamdedup dlq`: what could not be judged is listed without its text, and sent again once."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Producer
from conftest import Finished, Run, command, command_environment
from service import Setup, feed, running, wait_until
from terminal import on_terminal

from streamdedup.testing import Kafka, Record, unique_name

SECRET = b'{"id": 7, "text": "nobody may read this"}'


@dataclass
class Graves:
    """A topic of dead letters, and the topic they came from."""

    kafka: Kafka
    run: Run
    dead: str = field(default_factory=lambda: unique_name("dead"))
    origin: str = field(default_factory=lambda: unique_name("articles"))
    group: str = field(default_factory=lambda: unique_name("group"))
    buried: int = 0

    def __post_init__(self) -> None:
        self.kafka.create_topic(self.dead, 2)
        self.kafka.create_topic(self.origin, 3)

    @property
    def env(self) -> dict[str, str]:
        return {
            "STREAMDEDUP_KAFKA__BOOTSTRAP": self.kafka.bootstrap,
            "STREAMDEDUP_KAFKA__GROUP": self.group,
            "STREAMDEDUP_KAFKA__DEAD_LETTERS": self.dead,
        }

    def headers(self, kind: str, topic: str = "") -> list[tuple[str, str | bytes | None]]:
        stage, reason = kind.split("/")
        return [
            ("streamdedup-topic", topic or self.origin),
            ("streamdedup-partition", str(self.buried % 3)),
            ("streamdedup-offset", str(1_000 + self.buried)),
            ("streamdedup-timestamp", str(1_000_000_000_000 + self.buried)),
            ("streamdedup-stage", stage),
            ("streamdedup-reason", reason),
            ("streamdedup-exception", f"what is wrong with number {self.buried}"),
        ]

    def bury(
        self,
        *kinds: str,
        value: bytes | None = SECRET,
        own: Sequence[tuple[str, str | bytes | None]] = (),
        more: Sequence[tuple[str, str | bytes | None]] = (),
        topic: str = "",
    ) -> None:
        """As the service does it; keys count up."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "linger.ms": 5})
        for kind in kinds:
            headers = [*own, *self.headers(kind, topic), *more]
            key = f"key-{self.buried}"
            producer.produce(self.dead, value, key, self.buried % 2, headers=headers)
            self.buried += 1
        assert producer.flush(30) == 0

    def replay(self, *options: str) -> dict[str, object]:
        done = self.run("dlq", "replay", "--json", *options, env=self.env)
        assert (done.code, done.err) == (0, "")
        figures: dict[str, object] = json.loads(done.out)
        return figures

    def list(self, *options: str) -> Finished:
        return self.run("dlq", "list", *options, env=self.env)

    def risen(self, count: int) -> list[Record]:
        """What has come back; a commit is seen a moment after it was made."""
        wait_until(lambda: len(self.kafka.read(self.origin)) >= count, f"{count} records")
        return self.kafka.read(self.origin)

    def keys(self, count: int) -> list[str]:
        return sorted((record.key or b"").decode() for record in self.risen(count))

    def all_keys(self) -> list[str]:
        return sorted(f"key-{number}" for number in range(self.buried))


@pytest.fixture
def graves(broker: Kafka, run: Run) -> Graves:
    return Graves(broker, run)


def test_the_list_tells_origin_and_cause_of_each_letter_and_never_its_text(graves: Graves) -> None:
    graves.bury("decode/bad_json", "judge/empty")
    done = graves.list()
    assert (done.code, done.err) == (0, "")
    assert sorted(done.verdicts, key=lambda row: str(row["key"])) == [
        {
            "topic": graves.origin,
            "partition": number,
            "offset": 1_000 + number,
            "stage": stage,
            "reason": reason,
            "exception": f"what is wrong with number {number}",
            "key": f"key-{number}",
            "size": len(SECRET),
        }
        for number, (stage, reason) in enumerate([("decode", "bad_json"), ("judge", "empty")])
    ]
    assert "nobody" not in done.out


def test_the_list_can_be_narrowed(graves: Graves) -> None:
    graves.bury("decode/bad_json", "judge/empty", "decode/bad_id", "decode/bad_json")
    reasons = Counter(row["reason"] for row in graves.list("--stage", "decode").verdicts)
    assert reasons == {"bad_json": 2, "bad_id": 1}
    chosen = graves.list("--reason", "empty", "--reason", "bad_id").verdicts
    assert {row["reason"] for row in chosen} == {"empty", "bad_id"}
    assert len(graves.list("--limit", "3").verdicts) == 3


def test_a_person_sees_a_table(graves: Graves, tmp_path: Path) -> None:
    graves.bury("decode/bad_json", "judge/empty")
    done = on_terminal(tmp_path, "dlq", "list", env=graves.env)
    heading, *rows, count = done.out.splitlines()
    assert heading.split()[:5] == ["topic", "partition", "offset", "stage", "reason"]
    assert len(rows) == 2
    assert any("bad_json" in row and "1,000" in row for row in rows)
    assert count == "2 dead letters"
    first = on_terminal(tmp_path, "dlq", "list", "--limit", "1", env=graves.env)
    assert first.out.splitlines()[-1] == "1 dead letter"
    assert "nobody" not in done.out


def test_what_the_service_did_not_write_is_named_and_left_alone(graves: Graves) -> None:
    producer = Producer({"bootstrap.servers": graves.kafka.bootstrap})
    producer.produce(graves.dead, b"stray", partition=0)
    producer.flush()
    done = graves.list()
    assert (done.code, done.out) == (0, "")
    assert done.err == f"{graves.dead}[0] offset 0: not written by streamdedup\n"
    figures = graves.replay()
    assert (figures["replayed"], figures["skipped"]) == (0, {"not written by streamdedup": 1})


def test_a_letter_goes_back_as_it_was_to_where_it_was(graves: Graves) -> None:
    own = [
        ("trace", b"\x00\xff"),
        ("trace", "twice"),
        ("nothing", None),
        # The record had come through another streamdedup: these are its own.
        ("streamdedup-story", "s1"),
        ("streamdedup-reason", "new"),
    ]
    graves.bury("decode/bad_json", "decode/bad_json", own=own)
    graves.bury("decode/no_value", value=None)
    assert graves.replay()["replayed"] == 3
    first, second, tombstone = graves.risen(3)
    assert [first.partition, second.partition, tombstone.partition] == [0, 1, 2]
    assert (first.value, first.key) == (SECRET, b"key-0")
    # Retention would take a record of long ago away before it is judged.
    assert first.timestamp_ms > 1_000 * (time.time() - 600)
    assert first.headers == (
        ("trace", b"\x00\xff"),
        ("trace", b"twice"),
        ("nothing", None),
        ("streamdedup-story", b"s1"),
        ("streamdedup-reason", b"new"),
    )
    assert (tombstone.value, tombstone.key, tombstone.headers) == (None, b"key-2", ())


def test_a_second_replay_sends_only_what_has_come_since_unless_it_is_told_to(
    graves: Graves,
) -> None:
    graves.bury(*["decode/bad_json"] * 5)
    assert graves.replay()["replayed"] == 5
    assert graves.replay()["replayed"] == 0
    graves.bury("decode/bad_json")
    assert graves.replay()["replayed"] == 1
    assert graves.keys(6) == graves.all_keys()
    assert graves.replay("--again")["replayed"] == 6
    assert graves.replay()["replayed"] == 0


def test_what_was_not_chosen_is_still_there_for_a_later_replay(graves: Graves) -> None:
    kinds = ["judge/empty", "decode/bad_json", "decode/bad_id", "decode/bad_json"]
    graves.bury(*kinds, *kinds)
    assert graves.replay("--reason", "bad_json")["replayed"] == 4
    assert graves.replay("--reason", "bad_json")["replayed"] == 0
    assert graves.replay("--stage", "decode")["replayed"] == 2
    last = graves.replay()
    assert last["replayed"] == 2
    assert last["topics"] == {graves.origin: {"judge/empty": 2}}
    assert graves.keys(8) == graves.all_keys()


def test_limits_add_up(graves: Graves) -> None:
    graves.bury(*["decode/bad_json", "judge/empty"] * 10)
    sent = [graves.replay("--limit", "7", "--reason", "empty")["replayed"] for _ in range(3)]
    assert sent == [7, 3, 0]
    assert [graves.replay("--limit", "4")["replayed"] for _ in range(4)] == [4, 4, 2, 0]
    assert graves.keys(20) == graves.all_keys()


def test_a_dry_run_counts_and_changes_nothing(graves: Graves) -> None:
    graves.bury("decode/bad_json", "judge/empty")
    for _ in range(2):
        figures = graves.replay("--dry-run")
        assert (figures["replayed"], figures["dry_run"]) == (2, True)
    assert graves.risen(0) == []
    assert graves.replay()["replayed"] == 2


def test_what_cannot_be_sent_is_counted_by_its_cause(graves: Graves) -> None:
    graves.bury("decode/too_large", value=None, more=[("streamdedup-value-bytes", "9000000")])
    graves.bury("decode/bad_json", topic="gone")
    graves.bury("decode/bad_json")
    figures = graves.replay()
    assert figures["replayed"] == 1
    assert figures["skipped"] == {
        "no topic gone any more": 1,
        "value too large to be kept in the dead letter": 1,
    }
    assert [row["size"] for row in graves.list("--reason", "too_large").verdicts] == [9_000_000]


def test_a_replay_that_is_killed_again_and_again_sends_every_letter_once(
    graves: Graves, tmp_path: Path
) -> None:
    random = Random(7)
    kinds = ["decode/bad_json", "judge/empty", "decode/bad_id"]
    graves.bury(*(random.choice(kinds) for _ in range(6_000)))
    killed = 0
    for _ in range(8):
        with subprocess.Popen(
            command("dlq", "replay"),
            cwd=tmp_path,
            env=command_environment(graves.env),
            stdout=subprocess.DEVNULL,
        ) as process:
            time.sleep(random.uniform(0.35, 0.8))
            killed += process.poll() is None
            process.kill()
    assert killed
    graves.replay()
    assert graves.keys(6_000) == graves.all_keys()


def test_articles_that_died_of_wrong_settings_are_judged_once_after_they_are_mended(
    broker: Kafka, run: Run, tmp_path: Path
) -> None:
    setup = Setup(broker, partitions=2)
    messages = feed(60)
    setup.produce(messages[:30], 0)
    setup.produce(messages[30:], 1)
    with running(setup, tmp_path, STREAMDEDUP_INPUT__TEXT_FIELD="body") as mistaken:
        setup.wait_for(60)
        assert mistaken.stop() == 0
    assert len(setup.read("dead_letters")) == 60
    with running(setup, tmp_path) as mended:
        mended.wait_for_log("working")
        done = run("dlq", "replay", env=setup.environment)
        assert done.code == 0
        assert done.out.startswith("60 dead letters replayed\n")
        setup.wait_for(120)
        assert mended.stop() == 0
    assert Counter(record.value for record in setup.read("input")) == dict.fromkeys(messages, 2)
    judged = Counter(json.loads(record.value or b"")["id"] for record in setup.read("verdicts"))
    assert judged == {f"n{number}": 1 for number in range(60)}
    setup.check_truth()
