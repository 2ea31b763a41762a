"""The demonstration's feed: the sample, then rounds that are new, with their copies intact."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import islice
from random import Random

from conftest import SAMPLE

from streamdedup import Config, Deduplicator
from streamdedup.article import ArticleDecoder
from streamdedup.demo.feed import Feed, Line
from streamdedup.demo.flow import Flow, Sent
from streamdedup.demo.remix import Remix, remixed, split
from streamdedup.demo.tally import Tally
from streamdedup.verdict import Verdict

LINES = (SAMPLE / "feed.jsonl").read_bytes().splitlines()
JUNK = (SAMPLE / "junk.jsonl").read_bytes().splitlines()


def test_the_first_round_is_the_sample_byte_for_byte_with_its_junk_in_between() -> None:
    feed = Feed()
    lines = [line.content for line in islice(feed.lines(), feed.round_lines)]
    assert [line for line in lines if line not in JUNK] == LINES
    assert [line for line in lines if line in JUNK] == JUNK
    assert lines[0] not in JUNK


def test_no_round_repeats_another_and_copies_stay_copies_in_every_language() -> None:
    feed = Feed()
    tally = Tally()
    decode = ArticleDecoder(Config().input).decode
    lines = [line for line in islice(feed.lines(), 8 * feed.round_lines) if line.story]
    with Deduplicator.open(None) as engine:
        outcomes = engine.process([decode(line.content) for line in lines])
    for line, outcome in zip(lines, outcomes, strict=True):
        assert isinstance(outcome, Verdict)
        tally.add(outcome, line)
    assert tally.wrong == 0
    assert tally.right == tally.owed > 900


def test_the_news_can_be_of_any_day() -> None:
    end = datetime.fromisoformat("2031-05-01T12:00:00+00:00")
    feed = Feed(end_ms=lambda: int(end.timestamp() * 1_000))
    lines = [line for line in islice(feed.lines(), 2 * feed.round_lines) if line.story]
    dates = [datetime.fromisoformat(json.loads(line.content)["published"]) for line in lines]
    assert max(dates) == end
    assert (end - min(dates)).days == 2
    assert json.loads(lines[0].content)["text"] == json.loads(LINES[0])["text"]


def test_each_round_is_of_the_day_on_which_it_begins() -> None:
    days = iter((100, 200, 300))
    feed = Feed(end_ms=lambda: next(days) * 86_400_000)
    lines = [line for line in islice(feed.lines(), 2 * feed.round_lines) if line.story]
    half = len(lines) // 2
    for part, day in ((lines[:half], 100), (lines[half:], 200)):
        dates = [datetime.fromisoformat(json.loads(line.content)["published"]) for line in part]
        assert max(dates).timestamp() == day * 86_400


def test_words_change_places_and_function_words_and_marks_stay() -> None:
    text = split("The captain of the ferry, on Monday: «Не было ветра», 24 to 19. 汐見駅")
    exchange = Remix([text, split("A baker saw Ursula sail with four singers")]).exchange(Random(1))
    out = remixed(text, exchange)
    assert out.startswith("The ")
    assert " of the " in out
    assert ", 24 to 19. " in out
    assert out != "".join(text)
    assert sorted(exchange) == sorted(exchange.values())


def test_what_is_under_way_never_exceeds_its_room_by_more_than_a_line() -> None:
    flow = Flow(1_000)
    sent = [Sent(Line(b"%d" % n, bytes(300), "", None), shown=False) for n in range(6)]
    taken = [flow.add(each, 0.01) for each in sent]
    assert taken == [True, True, True, True, False, False]
    assert flow.answered(b"stranger") is None
    assert flow.answered(b"0") == sent[0]
    assert flow.add(sent[4], 0.01)
    assert not flow.is_empty


def test_two_lines_under_one_key_are_answered_in_order() -> None:
    flow = Flow(1_000)
    first, second = (Sent(Line(b"k", text, "", None), shown=True) for text in (b"1", b"2"))
    assert flow.add(first, 0)
    assert flow.add(second, 0)
    assert [flow.answered(b"k"), flow.answered(b"k"), flow.answered(b"k")] == [first, second, None]
    assert flow.is_empty
