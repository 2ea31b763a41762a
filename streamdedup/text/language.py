"""Which words are stop words, and in which language: one look-up a word, one vote an article."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled, inlined
from streamdedup.machine import lowest_bit

U64 = NDArray[np.uint64]

PLANES = 32  # binary digits of a hit counter
NO_LANGUAGE = 255
SEEN_BITS = 17  # 16 KiB, which stays in the processor's first cache
_SEEN_SHIFT = np.uint64(64 - SEEN_BITS)


@inlined
def seen_at(word: np.uint64) -> tuple[np.uint64, np.uint8]:
    """The byte and the bit of a word in the table of bits."""
    place = word >> _SEEN_SHIFT
    return place >> np.uint64(3), np.uint8(1) << np.uint8(place & np.uint64(7))


@compiled
def lay_out(words: U64, languages: U64, slots: U64, seen: NDArray[np.uint8]) -> None:
    """Fill the tables: an open-addressing one of (word, languages), and bits that say no fast."""
    last = np.uint64(len(slots) - 1)
    for index in range(len(words)):
        word = words[index]
        slot = word & last
        while slots[slot, 1] != 0:
            slot = (slot + np.uint64(1)) & last
        slots[slot, 0] = word
        slots[slot, 1] = languages[index]
        byte, bit = seen_at(word)
        seen[byte] |= bit


@compiled
def find_stops(
    units: U64,
    count: int,
    slots: U64,
    seen: NDArray[np.uint8],
    places: NDArray[np.uint32],
    masks: U64,
) -> int:
    """Write by token the languages in which it is a stop word, and the places of those that may be
    one; return how many these are."""
    last = np.uint64(len(slots) - 1)
    likely = 0
    for token in range(count):  # no branch: stop words cannot be predicted
        masks[token] = 0
        places[likely] = token
        byte, bit = seen_at(units[token])
        likely += np.int64(seen[byte] & bit != 0)
    for at in range(likely):
        token = places[at]
        word = units[token]
        slot = word & last
        while slots[slot, 1] != 0 and slots[slot, 0] != word:
            slot = (slot + np.uint64(1)) & last
        masks[token] = slots[slot, 1]
    return likely


@compiled
def vote(masks: U64, places: NDArray[np.uint32], count: int, planes: U64) -> tuple[int, int]:
    """The language with the most stop words and its hits; ties go to the lower number.

    Counters are kept as bit planes: adding a mask to all 64 of them is a binary carry.
    """
    planes[:] = 0
    ones = twos = fours = eights = np.uint64(0)
    for at in range(count):
        carry = masks[places[at]]
        ones, carry = ones ^ carry, ones & carry
        twos, carry = twos ^ carry, twos & carry
        fours, carry = fours ^ carry, fours & carry
        eights, carry = eights ^ carry, eights & carry
        plane = 4
        while carry != 0:  # one mask in sixteen comes here
            planes[plane], carry = planes[plane] ^ carry, planes[plane] & carry
            plane += 1
    planes[0], planes[1], planes[2], planes[3] = ones, twos, fours, eights
    most = ~np.uint64(0)
    hits = 0
    for plane in range(PLANES - 1, -1, -1):
        having = most & planes[plane]
        hits <<= 1
        if having != 0:
            most = having
            hits |= 1
    if hits == 0:
        return NO_LANGUAGE, 0
    return lowest_bit(most), hits
