"""What a judged batch puts into the topics: verdicts, unique articles, dead letters, changelog.

Verdicts and unique articles go to the partition that the article came from (modulo the topic's
count), so the order of an input partition is kept and equal topics stay joinable.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from streamdedup.config import KafkaConfig
from streamdedup.engine import Decision
from streamdedup.kafka.changelog import Changelog
from streamdedup.kafka.dead_letters import (
    CUT,
    STAGE_JUDGE,
    DeadLetter,
    Header,
    dead_letter_headers,
    headers_of,
)
from streamdedup.kafka.intake import Prepared
from streamdedup.kafka.report import Place
from streamdedup.kafka.topics import OutputTopics
from streamdedup.verdict import Rejection, Source, Verdict, encode_verdict

STORY = "streamdedup-story"
VERDICT_REASON = "streamdedup-reason"

_MESSAGE_OVERHEAD_BYTES = 1_024


class Judged(NamedTuple):
    """An article that got a verdict, the record it came in, and what the store keeps of it."""

    record: Message
    source: Source
    verdict: Verdict
    stored: bytes


@dataclass(frozen=True)
class JudgedBatch:
    """A batch with everything that is to be said about it; nothing has been said yet."""

    prepared: Prepared
    decision: Decision
    judged: list[Judged]
    dead: list[DeadLetter]  # in order of their places

    @property
    def verdicts(self) -> Counter[tuple[str, str]]:
        """How many of each verdict and reason."""
        return Counter((one.verdict.verdict, one.verdict.reason) for one in self.judged)

    @property
    def positions(self) -> dict[Place, int]:
        """By input partition, the offset to go on from."""
        return self.prepared.arrivals.positions


def judged_batch(prepared: Prepared, decision: Decision) -> JudgedBatch:
    """Bring together what was decided and where it came from."""
    stored = dict(zip(decision.entering.tolist(), decision.batch.records, strict=True))
    records, sources = prepared.arrivals.records, prepared.arrivals.sources
    judged: list[Judged] = []
    dead = list(prepared.dead)
    for article, outcome in enumerate(decision.outcomes):
        place = prepared.places[article]
        if isinstance(outcome, Rejection):
            dead.append(DeadLetter(place, STAGE_JUDGE, outcome.reason, outcome.detail))
        else:
            kept = stored.get(article, b"")
            judged.append(Judged(records[place], sources[place], outcome, kept))
    dead.sort()
    return JudgedBatch(prepared, decision, judged, dead)


class LastWritten:
    """The changelog record that ends a transaction; its offset is known once it is delivered."""

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.offset: int | None = None

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Called by the producer; a failure makes the commit fail, so it is not told here."""
        if error is None:
            self.offset = message.offset()


class Outputs:
    """Produces into the open transaction of one producer."""

    def __init__(
        self, producer: Producer, config: KafkaConfig, topics: OutputTopics, changelog: Changelog
    ) -> None:
        self._producer = producer
        self._config = config
        self._topics = topics
        self._changelog = changelog

    def verdicts(self, batch: JudgedBatch) -> None:
        """A verdict an article; unique ones also as they came; dead letters."""
        produce, topic = self._producer.produce, self._config.verdicts
        partitions = self._topics.verdicts
        pass_through = bool(self._config.unique)
        for record, source, verdict, _ in batch.judged:
            value = encode_verdict(verdict, source)
            produce(topic, value, record.key(), source.partition % partitions)
            if pass_through and verdict.verdict == "unique":
                self._unique(record, verdict)
        for letter in batch.dead:
            self._dead_letter(batch.prepared.arrivals.records[letter.place], letter)

    def changelog(self, batch: JudgedBatch) -> LastWritten | None:
        """A record an article, in the order in which they were judged."""
        produce, topic, encode = (
            self._producer.produce,
            self._config.changelog,
            self._changelog.encode,
        )
        last = len(batch.judged) - 1
        for number, (_, source, verdict, stored) in enumerate(batch.judged):
            value = encode(source, verdict, stored, first=number == 0)
            if number == last:
                written = LastWritten(value)
                produce(topic, value, None, 0, written.delivered)
                return written
            produce(topic, value, None, 0)
        return None

    def _unique(self, record: Message, verdict: Verdict) -> None:
        headers: list[Header] = [
            *headers_of(record),
            (STORY, verdict.story.encode("utf-8", "surrogatepass")),
            (VERDICT_REASON, verdict.reason),
        ]
        self._producer.produce(
            self._config.unique,
            record.value(),
            record.key(),
            (record.partition() or 0) % self._topics.unique,
            timestamp=max(record.timestamp()[1], 0),
            headers=headers,
        )

    def _dead_letter(self, record: Message, letter: DeadLetter) -> None:
        headers = dead_letter_headers(record, letter)
        value = record.value()
        if value is not None and len(value) > self._topics.dead_letter_bytes - _room(headers):
            headers.append((CUT, str(len(value))))
            value = None
        self._producer.produce(
            self._config.dead_letters,
            value,
            record.key(),
            (record.partition() or 0) % self._topics.dead_letters,
            headers=headers,
        )


def _room(headers: list[Header]) -> int:
    return _MESSAGE_OVERHEAD_BYTES + sum(len(key) + len(value or b"") for key, value in headers)
