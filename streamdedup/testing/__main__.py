"""Starts a Kafka broker for playing: `python -m streamdedup.testing`, or `make kafka`.

It lives until Ctrl-C.  Without `--data` it forgets everything then.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import FrameType

import click

from streamdedup.testing.broker import LocalBroker
from streamdedup.testing.errors import BrokerFailed, BrokerUnavailable

PLAY = """\
Kafka is ready at {bootstrap}.  In another terminal, for example:

    make run KAFKA={bootstrap}                          # judge the sample feed through it
    STREAMDEDUP_TEST_BOOTSTRAP={bootstrap} make test    # run the tests against it

Topics are not made by themselves.  Log: {log}
Ctrl-C stops the broker{fate}."""


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=9092, show_default=True)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the data in this directory; without it, it is removed at the end.",
)
def main(port: int, data: Path | None) -> None:
    """A Kafka broker on localhost, until Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    broker = LocalBroker(port=port, directory=data)
    try:
        broker.start()
        fate = " and removes its data" if data is None else f"; its data stays in {data}"
        click.echo(PLAY.format(bootstrap=broker.bootstrap, log=broker.log_file, fate=fate))
        while broker.is_running:
            time.sleep(0.2)
        raise BrokerFailed(f"the broker has ended by itself:\n{broker.log_tail()}")
    except (BrokerFailed, BrokerUnavailable) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        click.echo("\nStopping Kafka", err=True)
        broker.stop()
    finally:
        broker.close()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
