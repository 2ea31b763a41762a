"""One 32-bit entry a code point: what kind of character it is and what it folds to.

The table is shipped as data, not computed from the running Python's Unicode version, because the
hashes in an index must mean the same on every machine.  `python -m streamdedup.text.tables`
writes it anew; doing so under another Unicode version makes another digest, and other indexes.
"""

from __future__ import annotations

import hashlib
import unicodedata
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdedup.text.normal import normalise

TABLE_FILE = Path(__file__).with_name("unicode.npz")
CODE_POINTS = 0x110000
BLOCK = 256

# Classes of characters, as the tokeniser tells them apart.
SEPARATOR, WORD, MARK, UNSPACED, APOSTROPHE, IGNORABLE = range(6)

# Bits of an entry: folded code point (or expansion number), class, two flags, combining class.
FOLD_MASK = 0x1FFFFF
CLASS_SHIFT = 21
CLASS_MASK = 0x7
POINT_MASK = CLASS_MASK << CLASS_SHIFT | FOLD_MASK  # what is left of an entry once folded
EXPANDS = 1 << 24
COMPOSES = 1 << 25
ORDER_SHIFT = 26

# Scripts written without spaces: one token a character.
_UNSPACED_NAMES = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC ",
    "HIRAGANA",
    "KATAKANA",
    "HENTAIGANA",
    "BOPOMOFO",
    "YI SYLLABLE",
    "THAI CHARACTER",
    "LAO ",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
    "NEW TAI LUE",
    "TAI LE",
    "TAI THAM",
    "JAVANESE",
    "BALINESE",
)


class UnicodeTables(NamedTuple):
    """`entries` by code point; expansion e is `expansions[starts[e]:starts[e + 1]]`."""

    entries: NDArray[np.uint32]
    expansion_starts: NDArray[np.int32]
    expansions: NDArray[np.uint32]
    digest: str


@cache
def unicode_tables() -> UnicodeTables:
    """The shipped tables, read once a process."""
    with np.load(TABLE_FILE, allow_pickle=False) as stored:
        blocks, index = stored["blocks"], stored["index"]
        starts, expansions = stored["expansion_starts"], stored["expansions"]
    return UnicodeTables(
        _rotated(blocks[index].reshape(-1), +1),
        starts,
        expansions,
        _digest(blocks, index, starts, expansions),
    )


def _rotated(entries: NDArray[np.uint32], sign: int) -> NDArray[np.uint32]:
    """Entries with the fold counted from zero (+1) or, as stored, from the code point (-1).

    Most characters fold to themselves: as a distance that is 0, and whole blocks become equal.
    """
    points = np.arange(CODE_POINTS, dtype=np.int64)
    fold = entries.astype(np.int64) & FOLD_MASK
    moved = ((fold + sign * points) & FOLD_MASK).astype(np.uint32)
    return (entries & np.uint32(~FOLD_MASK & 0xFFFFFFFF)) | moved


def _digest(*arrays: NDArray[np.generic]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def character_class(character: str) -> int:
    """The class of a character that is already normalised."""
    if character == "'":
        return APOSTROPHE
    category = unicodedata.category(character)
    if category[0] == "M":
        return MARK
    if category[0] not in "LN":
        return SEPARATOR
    unspaced = unicodedata.name(character, "").startswith(_UNSPACED_NAMES)
    return UNSPACED if unspaced and category[0] == "L" else WORD


def build_tables() -> dict[str, NDArray[np.generic]]:
    """Compute the tables from this Python's `unicodedata` and the meaning in `normal`."""
    composing = _composing_marks()
    # Combining classes are sparse: their rank keeps the order and fits the bits left over.
    orders = sorted({unicodedata.combining(chr(point)) for point in range(CODE_POINTS)})
    rank = {order: number for number, order in enumerate(orders)}
    entries = np.zeros(CODE_POINTS, np.uint32)
    expansions: list[int] = []
    starts = [0]
    for point in range(CODE_POINTS):
        character = chr(point)
        if 0xD800 <= point < 0xE000 or unicodedata.category(character) == "Cn":
            entries[point] = point  # never assigned (yet): a separator for ever
            continue
        folded = normalise(character)
        entry = rank[_last_order(character, folded)] << ORDER_SHIFT
        if _interacts(character, folded, composing):
            entry |= COMPOSES
        if folded == "":
            entry |= IGNORABLE << CLASS_SHIFT
        elif len(folded) == 1:
            entry |= character_class(folded) << CLASS_SHIFT | ord(folded)
        else:
            entry |= EXPANDS | (len(starts) - 1)
            expansions.extend(character_class(f) << CLASS_SHIFT | ord(f) for f in folded)
            starts.append(len(expansions))
        entries[point] = entry
    stored = _rotated(entries, -1)
    blocks, index = np.unique(stored.reshape(-1, BLOCK), axis=0, return_inverse=True)
    return {
        "blocks": blocks,
        "index": index.astype(np.uint16).reshape(-1),
        "expansion_starts": np.array(starts, np.int32),
        "expansions": np.array(expansions, np.uint32),
    }


def _composing_marks() -> set[str]:
    """Characters that may melt into the one before them under NFKC."""
    seconds = {chr(point) for point in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for point in range(CODE_POINTS):
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    return seconds


def _last_order(character: str, folded: str) -> int:
    """The combining class that a mark behind the character has to reckon with."""
    ends = (character, unicodedata.normalize("NFKC", character)[-1:], folded[-1:])
    return max(unicodedata.combining(end) for end in ends if end)


def _interacts(character: str, folded: str, composing: set[str]) -> bool:
    """Whether the character's neighbours decide what becomes of it."""
    decomposed = unicodedata.normalize("NFKD", character)
    edges = {decomposed[:1], folded[:1]}
    if unicodedata.combining(character) == 0 and len(decomposed) > 1:
        # Marks that follow either compose (and say so themselves) or are caught by their order;
        # a character that *starts* with a mark acts on what stands before it.
        return any(edge and unicodedata.combining(edge) != 0 for edge in edges)
    return bool(edges & composing) or (
        unicodedata.combining(character) != 0 and folded != character and folded != ""
    )


if __name__ == "__main__":
    np.savez_compressed(TABLE_FILE, allow_pickle=False, **build_tables())
