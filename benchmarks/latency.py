"""How soon an article of a quiet topic gets its verdict, on a real broker on this machine.

    python benchmarks/latency.py [--rate 20] [--seconds 60] [--json]

Before the quiet minute the index is filled to just before a full head, so that the minute holds a
freeze and, where heads are small, a merge.  Latency is from handing an article to a producer to
having its verdict from a `read_committed` consumer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import msgspec
import numpy as np
from articles import samples
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_input import InputArticle, cut

from streamdedup.testing import LocalBroker, unique_name

TARGET_P99_MS = 250.0
FAN_IN = 8
# A head of the default size is frozen; eight small ones are frozen and merged.
CASES = {
    "quiet": (65_536, 100),
    "freeze": (65_536, 65_536),
    "freeze and merge": (4_096, FAN_IN * 4_096),
}


def run(rate: int, seconds: int) -> dict[str, Any]:
    """Measure every case and return all figures."""
    quiet = rate * seconds
    texts = [cut(sample.text) for sample in samples(5_000)]
    cases = {}
    with LocalBroker() as broker:
        for name, (head_articles, full_at) in CASES.items():
            print(f"{name}: filling the index", file=sys.stderr)
            # The head is full a third into the minute; what follows it shows in the rest.
            preload = max(100, full_at - quiet // 3)
            times = measure(broker, texts, head_articles, preload, rate, quiet)
            p50, p99 = np.percentile(times, [50, 99]).tolist()
            cases[name] = {
                "articles_before": preload,
                "head_articles": head_articles,
                "articles": len(times),
                "p50_ms": p50,
                "p99_ms": p99,
                "slowest_ms": max(times),
            }
    return {"rate": rate, "seconds": seconds, "target_p99_ms": TARGET_P99_MS, "cases": cases}


def measure(
    broker: LocalBroker,
    texts: list[str],
    head_articles: int,
    preload: int,
    rate: int,
    quiet: int,
) -> list[float]:
    """Milliseconds from an article to its verdict, of the quiet articles."""
    topic = broker.create_topic(unique_name("articles"))
    verdicts = unique_name("verdicts")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    sent: dict[str, float] = {}
    times: list[float] = []

    def send(number: int) -> None:
        # Every third is the same text under another id; the id itself makes the others differ.
        text = texts[number % len(texts)]
        text = (
            text if number % 3 == 0 else " ".join(f"{word} the {number}" for word in text.split())
        )
        article = InputArticle(id=f"a{number}", text=cut(text), published="2026-01-01T00:00:00Z")
        sent[article.id] = monotonic()
        while True:
            try:
                producer.produce(topic, msgspec.json.encode(article), article.id)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)

    with service(broker, topic, verdicts, head_articles):
        consumer = reader(broker, verdicts)
        for number in range(preload):
            send(number)
        judged = 0
        while judged < preload:
            judged += len(consumer.consume(1_000, 0.2))
        sleep(2)
        started = monotonic()
        for number in range(preload, preload + quiet):
            send(number)
            until = started + (number - preload + 1) / rate
            while (left := until - monotonic()) > 0:
                for message in consumer.consume(100, min(left, 0.005)):
                    id = json.loads(message.value() or b"{}")["id"]
                    times.append(1e3 * (monotonic() - sent[id]))
        deadline = monotonic() + 10
        while len(times) < quiet and monotonic() < deadline:
            for message in consumer.consume(100, 0.05):
                id = json.loads(message.value() or b"{}")["id"]
                times.append(1e3 * (monotonic() - sent[id]))
        consumer.close()
    if len(times) < quiet:
        raise SystemExit(f"error: {quiet - len(times)} articles got no verdict")
    return times


@contextmanager
def service(
    broker: LocalBroker, topic: str, verdicts: str, head_articles: int
) -> Iterator[subprocess.Popen[bytes]]:
    """`streamdedup run`, as anybody starts it."""
    with tempfile.TemporaryDirectory(prefix="streamdedup-") as directory:
        settings = {
            "KAFKA__BOOTSTRAP": broker.bootstrap,
            "KAFKA__GROUP": unique_name("latency"),
            "KAFKA__INPUT": topic,
            "KAFKA__VERDICTS": verdicts,
            "KAFKA__CHANGELOG": unique_name("changelog"),
            "KAFKA__DEAD_LETTERS": unique_name("dead"),
            "STATE__PATH": str(Path(directory) / "state"),
            "STATE__HEAD_ARTICLES": str(head_articles),
        }
        environment = os.environ | {f"STREAMDEDUP_{key}": text for key, text in settings.items()}
        process = subprocess.Popen(
            [sys.executable, "-m", "streamdedup", "run", "--create-topics"],
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(10)


def reader(broker: LocalBroker, verdicts: str) -> Consumer:
    """Reads what is committed, without waiting for more of it."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": unique_name("reader"),
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
            "fetch.queue.backoff.ms": 5,
        }
    )
    while verdicts not in consumer.list_topics(timeout=10).topics:
        sleep(0.2)
    consumer.assign([TopicPartition(verdicts, 0, 0)])
    return consumer


def text(figures: dict[str, Any]) -> Iterator[str]:
    """The figures for a person."""
    yield f"{figures['rate']} articles a second for {figures['seconds']} s, each case on its own"
    yield ""
    yield "case                 articles before   p50 ms   p99 ms   slowest ms"
    for name, case in figures["cases"].items():
        yield (
            f"{name:<20} {case['articles_before']:>15,} {case['p50_ms']:>8.0f}"
            f" {case['p99_ms']:>8.0f} {case['slowest_ms']:>12.0f}"
        )
    worst = max(case["p99_ms"] for case in figures["cases"].values())
    state = "reached" if worst <= figures["target_p99_ms"] else "MISSED"
    yield ""
    yield f"worst p99 {worst:.0f} ms   target ≤ {figures['target_p99_ms']:.0f} ms: {state}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rate", type=int, default=20, metavar="N", help="articles a second")
    parser.add_argument("--seconds", type=int, default=60, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = run(options.rate, options.seconds)
    print(json.dumps(figures) if options.json else "\n".join(text(figures)))


if __name__ == "__main__":
    main()
