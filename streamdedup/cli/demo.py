"""`streamdedup demo`: the service at work, to be watched, without a broker or any set-up.

The command owns how it looks and what is said at the end; the play itself is `streamdedup.demo`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamdedup.cli.interrupts import Interrupted, Interrupts
from streamdedup.cli.options import config_options, input_topic, load
from streamdedup.cli.terminal import printable
from streamdedup.errors import StreamdedupError

if TYPE_CHECKING:
    from streamdedup.config import Config
    from streamdedup.demo.feed import Line
    from streamdedup.demo.show import Script, Show
    from streamdedup.kafka.delivery import Delivery
    from streamdedup.kafka.letters import Letter
    from streamdedup.verdict import Verdict

_TITLE_CHARACTERS = 60


@click.command()
@click.option(
    "--rate",
    type=click.FloatRange(0),
    default=20.0,
    show_default=True,
    metavar="R",
    help="Articles a second while they are shown; 0 for no limit.",
)
@click.option(
    "--articles",
    type=click.IntRange(1),
    default=20_000,
    show_default=True,
    metavar="N",
    help="Lines of the feed; those behind the first round are not shown.",
)
@click.option("--loop", is_flag=True, help="Show articles until Ctrl-C.")
@click.option("--seconds", type=click.FloatRange(0), metavar="S", help="End after so long.")
@click.option(
    "--kafka", "bootstrap", metavar="HOST:PORT", help="Use a real broker, and judge exactly once."
)
@config_options
@click.option("--json", "as_json", is_flag=True, help="Only the summary, as one JSON object.")
def demo(
    rate: float,
    articles: int,
    loop: bool,
    seconds: float | None,
    bootstrap: str | None,
    config_file: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Watch the service judge a made-up wire feed: stories, copies, crops, pages and junk.

    Needs no broker: it brings a Kafka along in its own process, where the service runs at least
    once.  First comes a round of the feed, article by article; then rounds like it at full speed;
    then what was found, held against what is known about the feed.
    """
    config = load(config_file, overrides)
    from streamdedup.demo.feed import Feed
    from streamdedup.demo.show import Script, Show
    from streamdedup.kafka.report import Listener
    from streamdedup.observe.observatory import Observatory
    from streamdedup.warm import warm_up

    # On a broker of today's articles, the news have to be of today.
    feed = Feed(end_ms=None if bootstrap is None else lambda: time.time_ns() // 1_000_000)
    script = Script(
        articles=None if loop else articles,
        shown=None if loop else min(feed.round_lines, articles),
        rate=rate,
        seconds=seconds,
    )
    failure: BaseException | None = None
    started = time.perf_counter()
    terminal = _Terminal(script, quiet=as_json)
    with Interrupts() as interrupts, _scene(config, bootstrap) as scene:

        def check() -> None:
            with interrupts.allowed():
                pass

        with interrupts.allowed():
            warm_up(scene.config, terminal.on_wait)
        # A service on the same machine may have the port; the demo is no reason to stop it.
        observatory = Observatory(scene.config, sys.stderr, listener=Listener(), any_port=True)
        show = Show(
            scene.config,
            scene.topic,
            scene.delivery,
            feed,
            script,
            terminal,
            observatory.listener,
        )
        try:
            with observatory, show:
                if not as_json:
                    click.echo(scene.words)
                    if observatory.address:
                        click.echo(f"metrics, health and a status page: {observatory.address}")
                    click.echo()
                show.play(scene.partitions, check)
        except (Interrupted, StreamdedupError) as error:
            # What was seen until then still gets its summary.
            failure = error
        finally:
            terminal.close()
    if show.tally.answers:
        figures = _figures(show, time.perf_counter() - started)
        click.echo(json.dumps(figures) if as_json else "\n".join(_text(figures)))
    if failure is not None:
        raise failure


@dataclass(frozen=True)
class _Scene:
    """Which Kafka it is, and a state directory for as long as it takes."""

    config: Config
    topic: str
    delivery: Delivery
    words: str

    def partitions(self) -> dict[str, int]:
        """Of the topics that exist by now."""
        from streamdedup.kafka.connect import partition_counts

        return partition_counts(self.config.kafka)


@contextmanager
def _scene(config: Config, bootstrap: str | None) -> Iterator[_Scene]:
    from msgspec.structs import replace

    from streamdedup.config import KafkaConfig
    from streamdedup.demo.cluster import InProcessKafka
    from streamdedup.kafka.connect import partition_counts
    from streamdedup.kafka.delivery import AT_LEAST_ONCE, EXACTLY_ONCE

    with ExitStack() as stack:
        directory = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="streamdedup-", ignore_cleanup_errors=True)
        )
        state = replace(config.state, path=str(Path(directory) / "state"))
        if bootstrap is None:
            cluster = stack.enter_context(InProcessKafka())
            # What is set for a real broker, passwords for one, is not for this one.
            kafka = KafkaConfig(bootstrap=cluster.bootstrap)
            (topic,) = kafka.input
            cluster.create_topics(topic, kafka.verdicts, kafka.changelog, kafka.dead_letters)
            delivery = AT_LEAST_ONCE
            words = "A news feed, a Kafka and the service, all in this process"
        else:
            kafka = replace(config.kafka, bootstrap=bootstrap)
            partition_counts(kafka)  # says at once if there is no broker
            topic = input_topic(config, "the demo wants one topic by its name")
            delivery = EXACTLY_ONCE
            words = f"A news feed into {topic} at {bootstrap}, and what the service says of it"
        yield _Scene(replace(config, kafka=kafka, state=state), topic, delivery, words)


class _Terminal:
    """The stage: a line an article, then a bar."""

    def __init__(self, script: Script, *, quiet: bool) -> None:
        from streamdedup.cli.display import PrettyVerdicts, ProgressBar

        self._display = None if quiet else PrettyVerdicts()
        self._bar = ProgressBar(script.articles, shown=sys.stderr.isatty() and not quiet)
        self._stack = ExitStack()
        self._bar_is_up = False

    def on_verdict(self, verdict: Verdict, line: Line) -> None:
        """One of those that are shown one by one."""
        if self._display is not None:
            self._display.show(verdict, " ".join(line.title.split()))

    def on_dead_letter(self, letter: Letter) -> None:
        """The same for a line that cannot be judged."""
        if self._display is not None:
            self._display.show_dead_letter(letter.reason, letter.exception)

    def on_progress(self, answers: int) -> None:
        """The others, from time to time."""
        if not self._bar_is_up:
            self._stack.enter_context(self._bar)
            self._bar_is_up = True
        self._bar.advance(answers, answers)

    def on_wait(self) -> None:
        """It takes longer than a moment before anything can be seen."""
        click.echo("Compiling for this machine, this once: half a minute ...", err=True)

    def on_trouble(self, text: str) -> None:
        """Something that the service has to say."""
        click.echo(f"warning: {printable(text)}", err=True)

    def close(self) -> None:
        """The bar comes down before the summary."""
        self._stack.close()


def _figures(show: Show, seconds: float) -> dict[str, Any]:
    fast = show.fast_answers / show.fast_seconds if show.fast_seconds else None
    return {
        **show.tally.figures(),
        "seconds": round(seconds, 3),
        "full_speed_articles": show.fast_answers,
        "full_speed_articles_per_second": None if fast is None else round(fast, 1),
    }


def _text(figures: dict[str, Any]) -> Iterator[str]:
    yield ""
    rows = [
        ("articles", figures["articles"], f"in {figures['seconds']:.1f} s"),
        ("unique", figures["unique"], ""),
        (
            "duplicates",
            figures["duplicates"],
            f"{figures['duplicate_share']:.0%}: {_listed(figures['reasons'], without=('new',))}",
        ),
        ("dead", figures["dead_letters"], _listed(figures["dead_letter_reasons"])),
    ]
    for name, count, detail in rows:
        yield f"{name:<11}{count:>10,}   {detail}".rstrip()
    if figures["copies_owed"]:
        yield (
            f"of {figures['copies_owed']:,} copies in the feed {figures['copies_found']:,} were "
            f"found; {figures['copies_wrong']:,} articles were called copies and are none"
        )
    if 2 * figures["reasons"].get("redelivery", 0) > figures["articles"]:
        yield "redeliveries: this broker has seen the feed before, and nothing is forgotten"
    if figures["full_speed_articles_per_second"] is not None:
        yield (
            f"full speed: {figures['full_speed_articles']:,} articles at "
            f"{figures['full_speed_articles_per_second']:,.0f} a second"
        )
    if figures["best_known"]:
        yield "copied most:"
    for story in figures["best_known"]:
        title = printable(" ".join(story["title"].split()), _TITLE_CHARACTERS)
        count = sum(story["copies"].values())
        yield f"  {count:>3} copies  {title}  ({_listed(story['copies'])})"


def _listed(counts: dict[str, int], without: tuple[str, ...] = ()) -> str:
    shown = (f"{name} {count:,}" for name, count in counts.items() if name not in without)
    return ", ".join(shown)
