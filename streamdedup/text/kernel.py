"""The compiled loop from UTF-8 bytes to sorted shingle sets, one call a batch.

It knows arrays and tables only.  An article is folded, cut into tokens, its stop words are looked
up, the language with the most of them decides which shingles there are, and they are sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled, inlined
from streamdedup.hashing import fold_in, mix
from streamdedup.text.folding import MOST_FOLDED_BYTES, PADDING, fold
from streamdedup.text.language import NO_LANGUAGE, PLANES, find_stops, vote
from streamdedup.text.words import find_tokens, hash_characters, hash_tokens

Bytes = NDArray[np.uint8]
U64 = NDArray[np.uint64]

# Units of a shingle, and how an article was cut (kept for metrics).
STOP_UNIT, WORD_UNIT, CHAR_UNIT = range(3)
MODE_EMPTY, MODE_STOP, MODE_WORD, MODE_UNSPACED, MODE_CHAR = range(5)

UNSPACED_K = 5  # characters: about as long as three words of Chinese
SHINGLE_START = np.uint64(0x9E3779B97F4A7C15)
_HASH = np.uint64(0xFFFF_FFFE_0000_0000)  # 31 bits of hash, above the one that marks content ...
_EXTRA = np.uint64(0xFFFF)  # ... and 16 that only crop keys need
_CONTENT = np.uint64(1 << 32)
PLACE = np.uint64(0x2545F4914F6CDD1D)

_BLOCK = 64 + PADDING  # tokens are sought in whole blocks of 64 bytes


@inlined
def _shingle(units: U64, first: int, k: int) -> np.uint64:
    state = SHINGLE_START
    for unit in range(first, first + k):
        state = fold_in(state, units[unit])
    return _spread(state)


@inlined
def _spread(state: np.uint64) -> np.uint64:
    """What is kept of a shingle's hash while shingles are sorted."""
    return mix(state) & (_HASH | _EXTRA)


@compiled
def _digest(units: U64, count: int) -> np.uint64:
    """The exact normalised text as one number: every token with its place."""
    total = np.uint64(count)
    for token in range(count):
        # A sum: no term waits for the one before.
        total += fold_in(np.uint64(token + 1) * PLACE, units[token])
    return mix(total)


@compiled
def _stop_shingles(
    units: U64,
    masks: U64,
    count: int,
    bit: np.uint64,
    stops_only: bool,
    places: NDArray[np.uint32],
    likely: int,
    out: U64,
) -> int:
    """Write a shingle for every stop word (or every word), marked if it is "a stop word and two
    content words"."""
    one, two = np.uint64(1), np.uint64(2)
    made = 0
    if stops_only:
        while likely > 0 and np.int64(places[likely - 1]) >= count - 2:
            likely -= 1
        for at in range(likely):  # no branch: stop words cannot be predicted
            token = np.uint64(places[at])
            places[made] = token
            made += np.int64((masks[token] >> bit) & one)
    else:
        made = max(count - 2, 0)
        for at in range(made):
            places[at] = at
    for at in range(made):
        token = np.uint64(places[at])
        later = masks[token + one] | masks[token + two]
        flag = ((masks[token] & ~later) >> bit) & one
        state = fold_in(SHINGLE_START, units[token])
        state = fold_in(fold_in(state, units[token + one]), units[token + two])
        out[at] = _spread(state) | flag * _CONTENT
    return made


@compiled
def _sort(
    values: U64,
    count: int,
    scratch: U64,
    buckets: NDArray[np.int32],
) -> None:
    """Sort evenly spread hashes: deal them into as many buckets as there are values, then mend."""
    one = np.uint64(1)
    bits = 0
    while bits < 16 and (1 << bits) < count:
        bits += 1
    dealt = 1 << bits
    shift = np.uint64(63 - bits)  # two steps: a shift by all 64 bits is none
    buckets[: dealt + 1] = 0
    for index in range(count):
        buckets[np.int64(values[index] >> one >> shift) + 1] += 1
    for bucket in range(1, dealt + 1):
        buckets[bucket] += buckets[bucket - 1]
    for index in range(count):
        bucket = np.int64(values[index] >> one >> shift)
        scratch[buckets[bucket]] = values[index]
        buckets[bucket] += 1
    if count > dealt or _deepest(buckets, dealt) > 48:  # crafted input must not get quadratic
        scratch[:count].sort()
    for index in range(count):
        value = scratch[index]
        place = index
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@inlined
def _deepest(ends: NDArray[np.int32], count: int) -> int:
    deepest = 0
    before = 0
    for bucket in range(count):
        deepest = max(deepest, np.int64(ends[bucket]) - before)
        before = np.int64(ends[bucket])
    return deepest


@inlined
def _unique(values: U64, count: int, hashes: NDArray[np.uint32], extras: NDArray[np.uint16]) -> int:
    """Write every hash once, with the smallest extra that came with it."""
    kept = 0
    before = ~np.uint64(0)
    for index in range(count):
        value = values[index]
        hash = value >> np.uint64(32)
        hashes[kept] = np.uint32(hash)
        extras[kept] = np.uint16(value & _EXTRA)
        kept += np.int64(hash != before)
        before = hash
    return kept


@inlined
def _number_repeats(values: U64, count: int) -> None:
    """Make the repeats in a sorted bag different: the n-th copy of a hash becomes its own."""
    repeat = 0
    before = ~np.uint64(0)
    for index in range(count):
        hash = values[index] >> np.uint64(32)
        repeat = repeat + 1 if hash == before else 0
        before = hash
        if repeat > 0:
            values[index] = _spread(fold_in(hash, np.uint64(repeat)))


@compiled
def shingle_batch(
    text: Bytes,
    starts: NDArray[np.int64],
    entries: NDArray[np.uint32],
    expansion_starts: NDArray[np.int32],
    expansions: NDArray[np.uint32],
    slots: U64,
    seen: Bytes,
    unit: int,
    k: int,
    bag: bool,
    stop_share: float,
) -> tuple[
    NDArray[np.uint32],
    NDArray[np.uint16],
    NDArray[np.int64],
    U64,
    NDArray[np.uint8],
    NDArray[np.uint8],
]:
    """Sorted shingle hashes, 16 more bits of each, and their starts; then by article the digest of
    its tokens (the exact normalised text), how it was cut, and its language.

    `text` has `PADDING` bytes behind the last article.
    """
    count = len(starts) - 1
    longest = 0
    for article in range(count):
        longest = max(longest, starts[article + 1] - starts[article])
    # Room for the worst that folding can do; memory that is not touched costs nothing.
    room = MOST_FOLDED_BYTES * longest + _BLOCK
    ascii = np.empty(longest + PADDING, np.uint8)
    ascii_kinds = np.empty(longest + PADDING, np.uint8)
    folded = np.empty(room, np.uint8)
    kinds = np.empty(room, np.uint8)
    bounds = np.empty(room + 8, np.int32)
    units = np.empty(room, np.uint64)
    masks = np.empty(room, np.uint64)
    out = np.empty(room, np.uint64)
    sorting = np.empty(room, np.uint64)
    places = np.empty(room, np.uint32)
    buckets = np.empty((1 << 16) + 1, np.int32)
    planes = np.zeros(PLANES, np.uint64)
    hashes = np.empty(len(text) // 4 + room, np.uint32)
    extras = np.empty(len(hashes), np.uint16)
    shingle_starts = np.zeros(count + 1, np.int64)
    digests = np.zeros(count, np.uint64)
    modes = np.zeros(count, np.uint8)
    languages = np.full(count, NO_LANGUAGE, np.uint8)
    used = 0
    for article in range(count):
        size = fold(
            text,
            starts[article],
            starts[article + 1],
            entries,
            expansion_starts,
            expansions,
            ascii,
            ascii_kinds,
            folded,
            kinds,
        )
        unspaced = 0
        if unit == CHAR_UNIT:
            tokens = hash_characters(folded, kinds, size, units)
        else:
            kinds[size : size + _BLOCK] = 0
            tokens, unspaced = find_tokens(kinds, size, bounds)
            hash_tokens(folded, bounds, tokens, units)
        digests[article] = _digest(units, tokens)
        if len(hashes) - used < tokens:
            size = 2 * len(hashes) + tokens
            hashes, extras = _longer(hashes, used, size), _longer(extras, used, size)
        made = 0
        if tokens == 0:
            modes[article] = MODE_EMPTY
        elif unit == STOP_UNIT and 2 * unspaced <= tokens:
            likely = find_stops(units, tokens, slots, seen, places, masks)
            language, hits = vote(masks, places, likely, planes)
            languages[article] = language
            stops_only = hits >= stop_share * tokens and hits > 0
            modes[article] = MODE_STOP if stops_only else MODE_WORD
            bit = np.uint64(language & 63)
            made = _stop_shingles(units, masks, tokens, bit, stops_only, places, likely, out)
        else:
            width = UNSPACED_K if unit == STOP_UNIT else k
            if unit == STOP_UNIT:
                modes[article] = MODE_UNSPACED
            else:
                modes[article] = MODE_WORD if unit == WORD_UNIT else MODE_CHAR
            for first in range(tokens - width + 1):
                out[made] = _shingle(units, first, width)
                made += 1
        if made > 1:
            _sort(out, made, sorting, buckets)
            if bag:
                _number_repeats(out, made)
                _sort(out, made, sorting, buckets)
        used += _unique(out, made, hashes[used:], extras[used:])
        shingle_starts[article + 1] = used
    return hashes[:used].copy(), extras[:used].copy(), shingle_starts, digests, modes, languages


@compiled
def _longer(values: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    longer = np.empty(size, values.dtype)
    longer[:used] = values[:used]
    return longer
