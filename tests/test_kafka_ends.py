"""Where partitions end: told by the broker, and not made up when it is silent."""

from __future__ import annotations

import time

from service import wait_until

from streamdedup.config import KafkaConfig
from streamdedup.kafka.clients import admin
from streamdedup.kafka.ends import Ends
from streamdedup.testing import LocalBroker, unique_name


def test_a_silent_broker_leaves_what_is_known_and_is_noticed(own_broker: LocalBroker) -> None:
    topic = unique_name("ends")
    own_broker.create_topic(topic, 1, {})
    ends = Ends(admin(KafkaConfig(bootstrap=own_broker.bootstrap)))

    def asked() -> bool:
        ends.ask([(topic, 0)])
        return ends.known == {(topic, 0): 0}

    wait_until(asked, "an answer")
    own_broker.freeze()
    until = time.monotonic() + 7  # longer than one question lasts
    while time.monotonic() < until:
        assert asked(), "what is known is kept"
        time.sleep(0.2)
    assert ends.silent_seconds > 5
    own_broker.thaw()
    wait_until(lambda: asked() and ends.silent_seconds < 1, "another answer")
