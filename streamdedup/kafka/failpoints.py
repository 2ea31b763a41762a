"""Places where a test may end the process: between any two steps of the protocol.

`STREAMDEDUP_FAILPOINT=name[:count[:action]]` acts when the name is reached for the count-th time:
`kill` (SIGKILL, the default), `freeze` (SIGSTOP), `hang` (only the loop stands still) or `error` (a
Kafka error that aborts).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException

from streamdedup.errors import ConfigError

VARIABLE = "STREAMDEDUP_FAILPOINT"
# In the order in which a batch reaches them; those up to `restored` come before the first.
FAILPOINTS = (
    "assigned",
    "fenced-others",
    "restored",
    "gathered",
    "decided",
    "begun",
    "verdicts-produced",
    "changelog-produced",
    "offsets-sent",
    "committed",
    "applied",
)
ACTIONS = ("kill", "freeze", "hang", "error")


class Failpoints:
    """At most one failpoint that is set; `reach` costs nothing when none is."""

    def __init__(self, setting: str = "") -> None:
        name, _, rest = setting.partition(":")
        count, _, action = rest.partition(":")
        self._action = action or "kill"
        known = not setting or (name in FAILPOINTS and self._action in ACTIONS)
        if not known or not (count or "1").isdigit():
            raise ConfigError(
                f"{VARIABLE}={setting!r}: name[:count[:action]] with a name of "
                f"{', '.join(FAILPOINTS)} and an action of {', '.join(ACTIONS)}"
            )
        self._name = name
        self._left = int(count or 1)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Failpoints:
        """What the environment sets."""
        return cls(environ.get(VARIABLE, ""))

    def acts_at(self, name: str) -> bool:
        """Whether the next time that the process is at this point is the one."""
        return name == self._name and self._left == 1

    def reach(self, name: str) -> None:
        """The process is at this point now."""
        if name != self._name:
            return
        self._left -= 1
        if self._left != 0:
            return
        if self._action == "error":
            raise KafkaException(KafkaError(KafkaError._FAIL, "failpoint", False, False, True))
        while self._action == "hang":
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGSTOP if self._action == "freeze" else signal.SIGKILL)
