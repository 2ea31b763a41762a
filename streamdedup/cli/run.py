"""`streamdedup run`: the service on a terminal or under a supervisor.

The command owns signals, log lines and the exit code; what is done is the service's business.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdedup.cli.options import config_options, load
from streamdedup.cli.terminal import printable

if TYPE_CHECKING:
    from streamdedup.kafka.report import BatchReport, RestoreProgress, Role

# A supervisor is told "within five seconds"; whatever hangs then is left hanging.
LEAVE_SECONDS = 4.5
REPEAT_SECONDS = 10.0
LINE_CHARACTERS = 1_000


@click.command()
@config_options
@click.option("--create-topics", is_flag=True, help="Create missing topics, with right settings.")
@click.option(
    "--skip-lost",
    is_flag=True,
    help="Go on although articles have left the input before they were judged.",
)
def run(
    config_file: Path | None, overrides: tuple[str, ...], create_topics: bool, skip_lost: bool
) -> None:
    """Judge every article of the input topics, exactly once.

    Runs until SIGTERM or Ctrl-C, and then leaves within five seconds; a second signal ends it at
    once.  Several instances with the same kafka.group share the work of one: the oldest judges, the
    others stand by and take over.
    """
    config = load(config_file, overrides)
    stop = threading.Event()
    # Before any other thread exists: they all inherit the mask, and one thread waits for signals.
    signals = _take_signals(stop)
    from streamdedup.kafka.failpoints import Failpoints
    from streamdedup.kafka.service import Service
    from streamdedup.warm import warm_up

    log = ServiceLog()
    log.line(f"starting: {config.kafka.bootstrap}, group {config.kafka.group}")
    warm_up(config, lambda: log.line("compiling, once on this machine"))
    try:
        Service(
            config,
            log,
            stop,
            Failpoints.from_environment(os.environ),
            create_topics=create_topics,
            skip_lost=skip_lost,
        ).run()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)


class ServiceLog:
    """A line on standard error for every event that matters, none for an article."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def line(self, text: str) -> None:
        """Write it, with the time."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for part in text.splitlines():
            click.echo(f"{now} {printable(part, LINE_CHARACTERS)}", err=True)

    def on_role(self, role: Role) -> None:
        """The instance does something else now."""
        self.line(str(role))

    def on_batch(self, report: BatchReport) -> None:
        """Too many to be said."""

    def on_restore(self, progress: RestoreProgress) -> None:
        """How far it is."""
        rate = progress.records / progress.seconds if progress.seconds else 0.0
        self.line(
            f"restored {progress.records:,} articles in {progress.seconds:.1f} s ({rate:,.0f}/s), "
            f"changelog offset {progress.next_offset:,} of {progress.end_offset:,}"
        )

    def on_event(self, text: str) -> None:
        """Something happened."""
        self.line(text)

    def on_trouble(self, text: str) -> None:
        """Something went wrong; the same is not said again within some seconds."""
        self._once_in_a_while(f"warning: {text}")

    def on_connection(self, text: str) -> None:
        """librdkafka says this for every broker and every attempt, in ever new words."""
        self._once_in_a_while(f"warning: connection to Kafka: {text.partition(' (after')[0]}", "")

    def _once_in_a_while(self, text: str, subject: str | None = None) -> None:
        now = time.monotonic()
        subject = text if subject is None else subject
        if now - self._said.get(subject, -REPEAT_SECONDS) >= REPEAT_SECONDS:
            self._said[subject] = now
            self.line(text)


def _take_signals(stop: threading.Event) -> set[signal.Signals]:
    """The first signal asks, the second ends; whatever the loop waits for at that moment."""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    def listen() -> None:
        first = signal.sigwait(signals)
        stop.set()
        second = signal.sigtimedwait(signals, LEAVE_SECONDS)
        number = second.si_signo if second is not None else first
        sys.stderr.flush()
        os._exit(128 + number)

    threading.Thread(target=listen, name="signals", daemon=True).start()
    return signals
