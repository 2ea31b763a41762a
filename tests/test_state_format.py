"""The hashes as `docs/state-format.md` gives them, computed from its words and numbers alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xxhash
from conftest import HARBOUR, ROOT

from streamdedup import Article
from streamdedup.config import MatchConfig, SchemeConfig
from streamdedup.identity import all_keys
from streamdedup.schemes.shingled import ShingledScheme

TEXT = (ROOT / "docs" / "state-format.md").read_text()
BITS = (1 << 64) - 1
SCHEME = SchemeConfig(name="shingles", unit="word", k=3, bands=4, rows=3, crop_keys=5)


def given(number: int) -> int:
    """A number that stands in the page, too."""
    assert f"0x{number:X}" in TEXT or str(number) in TEXT
    return number


def mix(x: int) -> int:
    x ^= x >> 33
    x = x * given(0xFF51AFD7ED558CCD) & BITS
    x ^= x >> 33
    x = x * given(0xC4CEB9FE1A85EC53) & BITS
    return x ^ x >> 33


def fold(s: int, x: int) -> int:
    s = (s ^ x) * 0xFF51AFD7ED558CCD & BITS
    return s ^ s >> 29


def folded(s: int, parts: Iterable[int]) -> int:
    for part in parts:
        s = fold(s, part)
    return mix(s)


def token(word: str) -> int:
    utf8 = word.encode()
    eights = (utf8[at : at + 8] for at in range(0, len(utf8), 8))
    return folded(given(0x9E3779B97F4A7C15), (int.from_bytes(e, "little") for e in eights))


def test_digest_shingles_and_keys_are_those_of_the_page() -> None:
    tokens = [token(word.strip(".,:").lower()) for word in HARBOUR.split()]
    places = (i * given(0x2545F4914F6CDD1D) & BITS for i in range(1, len(tokens) + 1))
    terms = (fold(place, one) for place, one in zip(places, tokens, strict=True))
    digest = mix((len(tokens) + sum(terms)) & BITS)

    shingles = {}
    for first in range(len(tokens) - 2):
        h = folded(0x9E3779B97F4A7C15, tokens[first : first + 3])
        hash, extra = h >> 33 << 1, h & 0xFFFF
        shingles[hash] = min(extra, shingles.get(hash, extra))

    random = np.random.Generator(np.random.PCG64(given(20260302)))
    family = random.integers(0, 1 << 32, size=(12, 2), dtype=np.uint32).tolist()
    minima = [min(((a | 1) * x + b) % (1 << 32) for x in shingles) for a, b in family]
    keys = [
        xxhash.xxh3_64_intdigest(b"a1", given(0x1D)),
        mix(digest + given(0xE8AC7) & BITS),
        *(folded(mix(given(0xBA2D) + j), minima[3 * j : 3 * j + 3]) for j in range(4)),
        *(mix(fold(given(0xC209), x << 16 | shingles[x])) for x in sorted(shingles)[:5]),
    ]

    scheme = ShingledScheme(SCHEME, MatchConfig())
    payloads = scheme.payloads([Article(id="a1", text=HARBOUR)])
    assert payloads.digests.tolist() == [digest]
    words = payloads.data.view(np.uint32).tolist()
    assert words[: len(shingles)] == sorted(shingles)
    assert all_keys([b"a1"], payloads, scheme.keys(payloads)).values.tolist() == keys
