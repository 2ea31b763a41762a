"""A service that decides nothing: what Kafka alone costs, and so the most a real one can reach.

It consumes, decodes, produces a verdict and a changelog record of the usual sizes for every article
and commits them with the input's offsets, in transactions of a given number of articles.

Run as `python kafka_loop.py JSON` by `kafka.py`, in a process of its own.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from time import perf_counter, process_time

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from kafka_input import InputArticle

from streamdedup.bench.growth import peak_rss_bytes
from streamdedup.testing import unique_name

VERDICT = b"v" * 180
CHANGELOG_RECORD = b"c" * 900
# consume() waits for all it was asked for: many small calls keep the fetcher and us busy at once.
CONSUME = 500
CONSUME_TIMEOUT_SECONDS = 0.1
TIMEOUT_SECONDS = 60


class Task(msgspec.Struct, frozen=True):
    """What one run of the loop does."""

    bootstrap: str
    input: str
    verdicts: str
    changelog: str
    articles: int
    batch: int


@dataclass(frozen=True)
class Measured:
    """From the first article received to the last one committed; joining the group is over then."""

    articles_per_second: float
    cpu_us_per_article: float
    commit_share: float
    commit_ms: float
    consume_share: float
    transactions: int
    wall_seconds: float
    peak_rss_mib: float


def run(task: Task) -> Measured:
    """Work off the whole input topic once."""
    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": unique_name("loop"),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            # At its default of a second, a full prefetch queue idles for that long.
            "fetch.queue.backoff.ms": 5,
        }
    )
    producer = Producer(
        {"bootstrap.servers": task.bootstrap, "transactional.id": unique_name("loop")}
    )
    producer.init_transactions(TIMEOUT_SECONDS)
    consumer.subscribe([task.input])
    decoder = msgspec.json.Decoder(InputArticle)
    offsets: dict[int, int] = {}
    done = transactions = 0
    committing = consuming = 0.0
    batch = _batch(consumer, 1)
    started, cpu_started = perf_counter(), process_time()
    while batch:
        producer.begin_transaction()
        for message in batch:
            article = decoder.decode(message.value())
            producer.produce(task.verdicts, VERDICT, article.id)
            producer.produce(task.changelog, CHANGELOG_RECORD)
            offsets[message.partition()] = message.offset() + 1
        before = perf_counter()
        producer.send_offsets_to_transaction(
            [TopicPartition(task.input, *place) for place in offsets.items()],
            consumer.consumer_group_metadata(),
            TIMEOUT_SECONDS,
        )
        producer.commit_transaction(TIMEOUT_SECONDS)
        committed = perf_counter()
        committing += committed - before
        transactions += 1
        done += len(batch)
        batch = _batch(consumer, min(task.batch, task.articles - done))
        consuming += perf_counter() - committed
    wall, cpu = perf_counter() - started, process_time() - cpu_started
    consumer.close()
    return Measured(
        articles_per_second=done / wall,
        cpu_us_per_article=cpu / done * 1e6,
        commit_share=committing / wall,
        commit_ms=committing / transactions * 1e3,
        consume_share=consuming / wall,
        transactions=transactions,
        wall_seconds=wall,
        peak_rss_mib=peak_rss_bytes() / 2**20,
    )


def _batch(consumer: Consumer, wanted: int) -> list[Message]:
    """Exactly as many articles as wanted: all of them are in the topic already."""
    batch: list[Message] = []
    until = perf_counter() + TIMEOUT_SECONDS
    while len(batch) < wanted:
        for message in consumer.consume(min(CONSUME, wanted - len(batch)), CONSUME_TIMEOUT_SECONDS):
            error = message.error()
            if error is None:
                batch.append(message)
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
        if perf_counter() > until:
            raise SystemExit(f"error: no articles for {TIMEOUT_SECONDS} s")
    return batch


if __name__ == "__main__":
    measured = run(msgspec.json.decode(sys.argv[1], type=Task))
    print(msgspec.json.encode(asdict(measured)).decode())
