"""One owner, warm standbys: who takes over when, and that a zombie can do no harm."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from service import Setup, feed, running, undisturbed, wait_until

from streamdedup.testing import Kafka

DEFAULT_TIMES = {
    "STREAMDEDUP_KAFKA__CLIENT__SESSION_TIMEOUT_MS": "6000",
    "STREAMDEDUP_KAFKA__CLIENT__HEARTBEAT_INTERVAL_MS": "1500",
}
# An heir to whom the index belongs, and for as long as it is frozen, but who has fenced nobody yet.
HELD = {
    "STREAMDEDUP_FAILPOINT": "assigned:1:freeze",
    "STREAMDEDUP_KAFKA__CLIENT__SESSION_TIMEOUT_MS": "30000",
}


@pytest.mark.parametrize("where", ["decided", "offsets-sent", "committed"])
def test_a_frozen_owner_is_replaced_fenced_and_useful_again(
    broker: Kafka, tmp_path: Path, where: str
) -> None:
    messages = feed(600)
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__BATCH_ARTICLES": "25"})
    setup.produce(messages[:200])
    freeze = {"STREAMDEDUP_FAILPOINT": f"{where}:3:freeze"}
    with running(setup, tmp_path / "a", **freeze) as zombie:
        zombie.wait_for_log("working")
        with running(setup, tmp_path / "b") as heir:
            heir.wait_for_log("working")
            setup.wait_for(200)
            setup.produce(messages[200:400])
            zombie.send(signal.SIGCONT)
            # What it catches up with may be told behind that.
            wait_until(
                lambda: "standby" in zombie.log.partition("warning")[2], "the zombie to stand by"
            )
            setup.wait_for(400)
            assert "working" not in zombie.log.partition("warning")[2]
            assert heir.stop() == 0
        setup.produce(messages[400:])
        setup.wait_for(600)
        assert zombie.stop() == 0
    setup.check_truth()
    assert setup.verdicts() == undisturbed(setup, len(messages))


def test_a_zombie_is_refused_by_the_groups_generation_before_anybody_has_fenced_it(
    broker: Kafka, tmp_path: Path
) -> None:
    messages = feed(200)
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__BATCH_ARTICLES": "25"})
    setup.produce(messages)
    with running(setup, tmp_path / "a", STREAMDEDUP_FAILPOINT="decided:3:freeze") as zombie:
        zombie.wait_for_freeze()
        with running(setup, tmp_path / "b", **HELD) as heir:
            heir.wait_for_freeze()
            zombie.send(signal.SIGCONT)
            zombie.wait_for_log("the index is no longer owned here")
            assert "Unknown member" in zombie.log
            assert len(setup.answered()) == 50
            heir.send(signal.SIGCONT)
            setup.wait_for(200)
            assert heir.stop() == 0
        assert zombie.stop() == 0
    setup.check_truth()
    assert setup.verdicts() == undisturbed(setup, len(messages))


def test_a_zombie_that_is_refused_while_it_produces_knows_why(
    broker: Kafka, tmp_path: Path
) -> None:
    # A batch so large that the broker's answer is there before all of it has been produced.
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__BATCH_ARTICLES": "4000"})
    setup.produce(feed(16_000))
    with running(setup, tmp_path / "a", STREAMDEDUP_FAILPOINT="begun:3:freeze") as zombie:
        zombie.wait_for_freeze()
        with running(setup, tmp_path / "b", **HELD) as heir:
            heir.wait_for_freeze()
            zombie.send(signal.SIGCONT)
            zombie.wait_for_log("the index is no longer owned here")
            assert "a commit failed" not in zombie.log
            heir.send(signal.SIGCONT)
            setup.wait_for(16_000)
            assert heir.stop() == 0
        assert zombie.stop() == 0
    setup.check_truth()


def test_a_standby_takes_over_from_a_killed_owner_within_ten_seconds(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker, extra=DEFAULT_TIMES)
    setup.produce(feed(100))
    with running(setup, tmp_path / "a") as owner, running(setup, tmp_path / "b") as standby:
        setup.wait_for(100)
        standby.wait_for_log("standby")
        owner, standby = (owner, standby) if "working" in owner.log else (standby, owner)
        owner.kill()
        killed = time.monotonic()
        setup.produce(feed(1, 2))
        setup.wait_for(101)
        assert time.monotonic() - killed < 10
    setup.check_truth()


def test_a_standby_takes_over_from_a_stopped_owner_within_three_seconds(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker, extra=DEFAULT_TIMES)
    setup.produce(feed(100))
    with running(setup, tmp_path / "a") as owner:
        owner.wait_for_log("working")
        with running(setup, tmp_path / "b") as standby:
            standby.wait_for_log("standby")
            time.sleep(1)  # a newcomer must not take the index from an owner that works
            assert "working" not in standby.log
            owner.send(signal.SIGTERM)
            stopped = time.monotonic()
            setup.produce(feed(1, 2))
            standby.wait_for_log("working")
            assert time.monotonic() - stopped < 3
            assert owner.wait(5) == 0
            setup.wait_for(101)
    setup.check_truth()
