"""The broker stops, dies, hangs or is not there: no crash, no stack trace, and the truth holds."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from service import Setup, feed, running, undisturbed, wait_until

from streamdedup.testing import Kafka, LocalBroker
from streamdedup.testing.ports import free_port

SESSION_SECONDS = 2  # `service.IMPATIENT`
BATCHES_OF_25 = {"STREAMDEDUP_KAFKA__BATCH_ARTICLES": "25"}
# The connection is tried again at once, so that these tests measure the service and not a pause.
IMPATIENT = {"STREAMDEDUP_KAFKA__CLIENT__RECONNECT_BACKOFF_MAX_MS": "500"}


def test_a_broker_that_stops_dies_and_hangs_is_waited_for(
    own_broker: LocalBroker, tmp_path: Path
) -> None:
    messages = feed(600)
    hasty = {"STREAMDEDUP_KAFKA__CLIENT__TRANSACTION_TIMEOUT_MS": "5000"}
    setup = Setup(own_broker, extra={**BATCHES_OF_25, **IMPATIENT, **hasty})
    setup.produce(messages[:100])
    with running(setup, tmp_path) as instance:
        setup.wait_for(100)

        own_broker.stop()
        time.sleep(20)
        own_broker.start()
        setup.produce(messages[100:200])
        # The group waits as long as a session for the member that it remembers.
        setup.wait_for(200, SESSION_SECONDS + 8)

        setup.produce(messages[200:500])
        own_broker.kill()  # somewhere in these twelve transactions
        own_broker.start()
        setup.wait_for(500)

        setup.produce(messages[500:])
        own_broker.freeze()
        time.sleep(8)  # longer than a transaction may last
        own_broker.thaw()
        setup.wait_for(600)

        assert instance.process.poll() is None
        assert instance.stop() == 0
        assert "Traceback" not in instance.log
    setup.check_truth()
    assert setup.verdicts() == undisturbed(setup, len(messages))


def test_an_instance_leaves_within_five_seconds_of_sigterm_though_the_broker_hangs(
    own_broker: LocalBroker, tmp_path: Path
) -> None:
    setup = Setup(own_broker, extra=BATCHES_OF_25)
    with running(setup, tmp_path) as instance:
        instance.wait_for_log("working")
        setup.produce(feed(300))
        own_broker.freeze()
        try:
            instance.send(signal.SIGTERM)
            instance.wait(5)
        finally:
            own_broker.thaw()
    with running(setup, tmp_path) as instance:
        setup.wait_for(300)
    setup.check_truth()


def test_a_second_signal_ends_it_at_once(own_broker: LocalBroker, tmp_path: Path) -> None:
    setup = Setup(own_broker)
    with running(setup, tmp_path) as instance:
        instance.wait_for_log("working")
        setup.produce(feed(300))
        own_broker.freeze()
        try:
            instance.send(signal.SIGTERM)
            time.sleep(0.2)
            instance.send(signal.SIGINT)
            assert instance.wait(1) == 130
        finally:
            own_broker.thaw()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_quiet_instance_leaves_cleanly(
    broker: Kafka, tmp_path: Path, number: signal.Signals
) -> None:
    with running(Setup(broker), tmp_path) as instance:
        instance.wait_for_log("working")
        instance.send(number)
        assert instance.wait(5) == 0
        assert "role: stopped" in instance.log.splitlines()[-1]


def test_a_broker_that_is_not_there_is_said_within_seconds_and_waited_for(
    own_broker: LocalBroker, tmp_path: Path
) -> None:
    setup = Setup(own_broker, extra=IMPATIENT)
    own_broker.stop()
    with running(setup, tmp_path) as instance:
        instance.wait_for_log(f"cannot reach Kafka at {own_broker.bootstrap}", 6)
        own_broker.start()
        instance.wait_for_log("working")
        assert instance.stop() == 0
        assert "Traceback" not in instance.log


def test_waiting_for_a_broker_ends_with_sigterm(broker: Kafka, tmp_path: Path) -> None:
    nowhere = {"STREAMDEDUP_KAFKA__BOOTSTRAP": f"127.0.0.1:{free_port()}"}
    with running(Setup(broker), tmp_path, **nowhere) as instance:
        instance.wait_for_log("cannot reach Kafka", 6)
        started = time.monotonic()
        assert instance.stop() == 0
        assert time.monotonic() - started < 5
        wait_until(lambda: "stopped" in instance.log, "its last word", 1)
