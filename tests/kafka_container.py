"""The same Kafka in Docker, where a Docker engine answers.

The image is Apache's own, of the version that the local broker has; it takes broker settings from
the environment.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamdedup.testing.ports import free_port
from streamdedup.testing.settings import SETTINGS

IMAGE = "apache/kafka:4.1.0"
START_TIMEOUT_SECONDS = 90.0


def docker_answers() -> bool:
    """Whether there is a Docker engine; a matter of milliseconds where there is none."""
    try:
        importlib.import_module("docker").from_env(timeout=2).ping()
    except Exception:  # what docker and requests raise has no common root
        return False
    return True


@contextmanager
def kafka_container() -> Iterator[str]:
    """Start it, give its address, stop it."""
    container = importlib.import_module("testcontainers.core.container").DockerContainer(IMAGE)
    # Kafka must know by which address it is reached, so the port is chosen here.
    port = free_port()
    bootstrap = f"{container.get_docker_client().host()}:{port}"
    for name, value in {**node(bootstrap), **SETTINGS}.items():
        container.with_env(variable(name), value)
    container.with_bind_ports(9092, port)
    with container:
        wait_until_ready(bootstrap)
        yield bootstrap


def node(bootstrap: str) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
        "advertised.listeners": f"PLAINTEXT://{bootstrap}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }


def variable(setting: str) -> str:
    """A broker setting as the image spells it."""
    return "KAFKA_" + setting.replace("_", "__").replace(".", "_").upper()


def wait_until_ready(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    until = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            if admin.list_topics(timeout=2).brokers:
                return
        except KafkaException:
            if time.monotonic() > until:
                raise
