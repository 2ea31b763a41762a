"""The feed of the demonstration: the bundled sample with its junk, and rounds like it without end.

It knows which articles are about the same story, so that the verdicts can be held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from streamdedup.article import milliseconds, rfc3339
from streamdedup.demo.remix import Remix, remixed, split

SAMPLE = Path(__file__).parents[1] / "sample"
_SEED = 20260302


class Line(NamedTuple):
    """One line of the feed; junk has no story."""

    key: bytes
    content: bytes
    title: str
    story: str | None


class _Sample(msgspec.Struct):
    id: str
    title: str
    text: str
    published: str
    source: str


class _Truth(msgspec.Struct):
    id: str
    cluster: str


class _Source(NamedTuple):
    """An article of the sample, cut for the rounds to come."""

    article: _Sample
    story: str
    lang: str
    published_ms: int
    title: list[str]
    text: list[str]


class Feed:
    """Lines in order; the first round is the sample as it is, all rounds are of the same days.

    With `end_ms` the news of each round are as of the time that it tells: beside articles of today,
    older ones would lie outside the window.
    """

    def __init__(self, end_ms: Callable[[], int] | None = None) -> None:
        self._sample = _lines(SAMPLE / "feed.jsonl")
        self._junk = _lines(SAMPLE / "junk.jsonl")
        stories = {
            truth.id: truth.cluster
            for truth in (
                msgspec.json.decode(line, type=_Truth) for line in _lines(SAMPLE / "truth.jsonl")
            )
        }
        outlets = [line.decode().split(" | ") for line in _lines(SAMPLE / "outlets.txt")]
        langs = {code: lang for lang, code, _ in outlets}
        self._sources = [
            _source(msgspec.json.decode(line, type=_Sample), stories, langs)
            for line in self._sample
        ]
        self._latest_ms = max(source.published_ms for source in self._sources)
        self._end_ms = end_ms
        self._later_ms = 0
        # Junk comes between the articles, evenly.
        self._gap = len(self._sample) // len(self._junk)

    @property
    def round_lines(self) -> int:
        """How many lines a round has."""
        return len(self._sample) + len(self._junk)

    def lines(self) -> Iterator[Line]:
        """Without end."""
        yield from self._with_junk(self._first(), 0)
        random = Random(_SEED)
        remixes = self._remixes()
        number = 1
        while True:
            exchanges = {lang: remix.exchange(random) for lang, remix in remixes.items()}
            yield from self._with_junk(self._another(number, exchanges), number)
            number += 1

    def _begin_round(self) -> None:
        if self._end_ms is not None:
            self._later_ms = self._end_ms() - self._latest_ms

    def _first(self) -> Iterator[Line]:
        self._begin_round()
        for content, source in zip(self._sample, self._sources, strict=True):
            article = source.article
            if self._later_ms:
                now = msgspec.json.encode(replace(article, published=self._published(source)))
            else:
                now = content
            yield Line(article.id.encode(), now, article.title, source.story)

    def _another(self, number: int, exchanges: dict[str, dict[str, str]]) -> Iterator[Line]:
        self._begin_round()
        for source in self._sources:
            exchange = exchanges[source.lang]
            article = _Sample(
                id=f"{source.article.id}.{number}",
                title=remixed(source.title, exchange),
                text=remixed(source.text, exchange),
                published=self._published(source),
                source=source.article.source,
            )
            content = msgspec.json.encode(article)
            yield Line(article.id.encode(), content, article.title, f"{source.story}.{number}")

    def _published(self, source: _Source) -> str:
        return rfc3339(source.published_ms + self._later_ms)

    def _with_junk(self, articles: Iterator[Line], number: int) -> Iterator[Line]:
        junk = iter(enumerate(self._junk))
        for place, line in enumerate(articles, 1):
            yield line
            if place % self._gap == 0 and (next_junk := next(junk, None)):
                which, content = next_junk
                yield Line(f"junk-{which}.{number}".encode(), content, "", None)

    def _remixes(self) -> dict[str, Remix]:
        texts: dict[str, list[list[str]]] = {}
        for source in self._sources:
            texts.setdefault(source.lang, []).extend((source.title, source.text))
        return {lang: Remix(found) for lang, found in texts.items()}


def _source(article: _Sample, stories: dict[str, str], langs: dict[str, str]) -> _Source:
    outlet = article.id.partition("-")[0]
    return _Source(
        article=article,
        story=stories[article.id],
        lang=langs[outlet],
        published_ms=milliseconds(msgspec.convert(article.published, datetime)),
        title=split(article.title),
        text=split(article.text),
    )


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()
