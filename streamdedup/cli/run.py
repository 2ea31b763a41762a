"""`streamdedup run`: the service on a terminal or under a supervisor.

The command owns signals and the exit code; what is done is the service's business, and what is seen
of it the observatory's.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdedup.cli.exit_codes import exit_code
from streamdedup.cli.options import config_options, load
from streamdedup.errors import StreamdedupError

if TYPE_CHECKING:
    from streamdedup.observe.log import EventLog

# A supervisor is told "within five seconds"; whatever hangs then is left hanging.
LEAVE_SECONDS = 4.5


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
    from streamdedup.observe.observatory import Observatory
    from streamdedup.warm import warm_up

    failpoints = Failpoints.from_environment(os.environ)
    try:
        with Observatory(config, sys.stderr) as observatory:
            kafka = config.kafka
            observatory.log.event(
                "start",
                f"starting: {kafka.bootstrap}, group {kafka.group}",
                bootstrap=kafka.bootstrap,
                group=kafka.group,
            )
            if address := observatory.address:
                observatory.log.event("http", f"metrics and health: {address}", address=address)
            warm_up(
                config, lambda: observatory.log.event("compile", "compiling, once on this machine")
            )
            with _logged_end(observatory.log):
                Service(
                    config,
                    observatory.listener,
                    stop,
                    failpoints,
                    create_topics=create_topics,
                    skip_lost=skip_lost,
                ).run()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)


@contextmanager
def _logged_end(log: EventLog) -> Iterator[None]:
    """An error that ends the service: a line like the others where machines read them."""
    try:
        yield
    except StreamdedupError as error:
        if not log.is_for_machines:
            raise  # the command says it to people
        code, kind = int(exit_code(error)), type(error).__name__
        log.event("end", str(error), "error", error=kind, exit_code=code)
        raise click.exceptions.Exit(code) from None


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
