"""The input topic of the Kafka benchmark: the benchmark's articles as JSON records of about 2.5 KB.

Everything that is measured reads the same records from the same broker.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from articles import samples
from confluent_kafka import Producer

from streamdedup.article import rfc3339
from streamdedup.testing import Kafka, unique_name

# Longer articles end with the last sentence before; then a record has 2.5 KB on average.
LONGEST_TEXT_BYTES = 2_600
FIRST_PUBLISHED_MS = 1_767_225_600_000
MS_BETWEEN_ARTICLES = 1_000


class InputArticle(msgspec.Struct):
    """An article as a producer would send it."""

    id: str
    text: str
    published: str


@dataclass(frozen=True)
class Input:
    """A topic that has been filled."""

    topic: str
    partitions: int
    articles: int
    bytes_per_article: float


def filled_topic(broker: Kafka, articles: int, partitions: int) -> Input:
    """Make an input topic and put the articles into it, in turn over its partitions."""
    topic = broker.create_topic(unique_name("articles"), partitions)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    bytes_ = 0
    for number, sample in enumerate(samples(articles)):
        value = msgspec.json.encode(
            InputArticle(
                id=sample.id,
                text=cut(sample.text),
                published=rfc3339(FIRST_PUBLISHED_MS + number * MS_BETWEEN_ARTICLES),
            )
        )
        bytes_ += len(value)
        while True:
            try:
                producer.produce(topic, value, sample.id, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise SystemExit("error: the broker does not take the articles")
    return Input(topic, partitions, articles, bytes_ / articles)


def cut(text: str) -> str:
    """The whole sentences of a text that fit."""
    encoded = text.encode()
    if len(encoded) <= LONGEST_TEXT_BYTES:
        return text
    fitting = encoded[:LONGEST_TEXT_BYTES].decode(errors="ignore")
    return fitting[: fitting.rfind(". ") + 1]
