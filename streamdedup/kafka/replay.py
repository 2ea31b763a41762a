"""Replaying: dead letters go back to where they came from, each once, whatever crashes in between.

1. Fence whoever replays for this group at the moment, and end what it left open.
2. Read what was replayed before: the offsets of a group that nobody is a member of.
3. Read on from there to where the dead letters end now, some hundred at a time.
4. In one transaction: the letters as they came, and how far the replaying is.

It knows what a dead letter is, not what is wrong with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from streamdedup.config import KafkaConfig
from streamdedup.errors import KafkaFailed
from streamdedup.kafka.bounded import Call, close_within
from streamdedup.kafka.clients import (
    consumer,
    consumer_options,
    producer,
    transaction_options,
    transactional_id,
)
from streamdedup.kafka.follow import Follower
from streamdedup.kafka.letters import Letter, read_letter
from streamdedup.kafka.replayed import Replayed

_REQUEST_SECONDS = 10.0
_COMMIT_SECONDS = 60.0
_LOOK_SECONDS = 0.2
_CLOSE_SECONDS = 2.0
# Of one transaction.
_LETTERS = 500
_BYTES = 16 << 20
_SUFFIX = "-dlq-replay"


@dataclass(frozen=True)
class Choice:
    """Which letters; none named is all."""

    reasons: Sequence[str] = ()
    stages: Sequence[str] = ()
    limit: int | None = None
    again: bool = False  # also those that were replayed before

    def takes(self, letter: Letter) -> bool:
        """Whether this one is asked for."""
        return (not self.reasons or letter.reason in self.reasons) and (
            not self.stages or letter.stage in self.stages
        )


@dataclass
class Outcome:
    """What became of the letters so far."""

    sent: Counter[tuple[str, str]] = field(default_factory=Counter)  # by topic and kind
    before: int = 0  # asked for, but replayed before
    others: int = 0  # not asked for
    skipped: Counter[str] = field(default_factory=Counter)  # by the reason why they cannot be sent


class Replay:
    """One run; `topics` tells how many partitions every topic has."""

    def __init__(
        self,
        config: KafkaConfig,
        choice: Choice,
        topics: dict[str, int],
        *,
        dry_run: bool,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._choice = choice
        self._topics = topics
        self._check = check
        self._producer: Producer | None = None
        if not dry_run:
            options = transaction_options(config)
            options["transactional.id"] = transactional_id(config) + _SUFFIX
            self._producer = producer(options)
        group = consumer_options(config) | {"group.id": config.group + _SUFFIX}
        self._group: Consumer = consumer(group)
        self.outcome = Outcome()

    def run(self) -> None:
        """Until the end, the limit, or what `check` raises between two transactions."""
        if self._producer is not None:
            self._wait_for(partial(self._producer.init_transactions, _COMMIT_SECONDS))  # 1
        topic = self._config.dead_letters
        partitions = self._topics[topic]
        replayed = self._replayed(topic, partitions)  # 2
        again = self._choice.again
        starts = {place: 0 if again else each.base for place, each in replayed.items()}
        with Follower(self._config, topic, partitions, starts=starts) as letters:
            while not letters.at_end and not self._is_enough():
                self._check()
                chunk = self._chunk(letters, replayed)  # 3
                if self._producer is not None:
                    self._commit(self._producer, chunk, replayed)  # 4
                self.outcome.sent.update((letter.topic, letter.kind) for letter in chunk)

    def close(self) -> None:
        """Let go; a transaction that is still open is never seen."""
        close_within(_CLOSE_SECONDS, self._group.close)
        if self._producer is not None:
            self._producer.purge(blocking=False)
            close_within(_CLOSE_SECONDS, self._producer.close)

    def _is_enough(self, under_way: int = 0) -> bool:
        limit = self._choice.limit
        return limit is not None and self.outcome.sent.total() + under_way >= limit

    def _replayed(self, topic: str, partitions: int) -> dict[int, Replayed]:
        asked = [TopicPartition(topic, partition) for partition in range(partitions)]
        found = {}
        for place in self._group.committed(asked, timeout=_REQUEST_SECONDS):
            if place.error is not None:
                raise KafkaException(place.error)
            replayed = Replayed.read(place.offset, place.metadata)
            marks = self._group.get_watermark_offsets(place, timeout=_REQUEST_SECONDS)
            # Behind the end: the topic was made anew, and nothing of it was replayed yet.
            made_anew = marks is not None and replayed.base > marks[1]
            found[place.partition] = Replayed(0) if made_anew else replayed
        return found

    def _chunk(self, letters: Follower, replayed: dict[int, Replayed]) -> list[Letter]:
        """Letters to be sent; what was read besides is counted, and remembered in `replayed`."""
        chunk: list[Letter] = []
        size = 0
        until = monotonic() + _LOOK_SECONDS
        while len(chunk) < _LETTERS and size < _BYTES and monotonic() < until:
            # One by one: after the last of a limit nothing more may have been read.
            records = letters.read(1, _LOOK_SECONDS)
            for record in records:
                partition, offset = record.partition() or 0, record.offset() or 0
                if offset >= letters.ends[partition]:
                    continue  # came while we were at work, perhaps because of it
                letter = read_letter(record)
                if letter is not None and self._is_to_send(letter, offset, replayed[partition]):
                    chunk.append(letter)
                    size += letter.value_bytes
                elif letter is None:
                    self.outcome.skipped["not written by streamdedup"] += 1
            for partition, offset in letters.next_offsets.items():
                replayed[partition].read_to(min(offset, letters.ends[partition]))
            if self._is_enough(len(chunk)) or letters.at_end:
                break
        return chunk

    def _is_to_send(self, letter: Letter, offset: int, replayed: Replayed) -> bool:
        if not self._choice.takes(letter):
            self.outcome.others += 1
            replayed.pass_over(letter.kind, offset)
            return False
        if replayed.has(letter.kind, offset) and not self._choice.again:
            self.outcome.before += 1
            return False
        replayed.add(letter.kind, offset)
        if not letter.kept:
            self.outcome.skipped["value too large to be kept in the dead letter"] += 1
            return False
        if letter.topic not in self._topics:
            self.outcome.skipped[f"no topic {letter.topic} any more"] += 1
            return False
        return True

    def _commit(self, sender: Producer, chunk: list[Letter], replayed: dict[int, Replayed]) -> None:
        try:
            sender.begin_transaction()
            for letter in chunk:
                self._send(sender, letter)
            self._remember(sender, replayed)
            self._wait_for(partial(sender.commit_transaction, _COMMIT_SECONDS))
        except (KafkaException, BufferError) as error:
            reason = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            letters = f"{len(chunk):,} dead letter" + ("" if len(chunk) == 1 else "s")
            raise KafkaFailed(
                f"the last {letters} may not have been replayed: {reason}; "
                "run it again, it goes on where it stopped"
            ) from None

    def _send(self, sender: Producer, letter: Letter) -> None:
        # To the partition it came from, so that it stays in order with others of its key.  But with
        # a timestamp of today: retention would take one that is older away before it is judged.
        known = letter.partition < self._topics[letter.topic]
        sender.produce(
            letter.topic,
            letter.value,
            letter.key,
            letter.partition if known else -1,
            headers=letter.headers,
        )

    def _remember(self, sender: Producer, replayed: dict[int, Replayed]) -> None:
        topic = self._config.dead_letters
        places = [
            TopicPartition(topic, partition, each.base, metadata=each.metadata())
            for partition, each in replayed.items()
        ]
        generation = self._group.consumer_group_metadata()
        self._wait_for(
            partial(sender.send_offsets_to_transaction, places, generation, _COMMIT_SECONDS)
        )

    def _wait_for(self, call: Callable[[], object]) -> None:
        """For an answer of the broker; `check` may end the waiting."""
        attempt = Call(call)
        until = monotonic() + _COMMIT_SECONDS + _REQUEST_SECONDS
        while not attempt.ended(_LOOK_SECONDS):
            self._check()
            if monotonic() > until:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer from Kafka"))
        attempt.result()
