"""The broker under the Kafka tests does what a real one does: transactions, crashes, expiry."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaException, Producer

from streamdedup.testing import BrokerFailed, Kafka, LocalBroker, unique_name


def transactional(broker: Kafka, **settings: object) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": unique_name("t"), **settings}
    )
    producer.init_transactions(30)
    return producer


def committed(producer: Producer, topic: str, *values: bytes) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.commit_transaction(30)


def values(broker: Kafka, topic: str, **how: object) -> list[bytes]:
    return [record.value for record in broker.read(topic, **how)]


def test_records_are_read_when_their_transaction_is_committed_and_not_before(
    broker: Kafka,
) -> None:
    topic = broker.create_topic(unique_name("verdicts"))
    producer = transactional(broker)
    producer.begin_transaction()
    producer.produce(topic, b"a")
    producer.flush()
    assert values(broker, topic) == []
    assert values(broker, topic, isolation="read_uncommitted") == [b"a"]
    producer.commit_transaction()
    assert values(broker, topic) == [b"a"]


def test_an_aborted_record_is_never_read(broker: Kafka) -> None:
    topic = broker.create_topic(unique_name("verdicts"))
    producer = transactional(broker)
    committed(producer, topic, b"before")
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    producer.flush()
    producer.abort_transaction()
    # The topic ends with what nobody may read: the reader must see that it is at the end.
    assert values(broker, topic) == [b"before"]
    committed(producer, topic, b"after")
    assert values(broker, topic) == [b"before", b"after"]
    assert values(broker, topic, isolation="read_uncommitted") == [b"before", b"aborted", b"after"]


def test_a_second_producer_of_the_same_transactional_id_fences_the_first(broker: Kafka) -> None:
    topic = broker.create_topic(unique_name("verdicts"))
    id_ = {"transactional.id": unique_name("owner")}
    zombie = transactional(broker, **id_)
    zombie.begin_transaction()
    zombie.produce(topic, b"zombie")
    zombie.flush()
    committed(transactional(broker, **id_), topic, b"owner")
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(10)
    assert refused.value.args[0].fatal()
    assert values(broker, topic) == [b"owner"]


def test_a_transaction_of_the_dead_ends_when_its_timeout_says_so(broker: Kafka) -> None:
    topic = broker.create_topic(unique_name("verdicts"))
    dead = transactional(broker, **{"transaction.timeout.ms": 1000})
    dead.begin_transaction()
    dead.produce(topic, b"dead")
    dead.flush()
    committed(transactional(broker), topic, b"alive")
    assert values(broker, topic) == []
    until = time.monotonic() + 20
    while values(broker, topic) != [b"alive"]:
        assert time.monotonic() < until


def test_everything_of_a_record_is_read_partition_after_partition(broker: Kafka) -> None:
    # The records are of 1970: they must not be taken for expired.
    kept = {"retention.ms": "-1"}
    topic = broker.create_topic(unique_name("articles"), partitions=3, config=kept)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(3_000):
        producer.produce(
            topic,
            b"v%d" % number,
            key=b"k%d" % number,
            partition=number % 3,
            headers=[("h", b"1"), ("h", b"2")],
            timestamp=1_000 + number,
        )
    producer.produce(topic, None, key=None, partition=2)
    producer.flush()
    records = broker.read(topic)
    assert [(one.partition, one.offset) for one in records] == [
        *((partition, offset) for partition in range(3) for offset in range(1_000)),
        (2, 1_000),
    ]
    assert (records[1].key, records[1].value, records[1].timestamp_ms) == (b"k3", b"v3", 1_003)
    assert records[1].headers == (("h", b"1"), ("h", b"2"))
    assert (records[-1].key, records[-1].value, records[-1].headers) == (None, None, ())


def test_an_empty_topic_is_read_at_once_and_a_missing_one_is_an_error(broker: Kafka) -> None:
    assert broker.read(broker.create_topic(unique_name("empty"))) == []
    with pytest.raises(KafkaException, match="Unknown topic"):
        broker.read(unique_name("missing"))


def test_a_test_can_wait_for_records_to_expire(own_broker: LocalBroker) -> None:
    topic = own_broker.create_topic(unique_name("articles"), config={"retention.ms": "1000"})
    committed(transactional(own_broker), topic, b"old")
    until = time.monotonic() + 30
    while values(own_broker, topic):
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_killed_broker_comes_back_on_its_port_with_all_that_was_committed(
    own_broker: LocalBroker,
) -> None:
    topic = own_broker.create_topic(unique_name("verdicts"))
    before = own_broker.bootstrap
    producer = transactional(own_broker)
    committed(producer, topic, b"committed")
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush()
    own_broker.kill()
    assert not own_broker.is_running
    own_broker.start()
    assert own_broker.bootstrap == before
    assert values(own_broker, topic) == [b"committed"]
    # The same producer finds the broker again and ends what it began.
    producer.commit_transaction(30)
    assert values(own_broker, topic) == [b"committed", b"open"]


def test_a_stopped_broker_keeps_its_data_for_the_next_start(own_broker: LocalBroker) -> None:
    topic = own_broker.create_topic(unique_name("verdicts"))
    committed(transactional(own_broker), topic, b"kept")
    own_broker.restart()
    assert values(own_broker, topic) == [b"kept"]


def test_a_frozen_broker_answers_nobody_until_it_is_thawed(own_broker: LocalBroker) -> None:
    topic = own_broker.create_topic(unique_name("verdicts"))
    committed(transactional(own_broker), topic, b"kept")
    own_broker.freeze()
    with pytest.raises((KafkaException, BrokerFailed)):
        own_broker.read(topic, timeout_seconds=1)
    own_broker.thaw()
    assert values(own_broker, topic) == [b"kept"]


def test_a_topic_that_nobody_made_is_not_made_by_itself(broker: Kafka) -> None:
    errors = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 2000})
    producer.produce(unique_name("typo"), b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(10)
    assert len(errors) == 1
    assert errors[0] is not None
