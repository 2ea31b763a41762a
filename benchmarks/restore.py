"""How fast an index is made again from the changelog, on a real broker on this machine.

    python benchmarks/restore.py [--articles 1000000] [--json]

The changelog holds synthetic articles of about 220 shingles, a quarter of them near-duplicates.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from confluent_kafka import Producer

from streamdedup.bench.growth import peak_rss_bytes
from streamdedup.bench.synthetic import CutScheme, synthetic_batch
from streamdedup.config import Config, KafkaConfig, StateConfig
from streamdedup.errors import StreamdedupError
from streamdedup.kafka.changelog import Changelog
from streamdedup.kafka.replica import Replica
from streamdedup.kafka.report import BatchReport, RestoreProgress, Role
from streamdedup.kafka.tail import Tail
from streamdedup.store.records import encode_record
from streamdedup.testing import LocalBroker, unique_name
from streamdedup.verdict import Source, Verdict
from streamdedup.warm import warm_up

TARGET_ARTICLES_PER_SECOND = 25_000
_CHUNK = 4_000


class Progress:
    """A listener that shows how far the restore is."""

    def on_restore(self, progress: RestoreProgress) -> None:
        """A line on standard error."""
        print(f"{progress.records:,} articles", file=sys.stderr)

    def on_role(self, role: Role) -> None:
        """Nothing that is measured."""

    def on_batch(self, report: BatchReport) -> None:
        """Nothing is judged."""

    def on_event(self, text: str, kind: str = "event", **about: str) -> None:
        """Nothing that is measured."""

    def on_trouble(self, text: str, kind: str = "trouble", **about: str) -> None:
        """Must not happen."""
        print(text, file=sys.stderr)

    def on_connection(self, text: str) -> None:
        """Must not happen."""
        print(text, file=sys.stderr)


def run(articles: int) -> dict[str, Any]:
    """Fill a changelog, make an index from it, return the figures."""
    with LocalBroker() as broker, tempfile.TemporaryDirectory(prefix="streamdedup-") as directory:
        config = Config(
            kafka=KafkaConfig(
                bootstrap=broker.bootstrap,
                changelog=broker.create_topic(unique_name("changelog")),
            ),
            state=StateConfig(path=str(Path(directory) / "state")),
        )
        scheme = CutScheme(config.scheme, config.match)
        changelog = Changelog(scheme.fingerprint)
        print(f"filling the changelog with {articles:,} articles", file=sys.stderr)
        fill(config, scheme, changelog, articles)
        warm_up(config)
        tail = Tail(config.kafka, lambda error: print(error, file=sys.stderr))
        replica = Replica(config, changelog, "benchmark", tail, Progress())
        started, cpu_started = perf_counter(), process_time()
        replica.open()
        replica.catch_up(lambda: True)
        wall, cpu = perf_counter() - started, process_time() - cpu_started
        restored = replica.engine.store.next_number
        replica.close()
        tail.close()
    return {
        "articles": restored,
        "articles_per_second": restored / wall,
        "target_articles_per_second": TARGET_ARTICLES_PER_SECOND,
        "cpu_us_per_article": cpu / restored * 1e6,
        "wall_seconds": wall,
        "peak_rss_mib": peak_rss_bytes() / 2**20,
    }


def fill(config: Config, scheme: CutScheme, changelog: Changelog, articles: int) -> None:
    """As an owner would have written it."""
    producer = Producer({"bootstrap.servers": config.kafka.bootstrap, "linger.ms": 50})
    for first in range(0, articles, _CHUNK):
        count = min(_CHUNK, articles - first)
        scheme.sets = synthetic_batch(first, count).sets
        payloads = scheme.payloads([])
        for index in range(count):
            number = first + index
            id = f"a{number}"
            verdict = Verdict(id=id, verdict="unique", story=id, published=1_000 * number)
            digest = int(payloads.digests[index])
            record = encode_record(
                1_000 * number, 1_000 * number, digest, id.encode(), b"", payloads.of(index)
            )
            place = Source(topic="articles", partition=0, offset=number)
            value = changelog.encode(place, verdict, record, first=index == 0)
            while True:
                try:
                    producer.produce(config.kafka.changelog, value, partition=0)
                    break
                except BufferError:
                    producer.poll(0.1)
    if producer.flush(60):
        raise SystemExit("error: the broker does not take the changelog")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--articles", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    try:
        figures = run(options.articles)
    except StreamdedupError as error:
        sys.exit(f"error: {error}")
    if options.json:
        print(json.dumps(figures))
        return
    print(
        f"{figures['articles']:,} articles in {figures['wall_seconds']:.1f} s: "
        f"{figures['articles_per_second']:,.0f}/s (target {TARGET_ARTICLES_PER_SECOND:,}), "
        f"{figures['cpu_us_per_article']:.1f} µs CPU an article, "
        f"peak RSS {figures['peak_rss_mib']:,.0f} MiB"
    )


if __name__ == "__main__":
    main()
