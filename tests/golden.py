"""Writes `golden.json`, the hash values that every index on disk relies on.

Run `python tests/golden.py` after a wanted change of a hash function, together with a new
`HASH_VERSION` or `FAMILY_VERSION`: the fingerprint must change when these values do.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from streamdedup.sketch.minhash import (
    FAMILY_VERSION,
    band_keys,
    crop_keys,
    crop_places,
    hash_family,
    signature,
)
from streamdedup.text.folding import PADDING
from streamdedup.text.shingler import Shingler
from streamdedup.text.words import HASH_VERSION, hash_word

GOLDEN_FILE = Path(__file__).with_name("golden.json")

WORDS = (
    "a",
    "the",
    "don't",
    "straße",
    "мост",
    "橋",
    "w" * 7,
    "w" * 8,
    "w" * 9,
    "w" * 16,
    "w" * 100,
)
SENTENCE = (
    "The harbour master said on Monday that the old pier isn’t safe, and that the ferry to the "
    "island would sail from the fishing port until the café at the end of the quay is rebuilt."
)
SETTINGS: tuple[tuple[str, int, bool], ...] = (
    ("stop", 3, False),
    ("word", 2, False),
    ("word", 1, True),
    ("char", 5, False),
    ("char", 2, True),
)
SET = (2, 3, 10, 0x7FFFFFFE, 0x80000001, 0xDEADBEEF, 0xFFFFFFFE)
EXTRAS = (0, 1, 0xFFFF, 0x8000, 7, 0xABCD, 42)
BANDS, ROWS, CROPS = 4, 3, 5

Golden = dict[str, object]


def golden() -> Golden:
    """The values as the code gives them now; 64-bit numbers as hexadecimal text."""
    family = hash_family(BANDS * ROWS)
    shingles = np.array(SET, np.uint32)
    minima = np.empty(BANDS * ROWS, np.uint32)
    signature(
        shingles,
        np.ascontiguousarray(family[:, 0]),
        np.ascontiguousarray(family[:, 1]),
        minima,
    )
    bands = np.empty(BANDS, np.uint64)
    band_keys(minima, BANDS, ROWS, bands)
    places = np.empty(CROPS, np.int64)
    places = places[: crop_places(shingles, CROPS, places)]
    crops = np.empty(len(places), np.uint64)
    crop_keys(shingles[places], np.array(EXTRAS, np.uint16)[places], crops)
    return {
        "versions": {"hash": HASH_VERSION, "family": FAMILY_VERSION},
        "words": {word: _hex(hash_word(_padded(word))) for word in WORDS},
        "family": family[:6].tolist(),
        "set": list(SET),
        "signature": minima.tolist(),
        "band_keys": [_hex(key) for key in bands],
        "extras": list(EXTRAS),
        "crop_places": places.tolist(),
        "crop_keys": [_hex(key) for key in crops],
        "texts": {
            f"{unit} {k} {'bag' if bag else 'set'}": _text(Shingler(unit=unit, k=k, bag=bag))
            for unit, k, bag in SETTINGS
        },
    }


def _text(shingler: Shingler) -> Golden:
    sets = shingler.shingle([SENTENCE])
    # The smallest ones tell all there is to tell about a hash function.
    return {
        "count": len(sets.of(0)),
        "first": sets.of(0)[:12].tolist(),
        "first_extras": sets.extras[:12].tolist(),
        "digest": _hex(sets.digests[0]),
    }


def _padded(word: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(word.encode() + bytes(PADDING), np.uint8)


def _hex(value: np.uint64) -> str:
    return f"{int(value):016x}"


if __name__ == "__main__":
    GOLDEN_FILE.write_text(json.dumps(golden(), indent=1, ensure_ascii=False) + "\n", "utf-8")
