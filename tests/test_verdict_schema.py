"""The verdict line: what is written conforms to the schema, and the schema is strict."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from streamdedup.verdict import Source, Verdict, encode_verdict

SCHEMA = json.loads(files("streamdedup").joinpath("verdict.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)

UNIQUE = Verdict(id="a", verdict="unique", story="a")
DUPLICATE = Verdict(
    id="b",
    verdict="duplicate",
    story="a",
    duplicate_of="a",
    similarity=0.75,
    measure="jaccard",
    reason="near",
    published=1_500,
    source=Source(topic="articles", partition=0, offset=7),
)


def line(verdict: Verdict) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(encode_verdict(verdict))
    return decoded


def test_the_schema_is_itself_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("verdict", [UNIQUE, DUPLICATE], ids=["unique", "duplicate"])
def test_written_verdicts_conform(verdict: Verdict) -> None:
    VALIDATOR.validate(line(verdict))


def test_every_key_is_always_present_in_one_order() -> None:
    assert list(line(UNIQUE)) == list(line(DUPLICATE)) == SCHEMA["required"]


def test_a_verdict_has_no_line_break_inside() -> None:
    assert b"\n" not in encode_verdict(Verdict(id="a\nb", verdict="unique", story="a\nb"))


def test_event_time_is_written_in_utc() -> None:
    assert line(DUPLICATE)["published"] == "1970-01-01T00:00:01.500Z"


@pytest.mark.parametrize(
    ("verdict", "change"),
    [
        (UNIQUE, {"extra": 1}),
        (UNIQUE, {"id": ""}),
        (UNIQUE, {"duplicate_of": "b"}),
        (UNIQUE, {"similarity": 0.5}),
        (UNIQUE, {"measure": "jaccard"}),
        (UNIQUE, {"reason": "near"}),
        (UNIQUE, {"verdict": "duplicate"}),
        (UNIQUE, {"published": "yesterday"}),
        (DUPLICATE, {"verdict": "unique"}),
        (DUPLICATE, {"reason": "new"}),
        (DUPLICATE, {"similarity": None}),
        (DUPLICATE, {"similarity": 1.5}),
        (DUPLICATE, {"measure": None}),
        (DUPLICATE, {"measure": "cosine"}),
        (DUPLICATE, {"duplicate_of": None}),
        (DUPLICATE, {"source": {"topic": "articles"}}),
    ],
)
def test_the_schema_refuses_what_is_not_a_verdict(verdict: Verdict, change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        VALIDATOR.validate(line(verdict) | change)


@pytest.mark.parametrize("key", SCHEMA["required"])
def test_no_key_may_be_missing(key: str) -> None:
    incomplete = line(DUPLICATE)
    del incomplete[key]
    with pytest.raises(ValidationError):
        VALIDATOR.validate(incomplete)
