"""Folded bytes → tokens: where each begins and ends, and its hash.

A word's hash is taken over its folded UTF-8, eight bytes at a time, the last eight filled up with
zeros.  `HASH_VERSION` stands for everything from here to the shingle's hash.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import Integer, compiled, inlined
from streamdedup.hashing import fold_in, mix
from streamdedup.machine import bit_count, load_word, lowest_bit
from streamdedup.text.folding import IN_CHARACTER, IN_WORD, PADDING, QUOTE

Bytes = NDArray[np.uint8]
U64 = NDArray[np.uint64]

HASH_VERSION = 2
WORD_START = np.uint64(0x9E3779B97F4A7C15)

_ALL = ~np.uint64(0)
_0 = np.uint64(0)
_1 = np.uint64(1)
_8 = np.uint64(8)
_56 = np.uint64(56)
_63 = np.uint64(63)
_SPACE = np.uint64(0x20)
_LOW_BITS = np.uint64(0x0101010101010101)
_QUOTES = np.uint64(QUOTE) * _LOW_BITS
_CHARACTERS = np.uint64(IN_CHARACTER) * _LOW_BITS
_GATHER = np.uint64(0x0102040810204080)  # brings the low bits of eight bytes together


@inlined
def _bits(kinds: Bytes, at: int, shift: int) -> np.uint64:
    """One bit of each of 64 bytes, the first byte's lowest."""
    bits = _0
    for eight in range(8):
        word = load_word(kinds, at + 8 * eight) >> np.uint64(shift)
        bits |= (((word & _LOW_BITS) * _GATHER) >> _56) << np.uint64(8 * eight)
    return bits


@inlined
def _any(kinds: Bytes, at: int) -> np.uint64:
    """Which kinds there are among 64 bytes, whatever the place."""
    kind = _0
    for eight in range(8):
        kind |= load_word(kinds, at + 8 * eight)
    return kind


@compiled
def find_tokens(kinds: Bytes, size: int, bounds: NDArray[np.int32]) -> tuple[int, int]:
    """Write where each token begins and ends, in turn; return how many there are, and how many of
    them are characters of an unspaced script.

    Sixty-four bytes at a time: a token begins where a word's bits begin or a character's first
    byte is, and ends before a byte that is in no token or in the next.
    """
    written = 0
    characters = 0
    words_before = _0  # the highest bit of the 64 bytes before, as the lowest
    tokens_before = _0
    at = 0
    while at <= size:
        present = _any(kinds, at)
        letters = _bits(kinds, at, 0)
        words = letters
        if present & _QUOTES:
            quotes = _bits(kinds, at, 1)
            # A quote is part of a word between two of its letters.
            after = _1 if kinds[at + 64] & IN_WORD else _0
            words |= quotes & (letters << _1 | words_before) & (letters >> _1 | after << _63)
        starts = words & ~(words << _1 | words_before)
        tokens = words
        if present & _CHARACTERS:
            within = _bits(kinds, at, 2)
            firsts = _bits(kinds, at, 3)
            characters += bit_count(firsts)
            starts |= firsts
            tokens |= within
        ends = (tokens << _1 | tokens_before) & (~tokens | starts)
        words_before = words >> _63
        tokens_before = tokens >> _63
        if starts & ends == 0:
            edges = starts | ends
            found = bit_count(edges)
            # Eight at a time, needed or not: their number cannot be predicted.
            for some in range(written, written + found, 8):
                for place in range(some, some + 8):
                    bounds[place] = at + lowest_bit(edges)
                    edges &= edges - _1
            written += found
        else:
            edges = starts | ends
            while edges != 0:
                bit = edges & (_0 - edges)
                place = at + lowest_bit(edges)
                if ends & bit:
                    bounds[written] = place
                    written += 1
                if starts & bit:
                    bounds[written] = place
                    written += 1
                edges ^= bit
        at += 64
    return written >> 1, characters


@inlined
def _hash(folded: Bytes, at: Integer, length: Integer) -> np.uint64:
    """The hash of the word of `length` bytes at `at`."""
    filled = np.uint64(8 * (8 - min(length, 8)))
    state = fold_in(WORD_START, load_word(folded, at) & (_ALL >> filled))
    while length > 8:
        at += 8
        length -= 8
        filled = np.uint64(8 * (8 - min(length, 8)))
        state = fold_in(state, load_word(folded, at) & (_ALL >> filled))
    return mix(state)


@compiled
def hash_word(folded: Bytes) -> np.uint64:
    """The hash of one whole token, given with `PADDING` bytes behind it."""
    return _hash(folded, 0, len(folded) - PADDING)


@compiled
def hash_tokens(folded: Bytes, bounds: NDArray[np.int32], count: int, units: U64) -> None:
    """Write the hash of each token."""
    for token in range(count):
        first = np.int64(bounds[2 * token])
        units[token] = _hash(folded, first, np.int64(bounds[2 * token + 1]) - first)


@compiled
def hash_characters(folded: Bytes, kinds: Bytes, size: Integer, units: U64) -> int:
    """Write the hashes of the characters, words one space apart; return how many."""
    written = 0
    gap = False
    at: Integer = 0
    while at < size:
        lead = folded[at]
        length = 1 + np.int64(lead >= 0xC0) + np.int64(lead >= 0xE0) + np.int64(lead >= 0xF0)
        kind: Integer = np.int64(kinds[at])
        if kind == QUOTE:
            inside = written > 0 and not gap and kinds[at + 1] & IN_WORD
            kind = IN_WORD if inside else 0
        if kind == 0:
            gap = written > 0
        else:
            if gap:
                units[written] = mix(fold_in(WORD_START, _SPACE))
                written += 1
                gap = False
            units[written] = _hash(folded, at, length)
            written += 1
        at += length
    return written
