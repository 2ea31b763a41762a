"""The compiled loop from UTF-8 bytes to sorted shingle sets, one call a batch.

It knows arrays and tables only.  A text goes through in one pass: decode a code point, fold it,
feed it to the token's hash; at a token's end look the hash up among the stop words.  Then the
language with the most hits decides which shingles there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled, inlined
from streamdedup.text.hashing import SHINGLE_START, extend_word, fold_in, mix
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
    POINT_MASK,
    SEPARATOR,
    WORD,
)

U64 = NDArray[np.uint64]

# Units of a shingle, and how an article was cut (kept for metrics).
STOP_UNIT, WORD_UNIT, CHAR_UNIT = range(3)
MODE_EMPTY, MODE_STOP, MODE_WORD, MODE_UNSPACED, MODE_CHAR = range(5)

UNSPACED_K = 5  # characters: about as long as three words of Chinese
PLANES = 24  # binary digits of a hit counter

_HIGH_BITS = np.uint64(0x8080808080808080)
_SPACE = np.uint64(0x20)
_NO_LANGUAGE = 255


@compiled
def hash_word(points: NDArray[np.uint32]) -> np.uint64:
    """The hash of one whole token, for building tables."""
    state = np.uint64(0)
    for length in range(len(points)):
        state = extend_word(state, length, np.uint64(points[length]))
    return mix(state)


@inlined
def _code_point(text: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The code point at `at` and the place after it; the bytes are valid UTF-8."""
    lead = np.int64(text[at])
    if lead < 0x80:
        return lead, at + 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (np.int64(text[at + 1]) & 0x3F), at + 2
    second = np.int64(text[at + 1]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | (np.int64(text[at + 2]) & 0x3F), at + 3
    third = np.int64(text[at + 2]) & 0x3F
    point = (lead & 0x07) << 18 | second << 12 | third << 6 | (np.int64(text[at + 3]) & 0x3F)
    return point, at + 4


@compiled
def needs_normalising(
    text: NDArray[np.uint8], starts: NDArray[np.int64], entries: NDArray[np.uint32]
) -> NDArray[np.bool_]:
    """Which texts hold a character whose neighbours decide what becomes of it."""
    count = len(starts) - 1
    needs = np.zeros(count, np.bool_)
    words = text[: len(text) & ~7].view(np.uint64)
    for article in range(count):
        at, end = starts[article], starts[article + 1]
        order_before = 0
        while at < end:
            if text[at] < 0x80:
                order_before = 0
                at += 1
                # Plain stretches eight bytes at a time.
                while at & 7 == 0 and at + 8 <= end and words[at >> 3] & _HIGH_BITS == 0:
                    at += 8
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


@inlined
def _stop_mask(slots: U64, word: np.uint64) -> np.uint64:
    last = np.uint64(len(slots) - 1)
    slot = word & last
    while slots[slot, 1] != 0:
        if slots[slot, 0] == word:
            return slots[slot, 1]
        slot = (slot + np.uint64(1)) & last
    return np.uint64(0)


@compiled
def _points(
    text: NDArray[np.uint8],
    at: int,
    end: int,
    entries: NDArray[np.uint32],
    expansion_starts: NDArray[np.int32],
    expansions: NDArray[np.uint32],
    points: NDArray[np.uint32],
) -> int:
    """Write the folded code points with their classes; return how many."""
    count = 0
    while at < end:
        if text[at] < 0x80:
            points[count] = entries[text[at]]
            count += 1
            at += 1
            continue
        point, at = _code_point(text, at)
        entry = entries[point]
        if entry & EXPANDS:
            first = expansion_starts[entry & FOLD_MASK]
            last = expansion_starts[(entry & FOLD_MASK) + 1]
            for part in range(first, last):
                points[count] = expansions[part]
                count += 1
        elif (entry >> CLASS_SHIFT) & CLASS_MASK != IGNORABLE:
            points[count] = entry & POINT_MASK
            count += 1
    points[count] = 0  # a separator: every token ends, every apostrophe has a successor
    return count + 1


@compiled
def _tokens(points: NDArray[np.uint32], count: int, units: U64) -> tuple[int, int]:
    """Write the hashes of the tokens; return how many, and how many of them are single
    characters of an unspaced script."""
    tokens = 0
    unspaced = 0
    state = np.uint64(0)
    length = 0  # code points of the open word
    index = 0
    while index < count:
        point = points[index]
        index += 1
        cls = np.int64(point >> CLASS_SHIFT)
        folded = np.uint64(point & FOLD_MASK)
        if cls > WORD:
            if cls == APOSTROPHE:
                after = points[index] >> CLASS_SHIFT
                cls = WORD if length > 0 and (after == WORD or after == MARK) else SEPARATOR
            elif cls == MARK:
                cls = WORD
            else:
                units[tokens] = state
                tokens += length > 0
                state = extend_word(np.uint64(0), 0, folded)
                length = 1
                while points[index] >> CLASS_SHIFT == MARK:
                    state = extend_word(state, length, np.uint64(points[index] & FOLD_MASK))
                    length += 1
                    index += 1
                unspaced += 1
                cls = SEPARATOR
        # No branch on the end of a word: it comes too irregularly to be predicted.
        units[tokens] = state
        tokens += (1 - cls) & np.int64(length > 0)
        state = extend_word(state, length, folded) * np.uint64(cls)
        length = (length + 1) * cls
    for token in range(tokens):
        units[token] = mix(units[token])
    return tokens, unspaced


@compiled
def _characters(points: NDArray[np.uint32], count: int, units: U64) -> int:
    """Write the hashes of the characters, words one space apart; return how many."""
    written = 0
    gap = False
    for index in range(count):
        point = points[index]
        cls = point >> CLASS_SHIFT
        if cls == APOSTROPHE:
            after = points[index + 1] >> CLASS_SHIFT
            inside = written > 0 and not gap and (after == WORD or after == MARK)
            cls = WORD if inside else SEPARATOR
        if cls == SEPARATOR:
            gap = written > 0
            continue
        if gap:
            units[written] = mix(_SPACE)
            written += 1
            gap = False
        units[written] = mix(np.uint64(point & FOLD_MASK))
        written += 1
    return written


@compiled
def _language(masks: U64, count: int, planes: U64) -> tuple[int, int]:
    """The language with the most stop words and its hits; ties go to the lower number.

    Counters are kept as bit planes: adding a mask to all 64 of them is a binary carry.
    """
    planes[:] = 0
    for token in range(count):
        carry = masks[token]
        plane = 0
        while carry != 0:
            both = planes[plane] & carry
            planes[plane] ^= carry
            carry = both
            plane += 1
    most = ~np.uint64(0)
    hits = 0
    for plane in range(PLANES - 1, -1, -1):
        having = most & planes[plane]
        hits <<= 1
        if having != 0:
            most = having
            hits |= 1
    if hits == 0:
        return _NO_LANGUAGE, 0
    language = 0
    while (most >> np.uint64(language)) & np.uint64(1) == 0:
        language += 1
    return language, hits


@inlined
def _shingle(units: U64, first: int, k: int) -> np.uint32:
    state = SHINGLE_START
    for unit in range(first, first + k):
        state = fold_in(state, units[unit])
    return np.uint32((mix(state) >> np.uint64(33)) << np.uint64(1))


@compiled
def _sort(values: NDArray[np.uint32], count: int, scratch: NDArray[np.uint32]) -> None:
    """Sort evenly spread hashes: deal them into as many buckets as there are values, then mend."""
    shift = 32
    while shift > 16 and (1 << (32 - shift)) < count:
        shift -= 1
    buckets = np.zeros((1 << (32 - shift)) + 1, np.int32)
    for index in range(count):
        buckets[(np.int64(values[index]) >> shift) + 1] += 1
    for bucket in range(1, len(buckets)):
        buckets[bucket] += buckets[bucket - 1]
    for index in range(count):
        bucket = np.int64(values[index]) >> shift
        scratch[buckets[bucket]] = values[index]
        buckets[bucket] += 1
    first = 0
    for bucket in range(len(buckets) - 1):
        last = buckets[bucket]
        if last - first > 48:  # crafted input must not make this quadratic
            scratch[first:last].sort()
        first = last
    for index in range(count):
        value = scratch[index]
        place = index
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@inlined
def _unique(values: NDArray[np.uint32], count: int) -> int:
    kept = 0
    for index in range(count):
        if index == 0 or values[index] != values[kept - 1]:
            values[kept] = values[index]
            kept += 1
    return kept


@inlined
def _number_repeats(values: NDArray[np.uint32], count: int) -> None:
    """Make the repeats in a sorted bag different: the n-th copy of a hash becomes its own."""
    repeat = 0
    before = np.uint32(0)
    for index in range(count):
        value = values[index]
        repeat = repeat + 1 if index > 0 and value == before else 0
        before = value
        if repeat > 0:
            mixed = mix(fold_in(np.uint64(value), np.uint64(repeat)))
            values[index] = np.uint32((mixed >> np.uint64(33)) << np.uint64(1))


@compiled
def shingle_batch(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    entries: NDArray[np.uint32],
    expansion_starts: NDArray[np.int32],
    expansions: NDArray[np.uint32],
    slots: U64,
    unit: int,
    k: int,
    bag: bool,
    stop_share: float,
) -> tuple[
    NDArray[np.uint32],
    NDArray[np.int64],
    U64,
    NDArray[np.uint8],
    NDArray[np.uint8],
]:
    """Sorted shingle hashes with their starts; then by article the digest of its tokens (the
    exact normalised text), how it was cut, and its language.

    The lowest bit of a shingle's hash says "a stop word and two content words".
    """
    count = len(starts) - 1
    longest = 0
    for article in range(count):
        longest = max(longest, starts[article + 1] - starts[article])
    # Six characters a byte is the most that Unicode's expansions can make.
    points = np.empty(6 * longest + 8, np.uint32)
    units = np.empty(6 * longest + 8, np.uint64)
    masks = np.empty(6 * longest + 8, np.uint64)
    sorting = np.empty(6 * longest + 8, np.uint32)
    planes = np.zeros(PLANES, np.uint64)
    shingles = np.empty(6 * len(text) + 8, np.uint32)
    shingle_starts = np.zeros(count + 1, np.int64)
    digests = np.zeros(count, np.uint64)
    modes = np.zeros(count, np.uint8)
    languages = np.full(count, _NO_LANGUAGE, np.uint8)
    used = 0
    for article in range(count):
        length = _points(
            text,
            starts[article],
            starts[article + 1],
            entries,
            expansion_starts,
            expansions,
            points,
        )
        if unit == CHAR_UNIT:
            tokens, unspaced = _characters(points, length, units), 0
        else:
            tokens, unspaced = _tokens(points, length, units)
        digest = SHINGLE_START
        for token in range(tokens):
            digest = fold_in(digest, units[token])
        digests[article] = mix(digest ^ np.uint64(tokens))
        out = shingles[used:]
        made = 0
        if tokens == 0:
            modes[article] = MODE_EMPTY
        elif unit == STOP_UNIT and 2 * unspaced <= tokens:
            for token in range(tokens):
                masks[token] = _stop_mask(slots, units[token])
            language, hits = _language(masks, tokens, planes)
            languages[article] = language
            stops_only = hits >= stop_share * tokens and hits > 0
            modes[article] = MODE_STOP if stops_only else MODE_WORD
            bit = np.uint64(language & 63) if hits > 0 else np.uint64(63)
            for token in range(tokens - 2):
                is_stop = (masks[token] >> bit) & np.uint64(1)
                if is_stop == 0 and stops_only:
                    continue
                later = ((masks[token + 1] | masks[token + 2]) >> bit) & np.uint64(1)
                flag = np.uint32(is_stop & (later ^ np.uint64(1)))
                out[made] = _shingle(units, token, 3) | flag
                made += 1
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
            _sort(out, made, sorting)
            if bag:
                _number_repeats(out, made)
                _sort(out, made, sorting)
            made = _unique(out, made)
        used += made
        shingle_starts[article + 1] = used
    return shingles[:used].copy(), shingle_starts, digests, modes, languages
