"""New stories out of old ones: words change places with words of their kind, all over a language.

Copies of a story stay copies of each other, since every article of a round is changed alike; but no
round has anything in common with another.  What comes out reads like a fever dream of the news.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from random import Random

from streamdedup.text.stopwords import STOP_FILE, parse_stop_lists

# A letter of a script without spaces is a word; else letters, with the marks that some scripts
# write beside them and soft hyphens inside.
_UNSPACED = "\u3041-\u30ff\u3400-\u9fff"
_MARKS = "\u0300-\u036f\u064b-\u0652\u0900-\u0963\u0970-\u097f\u200c\u200d"
_WORD = re.compile(
    rf"([{_UNSPACED}]|(?:[^\W\d_{_UNSPACED}]|[{_MARKS}])(?:[^\W\d_{_UNSPACED}]|[\u00ad{_MARKS}])*)"
)
_SOFT_HYPHEN = "\u00ad"
_FIRST_UNSPACED = "\u3040"
_FEW = 4  # a kind with fewer words is not worth keeping apart


def split(text: str) -> list[str]:
    """The text in pieces, every second one a word.

    >>> split("The sea, the sea!")
    ['', 'The', ' ', 'sea', ', ', 'the', ' ', 'sea', '!']
    """
    pieces = _WORD.split(text)
    pieces[1::2] = [word.replace(_SOFT_HYPHEN, "") for word in pieces[1::2]]
    return pieces


def remixed(pieces: list[str], exchange: Mapping[str, str]) -> str:
    """The text with its words exchanged."""
    out = list(pieces)
    out[1::2] = [exchange.get(word, word) for word in pieces[1::2]]
    return "".join(out)


class Remix:
    """The words of one language, by kind."""

    def __init__(self, texts: Iterable[list[str]]) -> None:
        stop_words = parse_stop_lists(STOP_FILE.read_text("utf-8")).words
        found = {word for pieces in texts for word in pieces[1::2]}
        words = sorted(
            word
            for word in found
            if (len(word) > 1 or word > _FIRST_UNSPACED) and word.lower() not in stop_words
        )
        self._kinds = _kinds(words)

    def exchange(self, random: Random) -> dict[str, str]:
        """Which word stands for which in a round; no two become one."""
        exchange: dict[str, str] = {}
        for words in self._kinds:
            others = words.copy()
            random.shuffle(others)
            exchange.update(zip(words, others, strict=True))
        return exchange


def _kinds(words: list[str]) -> list[list[str]]:
    """Words that can stand for each other: both with a capital or not, and of the same ending."""
    kinds: list[list[str]] = []
    for ending in (3, 2, 1, 0):
        by_kind: dict[tuple[bool, str], list[str]] = {}
        for word in words:
            kind = word[0].isupper(), word[-ending:] if ending else ""
            by_kind.setdefault(kind, []).append(word)
        kinds += [alike for alike in by_kind.values() if len(alike) >= _FEW or not ending]
        words = [word for alike in by_kind.values() if len(alike) < _FEW for word in alike]
        if not ending:
            break
    return kinds
