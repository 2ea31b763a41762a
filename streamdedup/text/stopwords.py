"""The stop lists: word → bit mask of the language groups in which it is a function word.

Lists are data (`stopwords.txt`), versioned, and part of every index's fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdedup.text.folding import PADDING
from streamdedup.text.language import SEEN_BITS, lay_out
from streamdedup.text.words import hash_word

STOP_FILE = Path(__file__).with_name("stopwords.txt")


class StopLists(NamedTuple):
    """`groups[g]` names the languages of bit g; `words` maps a word to its bits."""

    groups: tuple[str, ...]
    words: Mapping[str, int]
    digest: str


class StopTable(NamedTuple):
    """The same for the kernel: rows of word hash and bit mask (0 = free), and bits by which most
    other words are told apart at once."""

    slots: NDArray[np.uint64]
    seen: NDArray[np.uint8]
    lists: StopLists


def parse_stop_lists(content: str) -> StopLists:
    """Read the format described at the top of `stopwords.txt`."""
    groups: list[str] = []
    words: dict[str, int] = {}
    for line in content.splitlines():
        if line.startswith(("#", "version ")) or not line.strip():
            continue
        if line.startswith("["):
            groups.append(line.strip("[] "))
            continue
        bit = 1 << (len(groups) - 1)
        for word in line.split():
            words[word] = words.get(word, 0) | bit
    if not 0 < len(groups) <= 64:
        raise ValueError(f"stop lists need 1 to 64 groups, found {len(groups)}")
    digest = hashlib.sha256(repr((groups, sorted(words.items()))).encode()).hexdigest()[:16]
    return StopLists(tuple(groups), words, digest)


def stop_table(lists: StopLists) -> StopTable:
    """Lay the lists out, at most a quarter full so that a look-up ends at once."""
    words = sorted(lists.words)
    slots = np.zeros((1 << (4 * len(words)).bit_length(), 2), np.uint64)
    seen = np.zeros((1 << SEEN_BITS) // 8, np.uint8)
    padded = (np.frombuffer(word.encode() + bytes(PADDING), np.uint8) for word in words)
    hashes = np.fromiter((hash_word(word) for word in padded), np.uint64, len(words))
    lay_out(hashes, np.array([lists.words[word] for word in words], np.uint64), slots, seen)
    return StopTable(slots, seen, lists)


@cache
def default_stop_table() -> StopTable:
    """The shipped lists."""
    return stop_table(parse_stop_lists(STOP_FILE.read_text("utf-8")))
