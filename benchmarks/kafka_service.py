"""`streamdedup run` on the benchmark's input: the service itself, watched through its listener.

Run as `python kafka_service.py JSON` by `kafka.py`, in a process of its own.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from threading import Event
from time import perf_counter, process_time
from typing import cast
from urllib.request import urlopen

import msgspec

from streamdedup.bench.growth import peak_rss_bytes
from streamdedup.config import Config, KafkaConfig, StateConfig
from streamdedup.kafka.failpoints import Failpoints
from streamdedup.kafka.report import BatchReport, Listener, Role, StageSeconds
from streamdedup.kafka.service import Service
from streamdedup.observe.listeners import Listeners
from streamdedup.observe.observatory import Observatory
from streamdedup.testing import unique_name
from streamdedup.warm import warm_up


class Task(msgspec.Struct, frozen=True):
    """What one run of the service does."""

    bootstrap: str
    input: str
    verdicts: str
    dead_letters: str
    articles: int
    batch: int
    observe: bool = False
    client: dict[str, str] = {}


@dataclass(frozen=True)
class Measured:
    """From the first article asked for to the last one applied; joining the group is over then.

    The stages up to `foresee` run beside the rest, which follow one another.
    """

    articles_per_second: float
    cpu_us_per_article: float
    transactions: int
    wall_seconds: float
    peak_rss_mib: float
    stages_us: dict[str, float]
    reasons: dict[str, int]
    listener_us_per_article: float = 0.0
    scrape_ms: float = 0.0


class Timed:
    """A listener that measures how long another one listens."""

    def __init__(self, listener: Listener) -> None:
        self.seconds = 0.0
        self._listener = listener

    def __getattr__(self, name: str) -> Callable[..., None]:
        hear = getattr(self._listener, name)

        def timed(*heard: object, **about: object) -> None:
            started = perf_counter()
            hear(*heard, **about)
            self.seconds += perf_counter() - started

        setattr(self, name, timed)
        return timed


class Watch(Listener):
    """A listener that stops the service when all articles are done."""

    def __init__(self, articles: int, stop: Event) -> None:
        self._left = articles
        self._stop = stop
        self.started = self.cpu_started = self.wall = self.cpu = 0.0
        self.transactions = 0
        self.stages: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()

    def on_role(self, role: Role) -> None:
        """Begin to count when it begins to work."""
        if role is Role.WORKING:
            self.started, self.cpu_started = perf_counter(), process_time()

    def on_batch(self, report: BatchReport) -> None:
        """Add up."""
        self.transactions += 1
        self.reasons.update(report.by_reason)
        for stage in fields(StageSeconds):
            self.stages[stage.name] += getattr(report.seconds, stage.name)
        self._left -= report.records
        if self._left <= 0:
            self.wall = perf_counter() - self.started
            self.cpu = process_time() - self.cpu_started
            self._stop.set()

    def on_trouble(self, text: str, kind: str = "trouble", **about: str) -> None:
        """Must not happen, or the figures are of something else."""
        print(text, file=sys.stderr)

    def on_connection(self, text: str) -> None:
        """The same."""
        print(text, file=sys.stderr)


def run(task: Task) -> Measured:
    """Work off the whole input topic once."""
    stop = Event()
    watch = Watch(task.articles, stop)
    with tempfile.TemporaryDirectory(prefix="streamdedup-") as directory:
        config = Config(
            kafka=KafkaConfig(
                bootstrap=task.bootstrap,
                group=unique_name("service"),
                input=(task.input,),
                verdicts=task.verdicts,
                changelog=unique_name("changelog"),
                dead_letters=task.dead_letters,
                batch_articles=task.batch,
                client=dict(task.client),
            ),
            state=StateConfig(path=str(Path(directory) / "state")),
        )
        warm_up(config)
        observatory = Observatory(config, sys.stderr, listener=Listener(), any_port=True)
        timed = Timed(observatory.listener if task.observe else Listener())
        listener = Listeners(cast("Listener", timed), watch)
        with observatory if task.observe else nullcontext():
            Service(config, listener, stop, Failpoints(), create_topics=True).run()
            scrape_ms = scrape(observatory) if task.observe else 0.0
    return Measured(
        articles_per_second=task.articles / watch.wall,
        cpu_us_per_article=watch.cpu / task.articles * 1e6,
        transactions=watch.transactions,
        wall_seconds=watch.wall,
        peak_rss_mib=peak_rss_bytes() / 2**20,
        stages_us={stage: seconds / task.articles * 1e6 for stage, seconds in watch.stages.items()},
        reasons=dict(watch.reasons),
        listener_us_per_article=timed.seconds / task.articles * 1e6,
        scrape_ms=scrape_ms,
    )


def scrape(observatory: Observatory) -> float:
    """Milliseconds that /metrics takes."""
    started = perf_counter()
    with urlopen(f"{observatory.address}metrics") as response:
        response.read()
    return (perf_counter() - started) * 1e3


if __name__ == "__main__":
    measured = run(msgspec.json.decode(sys.argv[1], type=Task))
    print(msgspec.json.encode(asdict(measured)).decode())
