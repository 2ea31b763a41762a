"""The text pipeline once more in plain Python: slow, obvious, the yardstick of the kernel.

It shares with the package the two definitions (`normalise`, `character_class`) and the constants
of the hash functions; every loop is its own.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from streamdedup.config import SchemeConfig
from streamdedup.hashing import MIX_1, MIX_2
from streamdedup.text.kernel import (
    MODE_CHAR,
    MODE_EMPTY,
    MODE_STOP,
    MODE_UNSPACED,
    MODE_WORD,
    PLACE,
    SHINGLE_START,
    UNSPACED_K,
)
from streamdedup.text.normal import normalise
from streamdedup.text.stopwords import StopLists, default_stop_table
from streamdedup.text.tables import (
    MARK,
    SEPARATOR,
    UNSPACED,
    WORD,
    character_class,
    unicode_tables,
)
from streamdedup.text.words import WORD_START

NO_LANGUAGE = 255
_64 = (1 << 64) - 1


def mix(value: int) -> int:
    """The finaliser of MurmurHash3."""
    value ^= value >> 33
    value = value * int(MIX_1) & _64
    value ^= value >> 33
    value = value * int(MIX_2) & _64
    return value ^ value >> 33


def fold_in(state: int, part: int) -> int:
    """One step of a running hash."""
    state = (state ^ part) * int(MIX_1) & _64
    return state ^ state >> 29


def hash_token(token: str) -> int:
    """Its UTF-8 in numbers of eight bytes, the last filled up with zeros."""
    state = int(WORD_START)
    data = token.encode()
    for place in range(0, len(data), 8):
        state = fold_in(state, int.from_bytes(data[place : place + 8], "little"))
    return mix(state)


# A shingle: 31 bits of hash and one that says "a stop word and two content words"; 16 more bits.
Shingle = tuple[int, int]


def hash_shingle(units: Iterable[int], *, content: bool = False) -> Shingle:
    """The hash of a run of words."""
    state = int(SHINGLE_START)
    for unit in units:
        state = fold_in(state, unit)
    return mix(state) >> 33 << 1 | content, mix(state) & 0xFFFF


def hash_digest(units: list[int]) -> int:
    """The exact normalised text as one number."""
    places = (place * int(PLACE) & _64 for place in range(1, len(units) + 1))
    terms = (fold_in(place, unit) for place, unit in zip(places, units, strict=True))
    return mix(len(units) + sum(terms) & _64)


def hash_repeat(shingle: int, repeat: int) -> Shingle:
    """The hash of the copy number `repeat` (the first is 1) of a shingle in a bag."""
    value = mix(fold_in(shingle, repeat))
    return value >> 33 << 1, value & 0xFFFF


def tokens_of(text: str) -> list[str]:
    """The words of a normalised text; characters of unspaced scripts stand alone with marks."""
    tokens: list[str] = []
    word = ""
    unspaced = False  # the open token is a character of an unspaced script

    def close() -> None:
        nonlocal word
        if word:
            tokens.append(word)
        word = ""

    for place, character in enumerate(text):
        kind = character_class(character)
        if character == "'":
            kind = WORD if word and not unspaced and _goes_on(text, place + 1) else SEPARATOR
        if kind == UNSPACED:
            close()
            word, unspaced = character, True
        elif kind == MARK or (kind == WORD and not unspaced):
            word += character
        else:
            close()
            word, unspaced = (character if kind == WORD else ""), False
    close()
    return tokens


def _goes_on(text: str, place: int) -> bool:
    return place < len(text) and character_class(text[place]) in (WORD, MARK)


def characters_of(text: str) -> list[str]:
    """The characters of a normalised text: whatever separates becomes one space, none outside."""
    kept = ""
    for place, character in enumerate(text):
        kind = character_class(character)
        if character == "'":
            open_before = kept != "" and not kept.endswith(" ")
            kind = WORD if open_before and _goes_on(text, place + 1) else SEPARATOR
        if kind != SEPARATOR:
            kept += character
        elif kept and not kept.endswith(" "):
            kept += " "
    return list(kept.rstrip(" "))


@dataclass(frozen=True)
class Reference:
    """What `Shingler` should say about one text."""

    shingles: list[Shingle]
    digest: int
    mode: int
    language: int


@dataclass(frozen=True)
class ReferenceShingler:
    """The same settings as `Shingler`."""

    unit: str = "stop"
    k: int = 3
    bag: bool = False
    stop_share: float = SchemeConfig().stop_share
    lists: StopLists = field(default_factory=lambda: default_stop_table().lists)

    def shingle(self, text: str) -> Reference:
        """One text's shingles as sorted hashes, its digest, mode and language."""
        # Half a surrogate pair is no character.
        text = normalise(text.encode("utf-8", "replace").decode())
        if self.unit == "char":
            tokens = characters_of(text)
            units = [hash_token(character) for character in tokens]
        else:
            tokens = tokens_of(text)
            units = [hash_token(token) for token in tokens]
        language = NO_LANGUAGE
        if not units:
            mode, bag = MODE_EMPTY, []
        elif self.unit != "stop":
            mode = MODE_CHAR if self.unit == "char" else MODE_WORD
            bag = k_shingles(units, self.k)
        elif 2 * sum(character_class(token[0]) == UNSPACED for token in tokens) > len(tokens):
            mode = MODE_UNSPACED
            bag = k_shingles(units, UNSPACED_K)
        else:
            language, mode, bag = self._by_stop_words(tokens, units)
        return Reference(self._counted(bag), hash_digest(units), mode, language)

    def _by_stop_words(self, tokens: list[str], units: list[int]) -> tuple[int, int, list[Shingle]]:
        language, hits = self.language_of(tokens)
        stops_only = hits > 0 and hits >= self.stop_share * len(tokens)
        stop = [bool(self.lists.words.get(token, 0) >> language & 1) for token in tokens]
        bag = [
            hash_shingle(units[i : i + 3], content=stop[i] and not (stop[i + 1] or stop[i + 2]))
            for i in range(len(tokens) - 2)
            if stop[i] or not stops_only
        ]
        return language, MODE_STOP if stops_only else MODE_WORD, bag

    def language_of(self, tokens: list[str]) -> tuple[int, int]:
        """The group with the most stop words and how many; the first of equals."""
        hits = [0] * len(self.lists.groups)
        for token in tokens:
            for group in range(len(hits)):
                hits[group] += self.lists.words.get(token, 0) >> group & 1
        most = max(hits)
        return (hits.index(most), most) if most else (NO_LANGUAGE, 0)

    def _counted(self, bag: list[Shingle]) -> list[Shingle]:
        if self.bag:
            copies = Counter(shingle for shingle, _ in bag)
            bag = bag + [
                hash_repeat(shingle, n)
                for shingle, times in copies.items()
                for n in range(1, times)
            ]
        # Of equal hashes the smallest with its 16 bits.
        return sorted(dict(sorted(bag, reverse=True)).items())


def k_shingles(units: list[int], k: int) -> list[Shingle]:
    """The hashes of every run of k units, in order."""
    return [hash_shingle(units[i : i + k]) for i in range(len(units) - k + 1)]


def assigned(character: str) -> bool:
    """Whether the shipped tables know the character: a newer Python knows some more."""
    if unicodedata.category(character) == "Cn":
        return False
    if unicodedata.unidata_version == "14.0.0" or unicode_tables().entries[ord(character)] != ord(
        character
    ):
        return True
    return normalise(character) == character and character_class(character) == SEPARATOR
