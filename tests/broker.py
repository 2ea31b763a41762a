"""The Kafka that tests run against, and an honest count of what was not proven without one.

In order of choice: the broker that `STREAMDEDUP_TEST_BOOTSTRAP` names, a container where a Docker
engine answers, a `LocalBroker`.  Tests that stop, kill or freeze a broker always get a local one of
their own.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from streamdedup.testing import BrokerUnavailable, Kafka, LocalBroker
from streamdedup.testing.settings import SETTINGS

BOOTSTRAP_VARIABLE = "STREAMDEDUP_TEST_BOOTSTRAP"
FIXTURES = {"broker", "own_broker"}
NO_BROKER = "no Kafka broker: "
IMAGE = "confluentinc/cp-kafka:8.1.0"  # is Apache Kafka 4.1


@pytest.fixture(scope="session")
def broker() -> Iterator[Kafka]:
    """One broker for all tests of a process; each test makes its own topics in it."""
    named = os.environ.get(BOOTSTRAP_VARIABLE)
    if named:
        yield Kafka(named)
        return
    container = started_container()
    if container is not None:
        try:
            yield Kafka(container.get_bootstrap_server())
        finally:
            container.stop()
        return
    with local_broker() as local:
        yield local


@pytest.fixture
def own_broker() -> Iterator[LocalBroker]:
    """A broker that a test may stop, kill and freeze."""
    with local_broker() as local:
        yield local


def local_broker() -> LocalBroker:
    """A started broker, or the test is skipped."""
    broker = LocalBroker()
    try:
        broker.start()
    except BrokerUnavailable as error:
        broker.close()
        pytest.skip(NO_BROKER + str(error))
    except BaseException:
        broker.close()
        raise
    return broker


def started_container() -> Any:
    """A broker in Docker; None where no engine answers or the image cannot be had."""
    try:
        docker = importlib.import_module("docker")
        docker.from_env(timeout=2).ping()
        container = container_class()(IMAGE).with_kraft()
        for name, value in container_environment(SETTINGS).items():
            container.with_env(name, value)
        return container.start(timeout=120)
    except Exception as error:  # docker, requests and testcontainers have no common root
        if "DOCKER_HOST" in os.environ:
            print(f"no Kafka in Docker: {error}")
        return None


def container_class() -> type:
    """testcontainers moved it."""
    try:
        module = importlib.import_module("testcontainers.community.kafka")
    except ImportError:
        module = importlib.import_module("testcontainers.kafka")
    return module.KafkaContainer


def container_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Broker settings in the spelling of Kafka's images."""
    return {"KAFKA_" + name.upper().replace(".", "_"): value for name, value in settings.items()}


def mark_kafka_tests(items: Sequence[pytest.Item]) -> None:
    """Whoever asks for a broker is marked `kafka`; nobody can forget it."""
    for item in items:
        if FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("kafka")


def report_unproven(terminal: pytest.TerminalReporter) -> None:
    """Say at the end of a run how many tests were skipped for want of a broker, and why."""
    reasons = [
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminal.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and NO_BROKER in report.longrepr[2]
    ]
    if reasons:
        count = "1 promise" if len(reasons) == 1 else f"{len(reasons)} promises"
        terminal.section("Kafka", sep="=", yellow=True, bold=True)
        terminal.line(f"{count} about Kafka went unproven: {reasons[0]}", yellow=True)
