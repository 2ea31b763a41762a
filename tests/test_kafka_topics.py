"""Topics under which articles would be lost are refused before the first article."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from service import ANY_TIME, Setup, feed, running

from streamdedup.testing import Kafka, unique_name

GOOD = {"retention.ms": "-1", "max.message.bytes": "20000000"}


def refused(setup: Setup, directory: Path, *arguments: str) -> str:
    with running(setup, directory, *arguments) as instance:
        assert instance.wait() == 6
        assert "Traceback" not in instance.log
        return instance.log


def test_missing_topics_are_named(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker)
    with running(setup, tmp_path, create_topics=False) as instance:
        assert instance.wait() == 6
    assert f"missing topics: {setup.names['changelog']}" in instance.log
    assert "--create-topics" in instance.log


def test_a_pattern_that_matches_nothing_is_named(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__INPUT": "^no-such-.*"})
    assert "no topic matches" in refused(setup, tmp_path)


def test_a_name_that_no_topic_can_have_is_told_and_not_tried_again(
    broker: Kafka, tmp_path: Path
) -> None:
    for name, said in (("my topic", "kafka.input"), ("^wire-(", "no pattern")):
        with running(Setup(broker), tmp_path, STREAMDEDUP_KAFKA__INPUT=name) as instance:
            assert instance.wait(10) == 2
            assert said in instance.log
    # The broker alone knows of this one.
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__INPUT": "."})
    assert "Topic name is invalid" in refused(setup, tmp_path)
    with running(setup, tmp_path, create_topics=False) as instance:
        assert instance.wait(10) == 6
        assert "Kafka refuses the topics: " in instance.log


@pytest.mark.parametrize(
    ("partitions", "settings", "said"),
    [
        (2, {}, "has 2 partitions"),
        (1, {"cleanup.policy": "compact"}, "compaction"),
        (1, {"cleanup.policy": "compact,delete"}, "compaction"),
        (1, {"retention.ms": "86400000"}, "retention.ms is 86400000, needed are 2678400000"),
        (1, {"retention.bytes": "1000000"}, "retention.bytes"),
        (1, {"max.message.bytes": "1048588"}, "max.message.bytes"),
    ],
)
def test_a_changelog_that_would_lose_articles_is_refused(
    broker: Kafka, tmp_path: Path, partitions: int, settings: dict[str, str], said: str
) -> None:
    setup = Setup(broker)
    changelog = unique_name("wrong")
    broker.create_topic(changelog, partitions, {**GOOD, **settings})
    setup.names["changelog"] = changelog
    log = refused(setup, tmp_path)
    assert changelog in log
    assert said in log


def test_a_changelog_must_be_kept_for_ever_if_articles_are(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker)
    setup.names["changelog"] = broker.create_topic(
        unique_name("short"), config={**GOOD, "retention.ms": "2678400000"}
    )
    assert "needed are -1" in refused(setup, tmp_path, "--set", "window.seconds=0")


def test_all_topics_are_made_for_an_empty_broker(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker, extra={"STREAMDEDUP_LOG__FORMAT": "json"})
    for role in setup.names:
        setup.names[role] = unique_name(role.replace("_", "-"))
    with running(setup, tmp_path) as instance:
        instance.wait_for_log("working")
        assert instance.stop() == 0
    events = [json.loads(line) for line in instance.log.splitlines()]
    created = {event["topic"] for event in events if event["event"] == "topic_created"}
    assert created == {setup.names[r] for r in ("input", "verdicts", "changelog", "dead_letters")}
    # What it made passes its own checks.
    with running(setup, tmp_path, create_topics=False) as instance:
        instance.wait_for_log("working")


def test_old_articles_outlive_their_age_in_the_topic_of_unique_ones_that_was_made_for_them(
    broker: Kafka, tmp_path: Path
) -> None:
    unique = unique_name("unique")
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__UNIQUE": unique})
    setup.produce(feed(5), timestamp=1_000)
    before_ms = time.time() * 1_000
    with running(setup, tmp_path) as instance:
        setup.wait_for(5)
        assert instance.stop() == 0
    assert "retention.ms" not in instance.log
    passed = broker.read(unique)
    assert passed
    # A minute, for the clocks of two machines.
    assert all(record.timestamp_ms > before_ms - 60_000 for record in passed)


def test_a_topic_of_unique_articles_that_may_delete_old_ones_at_once_is_warned_of(
    broker: Kafka, tmp_path: Path
) -> None:
    accepts_all = {**ANY_TIME, "retention.ms": "604800000"}
    unique = broker.create_topic(unique_name("unique"), config=accepts_all)
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__UNIQUE": unique})
    with running(setup, tmp_path) as instance:
        instance.wait_for_log("working")
    assert f"warning: {unique}: articles keep their timestamps" in instance.log
    assert "message.timestamp.type=LogAppendTime" in instance.log


def test_a_bad_failpoint_is_a_bad_setting(broker: Kafka, tmp_path: Path) -> None:
    with running(Setup(broker), tmp_path, STREAMDEDUP_FAILPOINT="nowhere") as instance:
        assert instance.wait() == 2
    assert "STREAMDEDUP_FAILPOINT" in instance.log
