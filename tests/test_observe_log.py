"""The log: lines for people and for machines, repetitions counted, nothing of an article."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamdedup.engine import Found
from streamdedup.kafka.report import BatchReport, Refused, RestoreProgress, Role, StageSeconds
from streamdedup.observe.log import REPEAT_SECONDS, EventLog, Format, chosen_format

NOTHING = Found(np.zeros(0, np.int64), 0, np.zeros(0), 0)


@dataclass
class Paper:
    """A log and what stands in it."""

    format: Format
    now: float = 0.0
    out: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.log = EventLog(
            self.out, self.format, clock=lambda: self.now, wall_clock=lambda: 1_700_000_000.25
        )

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


def refused(letters: list[Refused], counts: Mapping[tuple[str, str], int]) -> BatchReport:
    stamps = np.zeros(0, np.int64)
    return BatchReport(9, 9, {}, counts, letters, NOTHING, None, stamps, {}, StageSeconds())


def test_people_get_the_time_and_the_words() -> None:
    paper = Paper("human")
    paper.log.on_role(Role.WORKING)
    paper.log.on_trouble("the disk is full\nvery full")
    assert paper.lines == [
        "2023-11-14T22:13:20.250Z role: working (owns the index, judges)",
        "2023-11-14T22:13:20.250Z warning: the disk is full",
        "2023-11-14T22:13:20.250Z warning: very full",
    ]


def test_what_the_instance_does_is_said_when_it_changes() -> None:
    paper = Paper("human")
    for role in (Role.BLOCKED, Role.BLOCKED, Role.WORKING, Role.BLOCKED):
        paper.log.on_role(role)
    assert [line.split()[2] for line in paper.lines] == ["blocked", "working", "blocked"]


def test_every_role_is_explained_to_people() -> None:
    paper = Paper("human")
    for role in Role:
        paper.log.on_role(role)
    assert all(re.search(r"Z role: [a-z]+ \(.{8,}\)$", line) for line in paper.lines)
    assert len(paper.lines) == len(Role)


def test_machines_get_one_object_a_line_with_the_same_keys() -> None:
    paper = Paper("json")
    paper.log.on_role(Role.STANDBY)
    paper.log.on_trouble("two\nlines")
    paper.log.on_restore(RestoreProgress(10, 20, 30, 0.5))
    assert [event["event"] for event in paper.events] == ["role", "trouble", "restore"]
    assert all({"time", "level", "event", "message"} <= event.keys() for event in paper.events)
    assert paper.events[1]["message"] == "two\nlines"
    assert paper.events[2]["end_offset"] == 30


def test_machines_can_tell_events_apart_and_what_they_are_about() -> None:
    paper = Paper("json")
    paper.log.on_event("created topic verdicts", "topic_created", topic="verdicts")
    paper.log.on_trouble("state: no space left", "disk", path="state")
    paper.log.on_event("the state directory works again", "disk", path="state")
    assert [(event["event"], event["level"]) for event in paper.events] == [
        ("topic_created", "info"),
        ("disk", "warning"),
        ("disk", "info"),
    ]
    assert [event.get("path") for event in paper.events] == [None, "state", "state"]
    assert paper.events[0]["topic"] == "verdicts"


def test_what_is_repeated_is_left_out_and_counted() -> None:
    paper = Paper("json")
    for _ in range(5):
        paper.log.on_trouble("again")
    paper.log.on_trouble("something else")
    paper.now += REPEAT_SECONDS
    paper.log.on_trouble("again")
    assert [event["message"] for event in paper.events] == [
        "again",
        "something else",
        "again (and 4 more like it)",
    ]
    assert paper.events[2]["suppressed"] == 4


def test_connections_are_one_subject_whatever_librdkafka_says() -> None:
    paper = Paper("human")
    paper.log.on_connection("broker 1: refused (after 3ms in state CONNECT)")
    paper.log.on_connection("broker 2: refused (after 5ms in state CONNECT)")
    assert len(paper.lines) == 1
    assert "after" not in paper.lines[0]


def test_a_dead_letter_is_told_by_its_place_and_the_rest_by_their_number() -> None:
    paper = Paper("json")
    letters = [
        Refused("articles", 3, 17, "decode", "bad_json", ""),
        Refused("articles", 3, 18, "decode", "bad_json", ""),
        Refused("articles", 4, 5, "judge", "empty", "a-1"),
    ]
    paper.log.on_batch(refused(letters, {("decode", "bad_json"): 500, ("judge", "empty"): 1}))
    by_reason = {event["reason"]: event for event in paper.events}
    assert len(paper.events) == 2
    first = by_reason["bad_json"]
    assert (first["topic"], first["partition"], first["offset"]) == ("articles", 3, 17)
    assert by_reason["empty"]["id"] == "a-1"
    paper.now += REPEAT_SECONDS
    paper.log.on_batch(refused(letters[:1], {("decode", "bad_json"): 1}))
    assert paper.events[-1]["suppressed"] == 499


def test_control_characters_of_others_do_not_reach_the_terminal() -> None:
    paper = Paper("human")
    letter = Refused("articles", 0, 1, "judge", "empty", "\x1b[31mred\n")
    paper.log.on_batch(refused([letter], {("judge", "empty"): 1}))
    assert "\x1b" not in paper.out.getvalue()


def test_auto_is_for_people_only_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert chosen_format("auto", Terminal()) == "human"
    assert chosen_format("auto", io.StringIO()) == "json"
    assert chosen_format("human", io.StringIO()) == "human"
