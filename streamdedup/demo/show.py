"""The play: the service in one thread, the feed in another, and what they say in the caller's.

The Kafka between them may be any; the feed never runs ahead of the answers.  What it looks like is
the stage's business.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import Protocol, Self

import msgspec
from confluent_kafka import Message

from streamdedup.config import Config
from streamdedup.demo.feed import Feed, Line
from streamdedup.demo.flow import Flow, Sent
from streamdedup.demo.tally import Tally
from streamdedup.errors import KafkaFailed
from streamdedup.kafka.delivery import Delivery
from streamdedup.kafka.failpoints import Failpoints
from streamdedup.kafka.follow import Follower
from streamdedup.kafka.letters import Letter, read_letter
from streamdedup.kafka.report import Listener, Role
from streamdedup.kafka.sender import Sender
from streamdedup.kafka.service import Service
from streamdedup.observe.listeners import Listeners
from streamdedup.verdict import Verdict, decode_verdict

# A mock cluster keeps about five megabytes of a partition.
_UNDER_WAY_BYTES = 2 << 20
_READY_SECONDS = 60.0
_LOOK_SECONDS = 0.02
_SLICE_SECONDS = 0.1
_LEAVE_SECONDS = 6.0
_SILENCE_SECONDS = 60.0
_MOST = 1_000


@dataclass(frozen=True)
class Script:
    """How much is played, and how fast."""

    articles: int | None  # lines of the feed, None for no end
    shown: int | None  # how many of them one by one, None for all
    rate: float  # lines a second while they are shown one by one; 0 for no limit
    seconds: float | None = None


class Stage(Protocol):
    """What a person sees."""

    def on_verdict(self, verdict: Verdict, line: Line) -> None:
        """One of those that are shown one by one."""

    def on_dead_letter(self, letter: Letter) -> None:
        """The same for a line that cannot be judged."""

    def on_progress(self, answers: int) -> None:
        """The others, from time to time."""

    def on_trouble(self, text: str) -> None:
        """Something that the service has to say."""


class Show:
    """One performance; use it as a context manager, `play` once."""

    def __init__(
        self,
        config: Config,
        topic: str,
        delivery: Delivery,
        feed: Feed,
        script: Script,
        stage: Stage,
        watcher: Listener,
    ) -> None:
        self.tally = Tally()
        self.shown_seconds = 0.0
        self.fast_seconds = 0.0
        self.fast_answers = 0
        self._config = config
        self._topic = topic
        self._lines = feed.lines()
        self._script = script
        self._stage = stage
        self._stop_service, self._stop_feed, self._over = Event(), Event(), Event()
        self._flow = Flow(_UNDER_WAY_BYTES)
        ears = _Ears(stage)
        self._ready = ears.ready
        service = Service(
            config,
            Listeners(ears, watcher),
            self._stop_service,
            Failpoints(),
            create_topics=True,
            delivery=delivery,
        )
        self._service = _Background("service", service.run)
        self._sending = _Background("feed", self._send)

    def play(self, partitions: Callable[[], dict[str, int]], check: Callable[[], None]) -> None:
        """To the end of the script; `check` may raise between two looks at the answers."""
        self._service.start()
        self._wait_for_the_service(check)
        kafka, found = self._config.kafka, partitions()
        with ExitStack() as stack:
            verdicts, letters = (
                stack.enter_context(Follower(kafka, topic, found[topic]))
                for topic in (kafka.verdicts, kafka.dead_letters)
            )
            self._sending.start()
            heard = began = monotonic()
            while self._sending.is_running or not self._flow.is_empty:
                check()
                now = monotonic()
                if self._script.seconds is not None and now - began > self._script.seconds:
                    self._stop_feed.set()
                answers = self._look(verdicts, letters)
                heard = now if answers or self._flow.is_empty else heard
                self._service.check()
                self._sending.check()
                if now - heard > _SILENCE_SECONDS:
                    raise KafkaFailed(f"no verdict for {_SILENCE_SECONDS:.0f} seconds")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop_feed.set()
        self._over.set()
        self._sending.join(_LEAVE_SECONDS)
        self._stop_service.set()
        self._service.join(_LEAVE_SECONDS)

    # -- the answers ---------------------------------------------------------------------------

    def _wait_for_the_service(self, check: Callable[[], None]) -> None:
        until = monotonic() + _READY_SECONDS
        while not self._ready.wait(_SLICE_SECONDS):
            check()
            self._service.check()
            if monotonic() > until:
                raise KafkaFailed(f"the service was not ready after {_READY_SECONDS:.0f} seconds")

    def _look(self, verdicts: Follower, letters: Follower) -> int:
        before = self.tally.answers
        for record in letters.read(_MOST, 0):
            self._dead_letter(record)
        fast = 0
        for record in verdicts.read(_MOST, _LOOK_SECONDS):
            fast += self._verdict(record)
        if fast:
            self.fast_answers += fast
            self._stage.on_progress(self.tally.answers)
        return self.tally.answers - before

    def _verdict(self, record: Message) -> bool:
        """True if it is not one that is shown."""
        sent = self._flow.answered(record.key() or b"")
        if sent is None:
            return False  # somebody else's article
        try:
            verdict = decode_verdict(record.value() or b"")
        except msgspec.DecodeError:
            return False
        self.tally.add(verdict, sent.line)
        if sent.shown:
            self._stage.on_verdict(verdict, sent.line)
        return not sent.shown

    def _dead_letter(self, record: Message) -> None:
        letter = read_letter(record)
        sent = self._flow.answered(record.key() or b"")
        if letter is None or sent is None:
            return
        self.tally.add_dead(letter.reason)
        if sent.shown:
            self._stage.on_dead_letter(letter)

    # -- the feed, in a thread of its own ------------------------------------------------------

    def _send(self) -> None:
        sender = Sender[str](self._config.kafka, self._topic, self._not_delivered)
        began = monotonic()
        shown_end = began
        for number, line in enumerate(self._lines):
            if number == self._script.articles or self._stop_feed.is_set():
                break
            shown = self._script.shown is None or number < self._script.shown
            if shown and self._script.rate:
                self._stop_feed.wait(max(0.0, began + number / self._script.rate - monotonic()))
            elif number == self._script.shown:
                shown_end = self._drained(sender)
            if not self._hand_over(sender, Sent(line, shown)):
                break
        end = self._drained(sender)
        if shown_end > began:
            self.shown_seconds, self.fast_seconds = shown_end - began, end - shown_end
        else:
            self.shown_seconds = end - began

    def _hand_over(self, sender: Sender[str], sent: Sent) -> bool:
        while not self._flow.add(sent, _SLICE_SECONDS):
            if self._stop_feed.is_set():
                return False
            sender.wait(0)
        line = sent.line
        # One partition, so that the articles are judged in the order of the feed.
        while not sender.offer(line.title, line.content, line.key, 0):
            if self._stop_feed.is_set():
                return False
        return True

    def _drained(self, sender: Sender[str]) -> float:
        """When the last of what was sent has been answered."""
        while not self._flow.is_empty and not self._over.is_set():
            sender.wait(_LOOK_SECONDS)
            self._over.wait(_LOOK_SECONDS)
        return monotonic()

    def _not_delivered(self, title: str, reason: str) -> None:
        raise KafkaFailed(f"an article did not arrive: {reason}")


class _Ears(Listener):
    """Hears when the service begins to work, and passes troubles on."""

    def __init__(self, stage: Stage) -> None:
        self.ready = Event()
        self._stage = stage

    def on_role(self, role: Role) -> None:
        if role in (Role.WORKING, Role.STANDBY):
            self.ready.set()

    def on_trouble(self, text: str, kind: str = "trouble", **about: str) -> None:
        self._stage.on_trouble(text)


class _Background:
    """A thread whose error is raised where it is asked for."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name=name, daemon=True)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> None:
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error
