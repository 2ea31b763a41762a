"""How a local broker is set: one node that is broker and controller, small, quick and strict.

Only what differs from Kafka's defaults is here.  What a service must cope with in production
(session timeouts, the transaction limit, message sizes) is left as Kafka has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SETTINGS: Mapping[str, str] = {
    # A topic that nobody created is an error that tests must see.
    "auto.create.topics.enable": "false",
    # The first member of a group need not wait for others.
    "group.initial.rebalance.delay.ms": "0",
    # Tests that wait for a dead member may ask for less than the six seconds of a default broker.
    "group.min.session.timeout.ms": "1000",
    # One broker holds everything; every partition of an internal topic costs a directory.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # Transactions of the dead end when their timeout says so, not up to ten seconds later.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # After a kill the controller takes its own broker for alive for so long (9 s by default).
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # A test can wait for retention: Kafka looks every five minutes, and first after 30 s.
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "offsets.retention.check.interval.ms": "1000",
    # Half of a small heap by default.
    "log.cleaner.dedupe.buffer.size": "8388608",
}
# A broker for tests is nobody else's business.
HOST = "127.0.0.1"


def server_properties(
    directory: Path, port: int, controller_port: int, extra: Mapping[str, str]
) -> str:
    """The text of the configuration file of a broker whose data is below the directory."""
    node = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(directory / "data"),
    }
    return "".join(f"{name}={value}\n" for name, value in {**node, **SETTINGS, **extra}.items())
