"""The payload of a text, word by word (`docs/state-format.md`, "Payload"), and the keys in it.

Sorted shingle hashes, or a signature and the crop hashes; then the extra bits of the crop hashes,
two to a word.  How many there are of each follows from the length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled, inlined
from streamdedup.sketch.minhash import band_keys, crop_keys, crop_places, signature

BAND, CROP = range(2)

Words = NDArray[np.uint32]
Extras = NDArray[np.uint16]
Places = NDArray[np.int64]

_HALF = np.uint32(16)


@inlined
def _hashes_in(words: int, crops: int) -> int:
    """How many hashes come before their extra bits: n + ceil(min(n, crops) / 2) are `words`."""
    extras = (crops + 1) // 2
    return words - extras if words >= crops + extras else 2 * words // 3


@inlined
def _put_extras(extras: Extras, places: Places, found: int, out: Words) -> int:
    """Write the extra bits of what lies at the places; return how many words that takes."""
    words = (found + 1) // 2
    out[:words] = 0
    for index in range(found):
        out[index // 2] |= np.uint32(extras[places[index]]) << _HALF * np.uint32(index & 1)
    return words


@inlined
def _get_extras(words: Words, found: int, out: Extras) -> None:
    for index in range(found):
        out[index] = np.uint16(words[index // 2] >> _HALF * np.uint32(index & 1))


@compiled
def set_ends(starts: Places, ends: Places, crops: int) -> Places:
    """Where the shingle hashes of payloads end."""
    out = np.empty(len(starts), np.int64)
    for payload in range(len(starts)):
        out[payload] = starts[payload] + _hashes_in(ends[payload] - starts[payload], crops)
    return out


@compiled
def with_crops(hashes: Words, extras: Extras, starts: Places, crops: int) -> tuple[Words, Places]:
    """By article: its shingle hashes, then the extra bits of its crop hashes."""
    count = len(starts) - 1
    out = np.empty(len(hashes) + count * ((crops + 1) // 2), np.uint32)
    out_starts = np.zeros(count + 1, np.int64)
    places = np.empty(crops, np.int64)
    used = 0
    for article in range(count):
        first, end = starts[article], starts[article + 1]
        out[used : used + end - first] = hashes[first:end]
        used += end - first
        found = crop_places(hashes[first:end], crops, places)
        used += _put_extras(extras[first:end], places, found, out[used:])
        out_starts[article + 1] = used
    return out[:used], out_starts


@compiled
def with_signature(
    hashes: Words,
    extras: Extras,
    starts: Places,
    factors: Words,
    summands: Words,
    crops: int,
    min_shingles: int,
) -> tuple[Words, Places]:
    """By article: its signature, then its crop hashes, then their extra bits; nothing for a set
    below the floor."""
    count = len(starts) - 1
    length = len(factors)
    out = np.empty(count * (length + crops + (crops + 1) // 2), np.uint32)
    out_starts = np.zeros(count + 1, np.int64)
    places = np.empty(crops, np.int64)
    used = 0
    for article in range(count):
        first, end = starts[article], starts[article + 1]
        if end - first >= min_shingles:
            shingles = hashes[first:end]
            signature(shingles, factors, summands, out[used : used + length])
            used += length
            found = crop_places(shingles, crops, places)
            for index in range(found):
                out[used + index] = shingles[places[index]]
            used += found
            used += _put_extras(extras[first:end], places, found, out[used:])
        out_starts[article + 1] = used
    return out[:used], out_starts


@compiled
def keys_of(
    words: Words,
    starts: Places,
    ends: Places,
    factors: Words,
    summands: Words,
    bands: int,
    rows: int,
    crops: int,
    min_shingles: int,
    by_signature: bool,
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], Places]:
    """Band and crop keys of payloads, their kinds, and where those of each begin."""
    count = len(starts)
    values = np.empty(count * (bands + crops), np.uint64)
    kinds = np.empty(count * (bands + crops), np.uint8)
    key_starts = np.zeros(count + 1, np.int64)
    length = len(factors)
    minima = np.empty(length, np.uint32)
    places = np.empty(crops, np.int64)
    smallest = np.empty(crops, np.uint32)
    extras = np.empty(crops, np.uint16)
    used = 0
    for article in range(count):
        data = words[starts[article] : ends[article]]
        behind = length if by_signature and len(data) > 0 else 0
        hashes = data[behind : behind + _hashes_in(len(data) - behind, crops)]
        if behind > 0 or (len(hashes) > 0 and len(hashes) >= min_shingles):
            if by_signature:
                minima[:] = data[:length]
                found = len(hashes)
                smallest[:found] = hashes
            else:
                signature(hashes, factors, summands, minima)
                found = crop_places(hashes, crops, places)
                for index in range(found):
                    smallest[index] = hashes[places[index]]
            _get_extras(data[behind + len(hashes) :], found, extras)
            band_keys(minima, bands, rows, values[used:])
            kinds[used : used + bands] = BAND
            used += bands
            crop_keys(smallest[:found], extras[:found], values[used:])
            kinds[used : used + found] = CROP
            used += found
        key_starts[article + 1] = used
    return values[:used].copy(), kinds[:used].copy(), key_starts
