"""What watching costs: the same feed through the service with and without metrics and health.

    python benchmarks/observe.py [--articles 60000] [--batch 2000] [--rounds 5] [--json]

The rounds alternate on one real broker, and every figure is CPU of the process an article, which
other work on the machine disturbs least.  Beside it stands what the listener takes by itself, timed
around every one of its calls, and what a scrape takes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import kafka_service
import msgspec
from kafka_input import filled_topic

from streamdedup.errors import StreamdedupError
from streamdedup.testing import LocalBroker, unique_name

TARGET_SHARE = 0.02


def run(articles: int, batch: int, rounds: int) -> dict[str, Any]:
    """All rounds, one after the other."""
    watched: list[dict[str, Any]] = []
    alone: list[dict[str, Any]] = []
    with LocalBroker() as broker:
        print(f"filling the input topic with {articles:,} articles", file=sys.stderr)
        input_ = filled_topic(broker, articles, 1)
        for round_ in range(rounds):
            for observe, results in ((False, alone), (True, watched)):
                print(f"round {round_ + 1} of {rounds}, watched: {observe}", file=sys.stderr)
                task = kafka_service.Task(
                    bootstrap=broker.bootstrap,
                    input=input_.topic,
                    verdicts=broker.create_topic(unique_name("verdicts")),
                    dead_letters=broker.create_topic(unique_name("dead-letters")),
                    articles=articles,
                    batch=batch,
                    observe=observe,
                )
                results.append(_measured(task))
    cpu = [median(one["cpu_us_per_article"] for one in part) for part in (alone, watched)]
    listening = median(one["listener_us_per_article"] for one in watched)
    return {
        "articles": articles,
        "batch": batch,
        "rounds": rounds,
        "cpu_us_per_article_alone": cpu[0],
        "cpu_us_per_article_watched": cpu[1],
        "cpu_share_between_runs": cpu[1] / cpu[0] - 1,
        "listener_us_per_article": listening,
        "listener_share_of_wall": median(
            one["listener_us_per_article"] * one["articles_per_second"] / 1e6 for one in watched
        ),
        "scrape_ms": median(one["scrape_ms"] for one in watched),
        "target_share": TARGET_SHARE,
    }


def _measured(task: kafka_service.Task) -> dict[str, Any]:
    script = Path(__file__).with_name("kafka_service.py")
    done = subprocess.run(
        [sys.executable, str(script), msgspec.json.encode(task).decode()],
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def text(figures: dict[str, Any]) -> Iterator[str]:
    """The figures for a person."""
    yield (
        f"{figures['articles']:,} articles, transactions of {figures['batch']:,}, "
        f"median of {figures['rounds']} alternating rounds"
    )
    yield f"CPU an article, alone      {figures['cpu_us_per_article_alone']:8.2f} µs"
    yield (
        f"CPU an article, watched    {figures['cpu_us_per_article_watched']:8.2f} µs "
        f"({figures['cpu_share_between_runs']:+.1%})"
    )
    yield (
        f"the listener by itself     {figures['listener_us_per_article']:8.2f} µs "
        f"({figures['listener_share_of_wall']:.2%} of the time, "
        f"target {figures['target_share']:.0%})"
    )
    yield f"a scrape                   {figures['scrape_ms']:8.2f} ms"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--articles", type=int, default=60_000, metavar="N")
    parser.add_argument("--batch", type=int, default=2_000, metavar="N", help="a transaction")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    try:
        figures = run(options.articles, options.batch, options.rounds)
    except StreamdedupError as error:
        sys.exit(f"error: {error}")
    print(json.dumps(figures) if options.json else "\n".join(text(figures)))


if __name__ == "__main__":
    main()
