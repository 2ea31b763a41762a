"""The log: a line on standard error for every event that matters, for people or for machines.

It knows no article's text and shows no setting but names, so nothing of them can get into a log.
What is repeated is said now and then, with the number of times that it was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Literal, TextIO

import msgspec

from streamdedup.cli.terminal import printable
from streamdedup.kafka.report import (
    BatchReport,
    CommitFailure,
    Listener,
    Rebalance,
    RestoreProgress,
    Role,
)

Format = Literal["human", "json"]
Level = Literal["info", "warning", "error"]
Field = str | int | float

REPEAT_SECONDS = 10.0
LINE_CHARACTERS = 1_000
_MOST_SUBJECTS = 1_000
_DOING = {
    Role.CONNECTING: "waits for a broker to answer",
    Role.STANDBY: "follows the changelog, to take over when it is its turn",
    Role.RESTORING: "owns the index, reads what it lacks of the changelog",
    Role.WORKING: "owns the index, judges",
    Role.BLOCKED: "cannot use its disk, tries again by itself",
    Role.STOPPED: "has left",
}


@dataclass
class _Said:
    at: float
    left_out: int = 0


class EventLog(Listener):
    """Writes whole lines; safe to use from several threads."""

    def __init__(
        self,
        stream: TextIO,
        format: Format,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._stream = stream
        self._format = format
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = Lock()
        self._said: dict[str, _Said] = {}
        self._role: Role | None = None

    def event(self, event: str, text: str, level: Level = "info", **fields: Field) -> None:
        """One event.  `text` is for people, `event` and the fields are for machines."""
        now = datetime.fromtimestamp(self._wall_clock(), UTC).isoformat(timespec="milliseconds")
        now = now.replace("+00:00", "Z")
        if self._format == "json":
            line = {"time": now, "level": level, "event": event, "message": text, **fields}
            self._write(msgspec.json.encode(line).decode() + "\n")
            return
        mark = "" if level == "info" else f"{level}: "
        lines = (f"{now} {mark}{printable(part, LINE_CHARACTERS)}\n" for part in text.splitlines())
        self._write("".join(lines))

    @property
    def is_for_machines(self) -> bool:
        """Whether every line must be an object."""
        return self._format == "json"

    def warning(
        self, event: str, text: str, subject: str | None = None, times: int = 1, **fields: Field
    ) -> None:
        """What happened so many times, unless its subject came up within the last seconds."""
        subject = f"{event} {text}" if subject is None else subject
        now = self._clock()
        with self._lock:
            said = self._said.get(subject)
            if said is not None and now - said.at < REPEAT_SECONDS:
                said.left_out += times
                return
            if said is not None and said.left_out:
                text += f" (and {said.left_out:,} more like it)"
                fields["suppressed"] = said.left_out
            if len(self._said) >= _MOST_SUBJECTS:
                self._said.clear()
            self._said[subject] = _Said(now, times - 1)
        self.event(event, text, "warning", **fields)

    # -- what the service says ---------------------------------------------------------------

    def on_role(self, role: Role) -> None:
        """The instance does something else now; told again of the same, nothing is new."""
        if role is self._role:
            return
        self._role = role
        self.event("role", f"role: {role} ({_DOING[role]})", role=str(role))

    def on_batch(self, report: BatchReport) -> None:
        """Only what was refused: of every kind the first, for there may be very many."""
        firsts = {(letter.stage, letter.reason): letter for letter in reversed(report.refused)}
        for kind, letter in firsts.items():
            where = f"{letter.topic}[{letter.partition}] offset {letter.offset}"
            named = f", article {letter.id}" if letter.id else ""
            fields: dict[str, Field] = {"id": letter.id} if letter.id else {}
            self.warning(
                "dead_letter",
                f"dead letter: {where}{named}: {letter.reason} ({letter.stage})",
                f"dead_letter {letter.stage} {letter.reason}",
                report.dead_letters[kind],
                topic=letter.topic,
                partition=letter.partition,
                offset=letter.offset,
                stage=letter.stage,
                reason=letter.reason,
                **fields,
            )

    def on_commit_failure(self, failure: CommitFailure) -> None:
        """What it means is said as trouble; machines want the word."""
        if self._format == "json":
            self.event("commit_failure", f"a transaction {failure}", "warning", result=str(failure))

    def on_rebalance(self, rebalance: Rebalance) -> None:
        """A change of roles follows, which people are told."""
        if self._format == "json":
            self.event("rebalance", str(rebalance), kind=str(rebalance))

    def on_restore(self, progress: RestoreProgress) -> None:
        """How far it is."""
        rate = progress.records / progress.seconds if progress.seconds else 0.0
        self.event(
            "restore",
            f"restored {progress.records:,} articles in {progress.seconds:.1f} s "
            f"({rate:,.0f}/s), "
            f"changelog offset {progress.next_offset:,} of {progress.end_offset:,}",
            records=progress.records,
            seconds=round(progress.seconds, 3),
            offset=progress.next_offset,
            end_offset=progress.end_offset,
        )

    def on_event(self, text: str, kind: str = "event", **about: str) -> None:
        """Something happened."""
        self.event(kind, text, "info", **about)

    def on_trouble(self, text: str, kind: str = "trouble", **about: str) -> None:
        """Something went wrong; the same is not said again within some seconds."""
        self.warning(kind, text, None, 1, **about)

    def on_connection(self, text: str) -> None:
        """librdkafka says this for every broker and every attempt, in ever new words."""
        text = text.partition(" (after")[0]
        self.warning("connection", f"connection to Kafka: {text}", "connection")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def chosen_format(setting: Literal["auto", "human", "json"], stream: TextIO) -> Format:
    """`auto` is for people on a terminal and for machines elsewhere."""
    if setting == "auto":
        return "human" if stream.isatty() else "json"
    return setting
