"""Decoding an article: what is accepted, and how each kind of hostile input is refused."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdedup.article import Article, ArticleDecoder, milliseconds, rfc3339
from streamdedup.config import InputConfig
from streamdedup.errors import InputError

DECODER = ArticleDecoder(InputConfig())
SMALL = ArticleDecoder(InputConfig(max_text_bytes=100, max_id_bytes=8))


def test_an_article_needs_an_id_and_a_text_and_nothing_else() -> None:
    assert DECODER.decode(b'{"id":"a","text":"x"}') == Article(id="a", text="x")


def test_unknown_fields_are_ignored() -> None:
    line = b'{"source":{"deep":[1,{}]},"id":"a","title":7,"text":"x","tags":["y"]}'
    assert DECODER.decode(line) == Article(id="a", text="x")


def test_field_names_are_configurable() -> None:
    names = InputConfig(id_field="guid", text_field="body text", published_field="when")
    line = b'{"guid":"a","body text":"x","when":"1970-01-01T00:00:01Z","id":3}'
    assert ArticleDecoder(names).decode(line) == Article(id="a", text="x", published=1_000)


@pytest.mark.parametrize(
    ("published", "event_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.0015Z", 1),
        ("1969-12-31T23:59:59.999Z", -1),
        ("1970-01-01T00:00:02", 2_000),
        ("1972-06-30T23:59:60Z", 78_796_799_000),
        ("1972-07-01T05:29:60.25+05:30", 78_796_799_250),
    ],
)
def test_event_time_is_utc_milliseconds(published: str, event_ms: int) -> None:
    line = json.dumps({"id": "a", "text": "x", "published": published}).encode()
    assert DECODER.decode(line).published == event_ms


@given(st.datetimes())
def test_event_time_survives_being_written_and_read(moment: object) -> None:
    event_ms = milliseconds(moment)  # type: ignore[arg-type]
    line = json.dumps({"id": "a", "text": "x", "published": rfc3339(event_ms)}).encode()
    assert DECODER.decode(line).published == event_ms


HOSTILE = {
    "not json": (b"<html>502</html>", "bad_json"),
    "cut off": (b'{"id":"a","text":"x', "bad_json"),
    "not utf-8": (b'{"id":"a","text":"\xff\xfe"}', "bad_json"),
    "a lone surrogate": (b'{"id":"a","text":"\\ud800"}', "bad_json"),
    "something behind the object": (b'{"id":"a","text":"x"}{}', "bad_json"),
    "not a number": (b'{"id":"a","text":"x","n":NaN}', "bad_json"),
    "an array": (b'["a","x"]', "bad_field"),
    "no id": (b'{"text":"x"}', "bad_field"),
    "no text": (b'{"id":"a"}', "bad_field"),
    "a number for an id": (b'{"id":7,"text":"x"}', "bad_field"),
    "null for a text": (b'{"id":"a","text":null}', "bad_field"),
    "an empty id": (b'{"id":"","text":"x"}', "bad_id"),
    "a long id": (json.dumps({"id": "é" * 5, "text": "x"}).encode(), "bad_id"),
    "a long text": (json.dumps({"id": "a", "text": "é" * 51}).encode(), "too_large"),
    "a long line": (b'{"id":"a","text":"x","z":"' + b"z" * 70_000 + b'"}', "too_large"),
    "nested too deeply": (b'{"z":' + b"[" * 30_000 + b"]" * 30_000 + b"}", "too_deep"),
    "a date without a time": (b'{"id":"a","text":"x","published":"2026-03-02"}', "bad_published"),
    "a date of no calendar": (
        b'{"id":"a","text":"x","published":"2026-02-30T00:00:00Z"}',
        "bad_published",
    ),
    "a second of no minute": (
        b'{"id":"a","text":"x","published":"2026-03-02T12:30:60Z"}',
        "bad_published",
    ),
    "a leap second of no calendar": (
        b'{"id":"a","text":"x","published":"2026-02-30T23:59:60Z"}',
        "bad_published",
    ),
    "a leap second and an empty id": (
        b'{"id":"","text":"x","published":"2016-12-31T23:59:60Z"}',
        "bad_id",
    ),
    "a moment before the year 1": (
        b'{"id":"a","text":"x","published":"0001-01-01T00:00:00+14:00"}',
        "bad_published",
    ),
    "a moment after the year 9999": (
        b'{"id":"a","text":"x","published":"9999-12-31T23:59:59-01:00"}',
        "bad_published",
    ),
}


@pytest.mark.parametrize(("line", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_input_is_refused_with_its_reason(line: bytes, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        SMALL.decode(line)
    assert refused.value.reason == reason
    assert refused.value.detail


def test_bad_utf_8_is_named_as_such() -> None:
    with pytest.raises(InputError, match="bad UTF-8 in a string"):
        DECODER.decode(HOSTILE["not utf-8"][0])


@given(st.binary(max_size=200))
def test_no_bytes_whatever_raise_anything_but_an_input_error(line: bytes) -> None:
    with suppress(InputError):
        DECODER.decode(line)


def test_a_text_at_the_limit_is_accepted_even_when_escaped() -> None:
    text = "я" * 50
    escaped = json.dumps({"id": "a", "text": text}, ensure_ascii=True).encode()
    assert SMALL.decode(escaped).text == text
