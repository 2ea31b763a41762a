"""Where partitions end, asked of the broker in passing: nobody waits for the answer.

A consumer's own knowledge will not do: to look at its cached offsets can stop the process for good
(a lock taken while Python's is held), and its statistics pile up while nobody polls it.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from time import monotonic
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

_REQUEST_SECONDS = 5.0
_Answers = dict[TopicPartition, "Future[Any]"]  # of an object with an `offset`


class Ends:
    """The ends of committed records, as they were a moment ago; one question is out at a time."""

    def __init__(self, admin: AdminClient) -> None:
        self.known: dict[tuple[str, int], int] = {}
        self._admin = admin
        self._asked: _Answers = {}
        self._answered = monotonic()

    @property
    def silent_seconds(self) -> float:
        """Since the broker last answered; some of them pass between two questions."""
        return monotonic() - self._answered

    def ask(self, places: Iterable[tuple[str, int]]) -> None:
        """Take the last answers, and ask again."""
        for place, answer in self._asked.items():
            if not answer.done():
                return
            # A question that nobody answered in time may end without an error, and with no offset.
            if answer.exception() is None and (end := answer.result().offset) >= 0:
                self.known[place.topic, place.partition] = end
                self._answered = monotonic()
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(*place): latest for place in places}
        self._asked = {}
        if not wanted:
            return
        try:
            self._asked = self._admin.list_offsets(
                wanted,
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=_REQUEST_SECONDS,
            )
        except KafkaException:
            return  # whoever needs the broker will say so
