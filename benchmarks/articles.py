"""News articles that do not exist, the same in every run: the food of the benchmarks.

English function words carry invented content words, in about the proportions of agency copy: some
550 words, two fifths of them stop words, sentences, paragraphs, curly quotes.  A third of the
articles are near-duplicates of earlier ones: edited, cropped, or wrapped into an outlet's page.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

DUPLICATE_SHARE = 1 / 3
STOP_SHARE = 0.38
OUTLETS = 24

# Function words with their rough number of uses in a thousand words of running English.
_FUNCTION_WORDS = {
    "the": 60, "of": 30, "and": 26, "to": 26, "in": 21, "a": 23, "that": 11, "for": 10, "is": 9,
    "on": 8, "was": 8, "with": 7, "as": 7, "he": 6, "it": 7, "by": 6, "at": 5, "be": 5, "from": 5,
    "has": 4, "have": 4, "are": 4, "an": 4, "his": 4, "but": 4, "they": 3, "which": 3, "not": 4,
    "had": 3, "this": 3, "were": 3, "been": 3, "who": 3, "will": 3, "their": 3, "or": 3, "its": 3,
    "would": 2, "after": 2, "about": 2, "more": 2, "she": 2, "her": 2, "when": 2, "up": 2, "we": 2,
    "also": 2, "than": 2, "there": 2, "could": 1, "into": 1, "over": 1, "all": 1, "some": 1,
    "before": 1, "because": 1, "other": 1, "during": 1, "no": 1, "if": 1, "what": 1, "them": 1,
    "only": 1, "so": 1, "between": 1, "while": 1, "under": 1, "against": 1, "most": 1, "both": 1,
}  # fmt: skip
_ONSETS = [
    *"bcdfghlmnprstvw",
    *("br", "ch", "cl", "cr", "dr", "fl", "gr", "pl", "pr", "sh", "st", "str", "th", "tr"),
]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "ou"]
_CODAS = ["", "", "", "l", "m", "n", "r", "s", "t", "nd", "nt", "ck", "rt", "ss"]
_ENDINGS = ["", "", "", "", "s", "s", "ed", "ing", "er", "ion", "al", "ly", "ment", "ity"]


@dataclass(frozen=True)
class Sample:
    """One article and the cluster of near-duplicates that it belongs to."""

    id: str
    text: str
    cluster: str


def samples(count: int, seed: int = 20) -> Iterator[Sample]:
    """The first `count` articles of the stream."""
    writer = _Writer(seed)
    random_ = writer.random
    originals: list[tuple[str, str]] = []
    for number in range(count):
        id = f"n{number}"
        if originals and random_.random() < DUPLICATE_SHARE:
            cluster, text = random_.choice(originals)
            yield Sample(id, writer.copied(text), cluster)
        else:
            text = writer.article()
            originals.append((id, text))
            yield Sample(id, text, id)


class _Writer:
    """Words, sentences, articles, and what newsrooms do to them."""

    def __init__(self, seed: int, vocabulary: int = 6_000) -> None:
        self.random = random.Random(seed)
        self._function = list(_FUNCTION_WORDS)
        self._function_weights = list(accumulate(_FUNCTION_WORDS.values()))
        words: dict[str, None] = {}
        while len(words) < vocabulary:
            words[self._word()] = None
        # Frequent words are short ones, give or take.
        self._content = sorted(words, key=lambda word: len(word) + self.random.uniform(0, 3))
        # Zipf and Mandelbrot: the commonest content word of news is about one word in a hundred.
        weights = (1 / (rank + 30) for rank in range(vocabulary))
        self._content_weights = list(accumulate(weights))
        self._outlets = [self._boilerplate() for _ in range(OUTLETS)]

    def article(self) -> str:
        """An original of about 380 to 700 words."""
        names = [self._word().capitalize() for _ in range(12)]
        left = self.random.randint(380, 650)
        paragraphs: list[str] = []
        while left > 0:
            sentences = [self._sentence(names) for _ in range(self.random.randint(1, 4))]
            paragraphs.append(" ".join(sentences))
            left -= sum(sentence.count(" ") + 1 for sentence in sentences)
        text = "\n\n".join(paragraphs)
        # Originals sit in pages too: what an outlet adds must not make two stories one.
        return self._wrapped(text) if self.random.random() < 0.2 else text

    def copied(self, text: str) -> str:
        """A near-duplicate: edited, cropped or wrapped, now and then two of them."""
        kind = self.random.random()
        if kind < 0.4:
            return self._edited(text)
        if kind < 0.6:
            return self._cropped(text)
        if kind < 0.8:
            return self._wrapped(text)
        return self._wrapped(self._edited(text))

    def _edited(self, text: str) -> str:
        """Five to ten per cent of the words changed, struck out or added, one by one."""
        words = text.split(" ")
        changes = ceil(self.random.uniform(0.05, 0.10) * len(words))
        for place in sorted(self.random.sample(range(len(words)), changes), reverse=True):
            kind = self.random.random()
            new = self._drawn(1)[0]
            if kind < 0.6:
                words[place] = new
            elif kind < 0.8:
                del words[place]
            else:
                words.insert(place, new)
        return " ".join(words)

    def _cropped(self, text: str) -> str:
        """Its first 40 to 80 per cent, to the end of a sentence."""
        end = text.find(". ", int(self.random.uniform(0.4, 0.8) * len(text)))
        return text if end < 0 else text[: end + 1]

    def _wrapped(self, text: str) -> str:
        top, bottom = self.random.choice(self._outlets)
        return f"{top}{text}\n\n{bottom}"

    def _boilerplate(self) -> tuple[str, str]:
        place = self._word().upper()
        footer = " ".join(self._sentence([self._word().capitalize()]) for _ in range(3))
        return f"{place} ({self._word().capitalize()}) — ", f"{footer} © All rights reserved."

    def _sentence(self, names: list[str]) -> str:
        words = self._drawn(self.random.randint(10, 28), names)
        if self.random.random() < 0.5:
            words[len(words) // 2] += ","
        words[0] = words[0][0].upper() + words[0][1:]
        text = " ".join(words)
        if self.random.random() < 0.12:
            return f"“{text},” {self.random.choice(names)} said."
        if self.random.random() < 0.1:
            return text + f", the company’s {self._drawn(1)[0]} said."
        return text + "."

    def _drawn(self, count: int, names: list[str] | None = None) -> list[str]:
        """Running words; a story's own names come back again and again."""
        draw = self.random.random
        function = iter(
            self.random.choices(self._function, cum_weights=self._function_weights, k=count)
        )
        content = iter(
            self.random.choices(self._content, cum_weights=self._content_weights, k=count)
        )
        words = []
        for _ in range(count):
            kind = draw()
            if kind < STOP_SHARE:
                words.append(next(function))
            elif names and kind > 0.94:
                words.append(self.random.choice(names))
            elif kind > 0.93:
                words.append(str(self.random.randint(2, 2_500)))
            else:
                words.append(next(content))
        return words

    def _word(self) -> str:
        choice = self.random.choice
        syllables = choice((1, 1, 2, 2, 2, 3))
        parts = [choice(_ONSETS) + choice(_VOWELS) for _ in range(syllables)]
        return "".join(parts) + choice(_CODAS) + choice(_ENDINGS)
