"""What the Kafka service could reach and what it reaches, on a real broker on this machine.

    python benchmarks/kafka.py [--articles 200000] [--batch 2000] [--rounds 3]
        [--client fetch.queue.backoff.ms=1000] [--json]

Part (a) is a loop that does nothing but Kafka (`kafka_loop.py`), part (b) the service itself
(`kafka_service.py`).  Every round has output topics of its own and works off the same input;
figures are those of the round of median speed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka_service
import msgspec
from kafka_input import Input, filled_topic
from kafka_loop import Task

from streamdedup.errors import StreamdedupError
from streamdedup.testing import Kafka, LocalBroker, unique_name

TARGET_SHARE = 0.40


def run(
    articles: int, batch: int, partitions: int, rounds: int, client: dict[str, str]
) -> dict[str, Any]:
    """Measure every part and return all figures."""
    with LocalBroker() as broker:
        print(f"filling the input topic with {articles:,} articles", file=sys.stderr)
        input_ = filled_topic(broker, articles, partitions)
        loops, services = [], []
        for round_ in range(rounds):
            print(f"round {round_ + 1} of {rounds}: loop", file=sys.stderr)
            loops.append(loop(broker, input_, batch))
            print(f"round {round_ + 1} of {rounds}: service", file=sys.stderr)
            services.append(service(broker, input_, batch, client))
    speeds = [[one["articles_per_second"] for one in part] for part in (loops, services)]
    share = [mine / bare for bare, mine in zip(*speeds, strict=True)]
    return {
        "articles": articles,
        "bytes_per_article": input_.bytes_per_article,
        "partitions": partitions,
        "batch": batch,
        "rounds": rounds,
        "loop": median(loops),
        "service": median(services),
        "service_share_of_loop": sorted(share)[rounds // 2],
        "target_share_of_loop": TARGET_SHARE,
        "all_rounds_articles_per_second": {
            "loop": speeds[0],
            "service": speeds[1],
        },
    }


def loop(broker: Kafka, input_: Input, batch: int) -> dict[str, Any]:
    """Part (a), once."""
    task = Task(
        bootstrap=broker.bootstrap,
        input=input_.topic,
        verdicts=broker.create_topic(unique_name("verdicts"), input_.partitions),
        changelog=broker.create_topic(unique_name("changelog")),
        articles=input_.articles,
        batch=batch,
    )
    return measured("kafka_loop.py", task)


def service(broker: Kafka, input_: Input, batch: int, client: dict[str, str]) -> dict[str, Any]:
    """Part (b), once."""
    task = kafka_service.Task(
        bootstrap=broker.bootstrap,
        input=input_.topic,
        verdicts=broker.create_topic(unique_name("verdicts"), input_.partitions),
        dead_letters=broker.create_topic(unique_name("dead-letters")),
        articles=input_.articles,
        batch=batch,
        client=client,
    )
    return measured("kafka_service.py", task)


def measured(script: str, task: msgspec.Struct) -> dict[str, Any]:
    """What a script beside this one measures."""
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name(script)),
            msgspec.json.encode(task).decode(),
        ],
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def median(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The round of median speed, as a whole."""
    return sorted(rounds, key=lambda one: one["articles_per_second"])[len(rounds) // 2]


def text(figures: dict[str, Any]) -> Iterator[str]:
    """The figures for a person."""
    yield (
        f"{figures['articles']:,} articles of {figures['bytes_per_article']:,.0f} bytes in "
        f"{figures['partitions']} partition(s), transactions of {figures['batch']:,}, "
        f"median of {figures['rounds']} rounds"
    )
    yield "the broker runs on the same machine"
    yield ""
    yield "                    articles/s   CPU µs an article   commit share   commit ms   peak RSS"
    one = figures["loop"]
    yield (
        f"nothing but Kafka {one['articles_per_second']:>12,.0f}"
        f" {one['cpu_us_per_article']:>19.1f} {one['commit_share']:>14.0%}"
        f" {one['commit_ms']:>11.1f} {one['peak_rss_mib']:>6.0f} MiB"
    )
    one = figures["service"]
    stages = one["stages_us"]
    commit_share = stages["commit"] * figures["articles"] / 1e6 / one["wall_seconds"]
    commit_ms = stages["commit"] * figures["articles"] / 1e3 / one["transactions"]
    yield (
        f"streamdedup run   {one['articles_per_second']:>12,.0f}"
        f" {one['cpu_us_per_article']:>19.1f} {commit_share:>14.0%}"
        f" {commit_ms:>11.1f} {one['peak_rss_mib']:>6.0f} MiB"
    )
    yield ""
    yield (
        f"service / loop: {figures['service_share_of_loop']:.0%} "
        f"(target {figures['target_share_of_loop']:.0%})"
    )
    yield (
        "stages, µs an article (gather, decode, sketch and foresee run beside the others): "
        + ", ".join(f"{stage} {us:.1f}" for stage, us in stages.items())
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--articles", type=int, default=200_000, metavar="N")
    parser.add_argument("--batch", type=int, default=2_000, metavar="N", help="a transaction")
    parser.add_argument("--partitions", type=int, default=1, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument(
        "--client",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of the service's clients",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    client = dict(option.split("=", 1) for option in options.client)
    try:
        figures = run(options.articles, options.batch, options.partitions, options.rounds, client)
    except StreamdedupError as error:
        sys.exit(f"error: {error}")
    print(json.dumps(figures) if options.json else "\n".join(text(figures)))


if __name__ == "__main__":
    main()
