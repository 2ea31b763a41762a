"""The first and the last word of a command that talks to Kafka: is it there, and what went wrong.

The service waits for a broker however long; a command says at once that there is none.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from streamdedup.config import KafkaConfig
from streamdedup.errors import KafkaFailed, TopicsError
from streamdedup.kafka.clients import admin

_ANSWER_SECONDS = 5.0
_NOT_FOR_US = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)


def partition_counts(config: KafkaConfig, *topics: str) -> dict[str, int]:
    """Partitions by topic, of every topic there is; these have to be there."""
    heard: list[KafkaError] = []
    client = admin(config, heard.append)
    try:
        # All topics, since asking for one by its name may make it.
        found = client.list_topics(timeout=_ANSWER_SECONDS).topics
    except KafkaException as error:
        client.poll(0)
        reason = _said(heard[-1] if heard else error.args[0])
        raise KafkaFailed(
            f"cannot reach Kafka at {config.bootstrap}: {reason}; "
            "start it, or correct kafka.bootstrap"
        ) from None
    missing = [topic for topic in topics if topic not in found]
    if missing:
        raise TopicsError(
            f"missing topics at {config.bootstrap}: {', '.join(missing)}; "
            "`streamdedup run --create-topics` makes them"
        )
    return {name: len(topic.partitions) for name, topic in found.items()}


def largest_batch_bytes(config: KafkaConfig, topic: str) -> int | None:
    """The topic's max.message.bytes; None where we are not allowed to ask."""
    asked = ConfigResource(ResourceType.TOPIC, topic)
    client = admin(config)  # must outlive its answer
    answers = client.describe_configs([asked], request_timeout=_ANSWER_SECONDS)
    try:
        settings = answers[asked].result(_ANSWER_SECONDS)
    except KafkaException as error:
        if error.args[0].code() in _NOT_FOR_US:
            return None
        raise
    return int(settings["max.message.bytes"].value)


@contextmanager
def kafka_errors(config: KafkaConfig) -> Generator[None]:
    """What librdkafka raises, as an error that says where it happened."""
    try:
        yield
    except KafkaException as error:
        raise KafkaFailed(f"Kafka at {config.bootstrap}: {_said(error.args[0])}") from None


def _said(error: KafkaError) -> str:
    return error.str() or error.name()
