"""The Kafka that tests run against, and an honest count of what was not proven without one.

In order of choice: the broker that `STREAMDEDUP_TEST_BOOTSTRAP` names, a container where a Docker
engine answers, a `LocalBroker`.  Tests that stop, kill or freeze a broker always get a local one of
their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from kafka_container import docker_answers, kafka_container

from streamdedup.testing import BrokerUnavailable, Kafka, LocalBroker
from streamdedup.testing.jars import jars
from streamdedup.testing.java import java

BOOTSTRAP_VARIABLE = "STREAMDEDUP_TEST_BOOTSTRAP"
FIXTURES = {"broker", "own_broker", "local_kafka"}
NO_BROKER = "no Kafka broker: "
NO_MONITORING = "no Prometheus: "


@pytest.fixture(scope="session")
def broker() -> Iterator[Kafka]:
    """One broker for all tests of a process; each test makes its own topics in it."""
    named = os.environ.get(BOOTSTRAP_VARIABLE)
    if named:
        yield Kafka(named)
        return
    if docker_answers():
        with kafka_container() as bootstrap:
            yield Kafka(bootstrap)
        return
    with local_broker() as local:
        yield local


@pytest.fixture
def own_broker() -> Iterator[LocalBroker]:
    """A broker that a test may stop, kill and freeze."""
    with local_broker() as local:
        yield local


@pytest.fixture(scope="session")
def local_kafka() -> None:
    """For tests that start brokers themselves: skips them where that is not possible."""
    with skipped_without_broker():
        java()
        jars()


def local_broker() -> LocalBroker:
    """A started broker, or the test is skipped."""
    with skipped_without_broker():
        return LocalBroker().__enter__()


@contextmanager
def skipped_without_broker() -> Iterator[None]:
    try:
        yield
    except BrokerUnavailable as error:
        pytest.skip(NO_BROKER + str(error))


def mark_kafka_tests(items: Sequence[pytest.Item]) -> None:
    """Whoever asks for a broker is marked `kafka`; nobody can forget it."""
    for item in items:
        if FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("kafka")


def report_unproven(terminal: pytest.TerminalReporter) -> None:
    """Say at the end of a run how many tests were skipped for want of a server, and why."""
    for about, beginning in (("Kafka", NO_BROKER), ("monitoring", NO_MONITORING)):
        reasons = [
            report.longrepr[2].removeprefix("Skipped: ")
            for report in terminal.stats.get("skipped", [])
            if isinstance(report.longrepr, tuple) and beginning in report.longrepr[2]
        ]
        if reasons:
            count = "1 promise" if len(reasons) == 1 else f"{len(reasons)} promises"
            terminal.section(about, sep="=", yellow=True, bold=True)
            terminal.line(f"{count} about {about} went unproven: {reasons[0]}", yellow=True)
