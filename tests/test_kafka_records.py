"""Records of every kind: what passes through, poison among good ones, what was lost unread."""

from __future__ import annotations

import json
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from service import ANY_TIME, Setup, feed, message, running, wait_until

from streamdedup import Article
from streamdedup.testing import Kafka, unique_name

TEXT = "The harbour authority said that the old ferry terminal would be closed for the winter."
POISON: dict[str, bytes | None] = {
    "no_value": None,
    "bad_json": b"{not json",
    "bad_json ": b"",
    "bad_json  ": b'{"id": "a", "text": "\xff\xfe"}',
    "bad_field": json.dumps({"id": "a"}).encode(),
    "bad_field ": json.dumps({"id": 7, "text": TEXT}).encode(),
    "bad_id": json.dumps({"id": "", "text": TEXT}).encode(),
    "bad_published": json.dumps({"id": "a", "text": TEXT, "published": "soon"}).encode(),
    "too_large": json.dumps({"id": "a", "text": "x " * 300_000}).encode(),
    "empty": json.dumps({"id": "a", "text": "... !? \U0001f600"}).encode(),
    "too_deep": b'{"id":"a","text":"t","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}
SMALL_TEXTS = {"STREAMDEDUP_INPUT__MAX_TEXT_BYTES": "400000"}


def test_poison_among_good_records_goes_to_the_dead_letters_untouched(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker, extra=SMALL_TEXTS)
    good = feed(len(POISON))
    for article, value in zip(good, POISON.values(), strict=True):
        setup.produce([article])
        setup.produce(
            [value], key=b"k", headers=[("trace", b"\x00\xff")], timestamp=1_700_000_000_000
        )
    with running(setup, tmp_path) as instance:
        setup.wait_for(2 * len(POISON))
        assert instance.stop() == 0
    setup.check_truth()
    letters = setup.read("dead_letters")
    assert [letter.value for letter in letters] == list(POISON.values())
    for number, (reason, letter) in enumerate(zip(POISON, letters, strict=True)):
        headers = dict(letter.headers)
        assert letter.key == b"k"
        assert letter.headers[0] == ("trace", b"\x00\xff")
        assert headers["streamdedup-reason"] == reason.strip().encode()
        assert headers["streamdedup-stage"] == (b"judge" if reason == "empty" else b"decode")
        assert headers["streamdedup-topic"] == setup.names["input"].encode()
        assert headers["streamdedup-partition"] == b"0"
        assert headers["streamdedup-offset"] == str(2 * number + 1).encode()
        assert headers["streamdedup-timestamp"] == b"1700000000000"
        assert headers["streamdedup-exception"]


def test_a_flood_of_bad_records_stops_the_service_and_stays_in_the_input(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__DEAD_LETTERS_IN_ROW": "20"})
    setup.produce([*feed(5), *[b"bad"] * 19, *feed(1, 2)])
    with running(setup, tmp_path) as instance:
        setup.wait_for(25)
        setup.produce([b"bad"] * 500)
        assert instance.wait() == 8
    assert "20 records in a row cannot be judged" in instance.log
    assert "bad_json" in instance.log
    assert "kafka.dead_letters_in_row" in instance.log
    letters = len(setup.read("dead_letters"))
    with running(setup, tmp_path) as instance:
        assert instance.wait() == 8
    assert len(setup.read("dead_letters")) == letters < 19 + 20
    unlimited = {
        "STREAMDEDUP_KAFKA__DEAD_LETTERS_IN_ROW": "0",
        "STREAMDEDUP_KAFKA__DEAD_LETTERS_SHARE": "0",
    }
    with running(setup, tmp_path, **unlimited) as instance:
        setup.wait_for(525)
    setup.check_truth()


def test_too_large_a_share_of_bad_records_stops_the_service(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker)
    setup.produce([value for article in feed(500) for value in (article, b"bad", b"bad")])
    with running(setup, tmp_path) as instance:
        assert instance.wait() == 8
    assert "of the last 1,000 records cannot be judged" in instance.log


def test_unique_articles_pass_through_as_they_came(broker: Kafka, tmp_path: Path) -> None:
    unique = broker.create_topic(unique_name("unique"), config=ANY_TIME)
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__UNIQUE": unique})
    headers = [("trace", b"1"), ("trace", b"2"), ("none", None)]
    first = message(Article(id="a", text=TEXT, published=1_000))
    copy = message(Article(id="b", text=TEXT, published=2_000))
    setup.produce([first, copy], key=b"k1", headers=headers, timestamp=1_234_567)
    with running(setup, tmp_path) as instance:
        setup.wait_for(2)
        assert instance.stop() == 0
    [passed] = broker.read(unique)
    assert (passed.value, passed.key, passed.timestamp_ms) == (first, b"k1", 1_234_567)
    assert passed.headers[:3] == tuple(headers)
    assert dict(passed.headers)["streamdedup-story"] == b"a"
    assert [record.key for record in setup.read("verdicts")] == [b"k1", b"k1"]


def test_an_article_without_a_date_happens_when_kafka_got_it(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker)
    setup.produce([message(Article(id="a", text=TEXT))], timestamp=1_700_000_000_000)
    setup.produce([message(Article(id="b", text=TEXT))], timestamp=2**62)
    with running(setup, tmp_path) as instance:
        setup.wait_for(2)
        assert instance.stop() == 0
    dates = [json.loads(verdict)["published"] for verdict in setup.verdicts()]
    assert dates == ["2023-11-14T22:13:20Z", None]


def test_partitions_and_topics_that_match_a_pattern_are_read(broker: Kafka, tmp_path: Path) -> None:
    prefix = unique_name("wire")
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__INPUT": f"^{prefix}-.*"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, article in enumerate(feed(20)):
        if number < 2:
            broker.create_topic(f"{prefix}-{number}")
        producer.produce(f"{prefix}-{number % 2}", article, partition=0)
    producer.flush()
    with running(setup, tmp_path) as instance:
        setup.wait_for(20)
        assert instance.stop() == 0
    topics = [json.loads(verdict)["source"]["topic"] for verdict in setup.verdicts()]
    assert sorted(topics) == [f"{prefix}-0"] * 10 + [f"{prefix}-1"] * 10


def test_partitions_that_are_added_to_a_quiet_topic_are_read_before_long(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker)
    setup.produce(feed(10))
    with running(setup, tmp_path) as instance:
        setup.wait_for(10)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for made in admin.create_partitions([NewPartitions(setup.names["input"], 2)]).values():
            made.result()
        setup.produce(feed(10, 2), partition=1)
        setup.wait_for(20, 45)  # they are looked for twice a minute
        setup.produce(feed(5, 3))
        setup.wait_for(25)
        assert instance.stop() == 0
    setup.check_truth()


def test_an_input_topic_that_goes_away_is_told(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker)
    setup.produce(feed(10))
    with running(setup, tmp_path) as instance:
        setup.wait_for(10)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics([setup.names["input"]])[setup.names["input"]].result()
        instance.wait_for_log(f"the input {setup.names['input']}[0] is not there any more", 45)
        assert instance.stop() == 0


def test_articles_that_expired_unread_stop_the_service_until_it_is_told_to_go_on(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker)
    setup.names["input"] = broker.create_topic(
        unique_name("short"), config={"retention.ms": "1000", "segment.ms": "500"}
    )
    with running(setup, tmp_path) as instance:
        instance.wait_for_log("working")
        setup.produce(feed(10))
        setup.wait_for(10)
        assert instance.stop() == 0
    setup.produce(feed(10, 2))
    wait_until(lambda: not setup.read("input"), "the input to expire")
    setup.produce(feed(5, 3), timestamp=int(1_000 * time.time()) + 600_000)
    before = len(setup.verdicts())
    with running(setup, tmp_path) as instance:
        assert instance.wait() == 7
    assert "offsets 10 to 19 are gone" in instance.log
    assert "--skip-lost" in instance.log
    assert len(setup.verdicts()) == before
    with running(setup, tmp_path, "--skip-lost") as instance:
        setup.wait_for(15)
        assert instance.stop() == 0
    assert [offset for _, offset in setup.answered()] == [*range(10), *range(20, 25)]
