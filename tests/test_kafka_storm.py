"""A storm of rebalances: for a minute, every second one instance joins and another one leaves."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from service import Instance, Setup, feed

from streamdedup.testing import Kafka

STORM_SECONDS = 60
ARTICLES_A_SECOND = 40  # into each of three partitions
AT_A_TIME = 5


def test_instances_that_join_and_leave_every_second_for_a_minute_lose_and_double_nothing(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker, partitions=3, extra={"STREAMDEDUP_KAFKA__BATCH_ARTICLES": "100"})
    feeds = [feed(STORM_SECONDS * ARTICLES_A_SECOND, seed) for seed in range(3)]
    lives = [Instance(setup, tmp_path / "0")]
    alive = list(lives)
    try:
        lives[0].wait_for_log("working")
        began = time.monotonic()
        for second in range(STORM_SECONDS):
            first = second * ARTICLES_A_SECOND
            for partition, messages in enumerate(feeds):
                setup.produce(messages[first : first + ARTICLES_A_SECOND], partition)
            lives.append(Instance(setup, tmp_path / str(second + 1)))
            alive.append(lives[-1])
            if len(alive) > AT_A_TIME:
                # The oldest is the owner; one after another they are killed or told to stop, and
                # in between a newcomer leaves.
                leaving = alive.pop((0, 2)[second % 2])
                leaving.send((signal.SIGTERM, signal.SIGTERM, signal.SIGKILL)[second % 3])
            time.sleep(max(0.0, began + second + 1 - time.monotonic()))
        setup.wait_for(3 * len(feeds[0]))
        ends = {life.wait() for life in lives if life not in alive}
        # Told to stop before it knows what a signal is, a newcomer ends as any process does.
        assert ends <= {0, -signal.SIGTERM, -signal.SIGKILL}
        alive[-1].wait_for_log("starting")  # from then on it knows what to do with a signal
        assert [life.stop() for life in alive] == [0] * AT_A_TIME
    finally:
        for life in lives:
            life.__exit__(None, None, None)
    setup.check_truth()
    owners = sum("working" in life.log for life in lives)
    assert owners > STORM_SECONDS / 6, f"the index changed hands only {owners} times"
