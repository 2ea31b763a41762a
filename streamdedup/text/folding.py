"""UTF-8 in, folded UTF-8 out, with a byte beside each byte that says what it is part of.

ASCII is folded all at once, then taken over between the other characters, which go by the tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import Integer, compiled, inlined
from streamdedup.machine import load_word, lowest_bit, store_word
from streamdedup.text.tables import (
    APOSTROPHE,
    CLASS_MASK,
    CLASS_SHIFT,
    COMPOSES,
    EXPANDS,
    FOLD_MASK,
    IGNORABLE,
    MARK,
    ORDER_SHIFT,
    SEPARATOR,
    UNSPACED,
)

Bytes = NDArray[np.uint8]

# What a folded byte is part of; 0 is a separator.
IN_WORD = 1  # a letter, digit or mark
QUOTE = 2  # an apostrophe: part of a word only between two of its letters
IN_CHARACTER = 4  # a character of an unspaced script, with its marks
FIRST_OF_CHARACTER = 8  # and where that begins

PADDING = 8  # bytes behind a buffer that whole words may be read from or written to
# One byte of UTF-8 folds to at most eleven (U+FDFA: three bytes, eighteen characters).
MOST_FOLDED_BYTES = 11

_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x0101010101010101)
_8bit = np.uint8


@inlined
def _code_point(text: Bytes, at: Integer) -> tuple[Integer, Integer]:
    """The code point at `at` and the place after it; the bytes are valid UTF-8, not ASCII."""
    lead = np.int64(text[at])
    second = np.int64(text[at + 1]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, at + 2
    third = np.int64(text[at + 2]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, at + 3
    fourth = np.int64(text[at + 3]) & 0x3F
    return (lead & 0x07) << 18 | second << 12 | third << 6 | fourth, at + 4


@inlined
def _encoded(point: Integer) -> tuple[np.uint64, int]:
    """The code point's UTF-8 as a number, lowest byte first, and how many bytes it has."""
    if point < 0x80:
        return np.uint64(point), 1
    if point < 0x800:
        return np.uint64(0x80C0 | point >> 6 | (point & 0x3F) << 8), 2
    last, middle = point & 0x3F, point >> 6 & 0x3F
    if point < 0x10000:
        return np.uint64(0x8080E0 | point >> 12 | middle << 8 | last << 16), 3
    upper = point >> 12 & 0x3F
    return np.uint64(0x808080F0 | point >> 18 | upper << 8 | middle << 16 | last << 24), 4


@compiled
def _fold_as_ascii(text: Bytes, folded: Bytes, kinds: Bytes) -> None:
    """Every byte as if it were ASCII: so plain a loop that it is compiled to vectors."""
    for at in range(len(text)):
        byte = text[at]
        is_capital = _8bit(_8bit(byte - _8bit(0x41)) < _8bit(26))
        small = _8bit(byte | _8bit(is_capital << _8bit(5)))
        is_letter = _8bit(_8bit(small - _8bit(0x61)) < _8bit(26))
        is_digit = _8bit(_8bit(small - _8bit(0x30)) < _8bit(10))
        is_quote = _8bit(small == _8bit(0x60)) | _8bit(small == _8bit(0x27))
        folded[at] = _8bit(0x27) if is_quote else small
        kinds[at] = is_letter | is_digit | _8bit(is_quote << _8bit(1))


@compiled
def fold(
    text: Bytes,
    at: Integer,
    end: Integer,
    entries: NDArray[np.uint32],
    expansion_starts: NDArray[np.int32],
    expansions: NDArray[np.uint32],
    ascii: Bytes,
    ascii_kinds: Bytes,
    folded: Bytes,
    kinds: Bytes,
) -> int:
    """Write the folded bytes of `text[at:end]` and their kinds; return how many.

    `ascii` and `ascii_kinds` are room for as many bytes as the text has, and `PADDING`.
    Behind them the kinds go on as separators for `PADDING` bytes.
    """
    size = 0
    first_byte = at
    _fold_as_ascii(text[at:end], ascii, ascii_kinds)
    unspaced = False  # marks belong to a character of an unspaced script
    while at < end:
        word = load_word(text, at)
        # A branch that is nearly always guessed right: where to go on does not wait for the word.
        while end - at > 8 and word & _HIGH_BITS == 0:
            store_word(folded, size, load_word(ascii, at - first_byte))
            store_word(kinds, size, load_word(ascii_kinds, at - first_byte))
            size += 8
            at += 8
            word = load_word(text, at)
            unspaced = False
        plain = min(lowest_bit(word & _HIGH_BITS) >> 3, end - at)
        if plain > 0:
            # What is not plain is written over by what follows.
            store_word(folded, size, load_word(ascii, at - first_byte))
            store_word(kinds, size, load_word(ascii_kinds, at - first_byte))
            size += plain
            at += plain
            unspaced = False
            continue
        point, at = _code_point(text, at)
        entry = np.int64(entries[point])
        first, last = 0, 1
        if entry & EXPANDS:
            first = np.int64(expansion_starts[entry & FOLD_MASK])
            last = np.int64(expansion_starts[(entry & FOLD_MASK) + 1])
        elif (entry >> CLASS_SHIFT) & CLASS_MASK == IGNORABLE:
            continue
        for part in range(first, last):
            one = np.int64(expansions[part]) if entry & EXPANDS else entry
            cls = (one >> CLASS_SHIFT) & CLASS_MASK
            kind, rest = IN_WORD, IN_WORD
            if cls == UNSPACED:
                kind, rest = FIRST_OF_CHARACTER | IN_CHARACTER, IN_CHARACTER
            elif cls == MARK:
                if unspaced:
                    kind, rest = IN_CHARACTER, IN_CHARACTER
            elif cls == SEPARATOR:
                kind, rest = 0, 0
            elif cls == APOSTROPHE:
                kind, rest = QUOTE, QUOTE
            unspaced = cls == UNSPACED or (cls == MARK and unspaced)
            small, length = _encoded(one & FOLD_MASK)
            store_word(folded, size, small)
            store_word(kinds, size, np.uint64(rest) * _LOW_BITS | np.uint64(kind))
            size += length
    store_word(kinds, size, np.uint64(0))
    return size


@compiled
def needs_normalising(
    text: Bytes, starts: NDArray[np.int64], entries: NDArray[np.uint32]
) -> NDArray[np.bool_]:
    """Which texts hold a character whose neighbours decide what becomes of it."""
    count = len(starts) - 1
    needs = np.zeros(count, np.bool_)
    for article in range(count):
        at, end = starts[article], starts[article + 1]
        order_before = 0
        while at < end:
            if load_word(text, at) & _HIGH_BITS == 0:
                order_before = 0
                at += 8
                continue
            if text[at] < 0x80:
                order_before = 0
                at += 1
                continue
            point, at = _code_point(text, at)
            entry = np.int64(entries[point])
            order = entry >> ORDER_SHIFT
            if entry & COMPOSES or (order != 0 and order < order_before):
                needs[article] = True
                break
            if (entry >> CLASS_SHIFT) & CLASS_MASK != IGNORABLE:
                order_before = order
    return needs
