"""Articles at the price of a sketch: shingle sets made straight from an article's number.

Article n is the same in every run, and any earlier one can be made again, so that copies need no
store of originals.  Unrelated articles share no shingle but by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamdedup.article import Article
from streamdedup.compiled import compiled, inlined
from streamdedup.hashing import mix
from streamdedup.schemes.contract import Payloads
from streamdedup.schemes.shingled import ShingledScheme
from streamdedup.text.kernel import MODE_STOP
from streamdedup.text.shingler import ShingleSets

COPY_SHARE = 0.25
REPLACED_SHARE = 0.15
CONTENT_SHARE = 0.45
RECENT_ARTICLES = 1_000_000
FEWEST_SHINGLES, SHINGLE_SPREAD = 190, 61

_CHAIN = 64  # a copy of a copy of ... ends here
_STEP = np.uint64(0x9E3779B97F4A7C15)
_COPY_SALT = np.uint64(0xC0)
_SOURCE_SALT = np.uint64(0x50)
_SET_SALT = np.uint64(0x5E7)
_EDIT_SALT = np.uint64(0xED17)
_DIGEST_SALT = np.uint64(0xD16E57)


@dataclass(frozen=True)
class SyntheticBatch:
    """Shingle sets, and by article the number it copies (-1: none)."""

    sets: ShingleSets
    sources: NDArray[np.int64]


class CutScheme(ShingledScheme):
    """The text scheme for articles whose shingles are already cut: set `sets`, then sketch."""

    sets: ShingleSets

    def payloads(self, items: Sequence[Article]) -> Payloads:
        """The payloads of `sets`; the items only lend their ids."""
        return self.payloads_of(self.sets)


def synthetic_batch(first: int, count: int) -> SyntheticBatch:
    """The articles `first` ... `first + count - 1`.

    >>> batch = synthetic_batch(1_000, 200)
    >>> 190 <= len(batch.sets.of(0)) <= 250, int((batch.sources >= 0).sum())
    (True, 52)
    """
    shingles, starts, digests, sources = _generate(first, count)
    return SyntheticBatch(
        ShingleSets(
            (shingles >> np.uint64(32)).astype(np.uint32),
            shingles.astype(np.uint16),
            starts,
            digests,
            np.full(count, MODE_STOP, np.uint8),
            np.zeros(count, np.uint8),
        ),
        sources,
    )


@inlined
def _unit(bits: np.uint64) -> float:
    return np.float64(bits >> np.uint64(11)) / 9007199254740992.0


@inlined
def _draw(number: int, place: int, salt: np.uint64) -> np.uint64:
    return mix(mix(np.uint64(number) * _STEP + salt) + np.uint64(place) * _STEP)


@inlined
def _shingle(number: int, place: int, salt: np.uint64) -> np.uint64:
    """31 bits of hash, one for content, 32 of which the lower half are the extra bits."""
    bits = _draw(number, place, salt)
    content = _unit(mix(bits + _STEP)) < CONTENT_SHARE
    return bits & ~np.uint64(1 << 32) | np.uint64(content) << np.uint64(32)


@compiled
def _source(number: int) -> int:
    """The article that this one copies, or -1."""
    if number == 0 or _unit(_draw(number, 0, _COPY_SALT)) >= COPY_SHARE:
        return -1
    back = _draw(number, 0, _SOURCE_SALT) % np.uint64(min(number, RECENT_ARTICLES))
    return number - 1 - int(back)


@compiled
def _fill(number: int, chain: NDArray[np.int64], out: NDArray[np.uint64]) -> int:
    """Write the shingles of an article, sorted; return how many."""
    links = 0
    source = _source(number)
    while source >= 0 and links < len(chain):
        chain[links] = number
        links += 1
        number = source
        source = _source(number)
    count = FEWEST_SHINGLES + int(_draw(number, 0, _EDIT_SALT) % np.uint64(SHINGLE_SPREAD))
    for place in range(count):
        out[place] = _shingle(number, place, _SET_SALT)
    for link in range(links - 1, -1, -1):
        for place in range(count):
            if _unit(_draw(chain[link], place, _EDIT_SALT)) < REPLACED_SHARE:
                out[place] = _shingle(chain[link], place, _SET_SALT)
    out[:count].sort()
    kept = 0
    for place in range(count):
        if place == 0 or out[place] >> np.uint64(32) != out[kept - 1] >> np.uint64(32):
            out[kept] = out[place]
            kept += 1
    return kept


@compiled
def _generate(
    first: int, count: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    shingles = np.empty(count * (FEWEST_SHINGLES + SHINGLE_SPREAD), np.uint64)
    starts = np.zeros(count + 1, np.int64)
    digests = np.empty(count, np.uint64)
    sources = np.empty(count, np.int64)
    chain = np.empty(_CHAIN, np.int64)
    used = 0
    for article in range(count):
        used += _fill(first + article, chain, shingles[used:])
        starts[article + 1] = used
        digests[article] = _draw(first + article, 0, _DIGEST_SALT)
        sources[article] = _source(first + article)
    return shingles[:used].copy(), starts, digests, sources
