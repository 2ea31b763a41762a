"""A feed in which everything happens that a dashboard shows, again and again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import count
from random import Random
from threading import Event, Thread
from types import TracebackType
from typing import Self

from service import Setup, message

from streamdedup import Article

# One of each; a text is made of a language's small words with made-up words between them.
SMALL_WORDS = {
    "en": ["the", "of", "and", "that", "was", "for", "with", "this", "from", "have"],
    "de": ["der", "die", "und", "nicht", "mit", "sich", "auf", "eine", "dem", "auch"],
    "fr": ["le", "les", "et", "des", "une", "dans", "pour", "qui", "est", "avec"],
}
POISON: dict[tuple[str, str], bytes | None] = {
    ("decode", "no_value"): None,
    ("decode", "bad_json"): b"{not json",
    ("decode", "too_deep"): b'{"id":"a","text":"t","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ("decode", "too_large"): json.dumps({"id": "a", "text": "x " * 60_000}).encode(),
    ("decode", "bad_field"): b'{"id": "a"}',
    ("decode", "bad_id"): b'{"id": "", "text": "some words"}',
    ("decode", "bad_published"): b'{"id": "a", "text": "some words", "published": "soon"}',
    ("judge", "empty"): b'{"id": "a", "text": "... !?"}',
}
SETTINGS = {"STREAMDEDUP_INPUT__MAX_TEXT_BYTES": "100000"}
_PAUSE_SECONDS = 0.3
_OLD = 300


def old_articles() -> list[bytes]:
    """What an instance has stored and flushed before the rest comes, which copies some of it."""
    random, now_ms = Random(0), int(1_000 * time.time())
    texts = (" ".join(_word(random) for _ in range(60)) for _ in range(_OLD))
    return [
        message(Article(id=f"old-{number}", text=text, published=now_ms))
        for number, text in enumerate(texts)
    ]


def rounds(seed: int = 1) -> Iterator[list[bytes | None]]:
    """Batches with news in three languages, copies of every kind, revisions and poison."""
    random = Random(seed)
    poison, old = list(POISON.values()), old_articles()
    for number in count():
        now_ms = int(1_000 * time.time())
        made: list[bytes | None] = []
        for language, small in SMALL_WORDS.items():
            for copy in range(5):
                id = f"{language}-{number}-{copy}"
                words = [_word(random) if at % 3 else random.choice(small) for at in range(180)]
                text = " ".join(words)
                article = Article(id=id, text=text, published=now_ms)
                corrected = " ".join([*words[:-6], *(_word(random) for _ in range(6))])
                made += [
                    message(article),
                    message(Article(id=f"{id}-near", text=corrected, published=now_ms)),
                    message(Article(id=f"{id}-exact", text=text, published=now_ms)),
                    message(article),  # redelivery
                    message(Article(id=id, text=corrected, published=now_ms)),  # revision
                    message(Article(id=f"{id}-brief", text=_word(random), published=now_ms)),
                ]
            # The same id with a text of its own: a revision that is news.
            text = " ".join(_word(random) for _ in range(90))
            made.append(message(Article(id=f"{language}-{number}-0", text=text)))
        made += random.sample(old, 5)
        made.append(poison[number % len(poison)])
        yield made


def _word(random: Random) -> str:
    return "".join(random.choices("bcdfghklmnprstvwz", k=3)) + "".join(random.choices("aeiou", k=3))


class Feeding:
    """Feeds both partitions of a set-up between entering and leaving."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._over = Event()
        self._thread = Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        for number, made in enumerate(rounds()):
            self._setup.produce(made, partition=number % self._setup.partitions)
            if self._over.wait(_PAUSE_SECONDS):
                return
