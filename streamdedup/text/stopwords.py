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

from streamdedup.text.kernel import hash_word

STOP_FILE = Path(__file__).with_name("stopwords.txt")


class StopLists(NamedTuple):
    """`groups[g]` names the languages of bit g; `words` maps a word to its bits."""

    groups: tuple[str, ...]
    words: Mapping[str, int]
    digest: str


class StopTable(NamedTuple):
    """The same as an open-addressing table: row = word hash, bit mask (0 = free)."""

    slots: NDArray[np.uint64]
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
    """Lay the lists out for the kernel, at most a quarter full so that misses end at once."""
    size = 1 << (4 * len(lists.words)).bit_length()
    slots = np.zeros((size, 2), np.uint64)
    for word, mask in sorted(lists.words.items()):
        key = int(hash_word(np.array([ord(c) for c in word], np.uint32)))
        slot = key & (size - 1)
        while slots[slot, 1] != 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = (key, mask)
    return StopTable(slots, lists)


@cache
def default_stop_table() -> StopTable:
    """The shipped lists."""
    return stop_table(parse_stop_lists(STOP_FILE.read_text("utf-8")))
