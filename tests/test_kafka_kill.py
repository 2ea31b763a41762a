"""kill -9 anywhere, restart, and nobody who reads the topics can tell."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from random import Random

from service import Instance, Setup, feed, running, undisturbed

from streamdedup.kafka.failpoints import FAILPOINTS
from streamdedup.testing import Kafka

BATCHES_OF_25 = {"STREAMDEDUP_KAFKA__BATCH_ARTICLES": "25"}
# Before the first batch these are reached once in a life.
ONCE = {"assigned", "fenced-others", "restored"}
RANDOM_KILLS = 30


def test_a_kill_between_any_two_steps_changes_no_byte_of_the_verdicts(
    broker: Kafka, tmp_path: Path
) -> None:
    messages = feed(1_000)
    setup = Setup(broker, extra=BATCHES_OF_25)
    setup.produce(messages)
    for failpoint in FAILPOINTS:
        count = 1 if failpoint in ONCE else 3
        env = {"STREAMDEDUP_FAILPOINT": f"{failpoint}:{count}"}
        with running(setup, tmp_path, **env) as life:
            assert life.wait() == -signal.SIGKILL, failpoint
    with running(setup, tmp_path) as last:
        setup.wait_for(len(messages))
        assert last.stop() == 0
    setup.check_truth()
    assert setup.verdicts() == undisturbed(setup, len(messages))
    # Transactions that were cut off lie in the changelog, where only an index that reads what is
    # committed does not take them for true.
    committed = len(setup.read("changelog"))
    written = len(broker.read(setup.names["changelog"], isolation="read_uncommitted"))
    assert written >= committed + 2 * 25


def test_errors_between_any_two_steps_change_no_byte_of_the_verdicts(
    broker: Kafka, tmp_path: Path
) -> None:
    messages = feed(300)
    setup = Setup(broker, extra=BATCHES_OF_25)
    setup.produce(messages)
    for failpoint in ("begun", "verdicts-produced", "changelog-produced", "offsets-sent"):
        env = {"STREAMDEDUP_FAILPOINT": f"{failpoint}:2:error"}
        with running(setup, tmp_path, **env) as life:
            life.wait_for_log("a commit failed: failpoint")
            life.wait_for_log("reading what is true")
            life.kill()
    # The transaction that was committed although its writer was told otherwise.
    with running(setup, tmp_path, STREAMDEDUP_FAILPOINT="committed:2:error") as life:
        life.wait_for_log("a commit failed: failpoint")
        setup.wait_for(len(messages))
        assert life.stop() == 0
    setup.check_truth()
    assert setup.verdicts() == undisturbed(setup, len(messages))


def test_thirty_random_kills_under_load_lose_and_double_nothing(
    broker: Kafka, tmp_path: Path
) -> None:
    """Two instances, and at any moment one of them may die and come back."""
    random = Random(30)
    setup = Setup(broker, partitions=3, extra=BATCHES_OF_25)
    feeds = [feed(1_200, seed) for seed in range(3)]
    sent = 0
    lives = {name: Instance(setup, tmp_path / name) for name in ("a", "b")}
    for kill in range(RANDOM_KILLS):
        share = len(feeds[0]) * (kill + 1) // RANDOM_KILLS
        for partition, messages in enumerate(feeds):
            setup.produce(messages[sent:share], partition)
        sent = share
        time.sleep(random.uniform(0.3, 1.5))
        name = random.choice(("a", "b"))
        lives[name].kill()
        lives[name] = Instance(setup, tmp_path / name)
    setup.wait_for(3 * len(feeds[0]))
    for life in lives.values():
        life.wait_for_log("starting")  # from then on it knows what to do with a signal
    assert [life.stop() for life in lives.values()] == [0, 0]
    setup.check_truth()
