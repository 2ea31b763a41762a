"""The text schemes: shingle sets with band keys and crop keys.

`news` cuts stop-word shingles, `shingles` the k-shingles of characters or words.  The payload is
the sorted shingle hashes, or in signature mode the min-hashes followed by the crop hashes; either
way every key can be computed from it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled
from streamdedup.schemes.compare import compare_sets, compare_signatures
from streamdedup.schemes.contract import KeyKind, Keys, Payloads, Similarities, Traits
from streamdedup.sketch.minhash import (
    FAMILY_VERSION,
    band_keys,
    crop_hashes,
    crop_keys,
    hash_family,
    signature,
)
from streamdedup.text.kernel import MODE_EMPTY
from streamdedup.text.shingler import Shingler, ShingleSets

if TYPE_CHECKING:
    from streamdedup.article import Article
    from streamdedup.config import MatchConfig, SchemeConfig

BAND, CROP = range(2)
# Two shared crop keys make a candidate: one alone brings twenty times the candidates.
CROP_NEEDED = 2


class ShingledScheme:
    """Shingles → min-hash → keys, for articles."""

    measures = ("jaccard", "containment", "signature")

    def __init__(self, config: SchemeConfig, match: MatchConfig) -> None:
        news = config.name == "news"
        self.shingler = Shingler(
            unit="stop" if news else config.unit,
            k=3 if news else config.k,
            bag=config.bag and not news,
            stop_share=config.stop_share,
        )
        self._config = config
        self._match = match
        self._by_signature = match.verify == "signature"
        # A signature that is compared needs more hashes than the bands do.
        hashes = config.bands * config.rows
        if self._by_signature:
            hashes = max(hashes, config.signature_hashes)
        family = hash_family(hashes)
        self._factors = np.ascontiguousarray(family[:, 0])
        self._summands = np.ascontiguousarray(family[:, 1])
        self.kinds = (KeyKind("band", 1), KeyKind("crop", CROP_NEEDED))
        self.min_shingles = config.min_shingles
        self.max_keys = config.bands + config.crop_keys

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """Everything that the keys and payloads in an index depend on."""
        config = self._config
        return {
            "scheme.name": config.name,
            "scheme.family": str(FAMILY_VERSION),
            "scheme.bands": str(config.bands),
            "scheme.rows": str(config.rows),
            "scheme.crop_keys": str(config.crop_keys),
            "scheme.min_shingles": str(config.min_shingles),
            "scheme.hashes": str(len(self._factors)),
            "match.verify": self._match.verify,
            **self.shingler.fingerprint,
        }

    def payloads(self, items: Sequence[Article]) -> Payloads:
        """The shingle sets (or signatures) of the articles' texts."""
        texts = [item.text for item in items]
        for item in items:
            if not isinstance(item.text, str):
                raise TypeError(f"article {item.id!r}: text is {type(item.text).__name__}, not str")
        sets = self.shingler.shingle(texts)
        return self.payloads_of(sets)

    def payloads_of(self, sets: ShingleSets) -> Payloads:
        """The payloads of shingle sets that are already cut."""
        hashes, starts = sets.hashes, sets.starts
        traits = Traits(np.diff(starts), sets.languages, self.shingler.languages)
        if self._by_signature:
            hashes, starts = _signatures(
                hashes,
                starts,
                self._factors,
                self._summands,
                self._config.crop_keys,
                self._config.min_shingles,
            )
        return Payloads(
            hashes.view(np.uint8),
            starts[:-1] * 4,
            starts[1:] * 4,
            sets.digests,
            sets.modes == MODE_EMPTY,
            traits,
        )

    def keys(self, payloads: Payloads) -> Keys:
        """Band and crop keys; none for a set below the floor."""
        return Keys(
            *_keys(
                payloads.data.view(np.uint32),
                payloads.starts // 4,
                payloads.ends // 4,
                self._factors,
                self._summands,
                self._config.bands,
                self._config.rows,
                self._config.crop_keys,
                self._config.min_shingles,
                self._by_signature,
            )
        )

    def compare(
        self,
        left: Payloads,
        left_index: NDArray[np.int64],
        right: Payloads,
        right_index: NDArray[np.int64],
    ) -> Similarities:
        """Exact similarity of the sets, or the estimate from signatures."""
        sides = (
            left.data.view(np.uint32),
            left.starts[left_index] // 4,
            left.ends[left_index] // 4,
            right.data.view(np.uint32),
            right.starts[right_index] // 4,
            right.ends[right_index] // 4,
        )
        match = self._match
        if self._by_signature:
            return Similarities(*compare_signatures(*sides, len(self._factors), match.jaccard))
        return Similarities(
            *compare_sets(*sides, match.jaccard, match.containment, match.containment_shingles)
        )


@compiled
def _signatures(
    hashes: NDArray[np.uint32],
    starts: NDArray[np.int64],
    factors: NDArray[np.uint32],
    summands: NDArray[np.uint32],
    crops: int,
    min_shingles: int,
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """By article: its signature, then its crop hashes; nothing for a set below the floor."""
    count = len(starts) - 1
    length = len(factors)
    out = np.empty(count * (length + crops), np.uint32)
    out_starts = np.zeros(count + 1, np.int64)
    used = 0
    for article in range(count):
        shingles = hashes[starts[article] : starts[article + 1]]
        if len(shingles) >= min_shingles:
            signature(shingles, factors, summands, out[used : used + length])
            used += length
            used += crop_hashes(shingles, crops, out, used)
        out_starts[article + 1] = used
    return out[:used].copy(), out_starts


@compiled
def _keys(
    payload: NDArray[np.uint32],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    factors: NDArray[np.uint32],
    summands: NDArray[np.uint32],
    bands: int,
    rows: int,
    crops: int,
    min_shingles: int,
    by_signature: bool,
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.int64]]:
    count = len(starts)
    values = np.empty(count * (bands + crops), np.uint64)
    kinds = np.empty(count * (bands + crops), np.uint8)
    key_starts = np.zeros(count + 1, np.int64)
    length = len(factors)
    minima = np.empty(length, np.uint32)
    smallest = np.empty(crops, np.uint32)
    used = 0
    for article in range(count):
        data = payload[starts[article] : ends[article]]
        if len(data) > 0 and (by_signature or len(data) >= min_shingles):
            if by_signature:
                minima[:] = data[:length]
                found = len(data) - length
                smallest[:found] = data[length:]
            else:
                signature(data, factors, summands, minima)
                found = crop_hashes(data, crops, smallest, 0)
            band_keys(minima, bands, rows, values[used:])
            kinds[used : used + bands] = BAND
            used += bands
            crop_keys(smallest[:found], values[used:])
            kinds[used : used + found] = CROP
            used += found
        key_starts[article + 1] = used
    return values[:used].copy(), kinds[:used].copy(), key_starts
