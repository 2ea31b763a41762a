"""A real Kafka for tests and for a developer's desk, without Docker: `LocalBroker`.

Needs Java 17 and, the first time, Maven; `python -m streamdedup.testing` starts one for playing.
"""

from streamdedup.testing.broker import LocalBroker
from streamdedup.testing.errors import BrokerFailed, BrokerUnavailable
from streamdedup.testing.kafka import Kafka, Record, unique_name

__all__ = [
    "BrokerFailed",
    "BrokerUnavailable",
    "Kafka",
    "LocalBroker",
    "Record",
    "unique_name",
]
