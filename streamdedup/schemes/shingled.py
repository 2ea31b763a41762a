"""The text schemes: shingle sets with band keys and crop keys.

`news` cuts stop-word shingles, `shingles` the k-shingles of characters or words.  The payload
(`layout`) holds the shingle hashes or, in signature mode, the min-hashes; either way every key can
be computed from it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streamdedup.schemes.compare import compare_sets, compare_signatures
from streamdedup.schemes.contract import KeyKind, Keys, Payloads, Similarities, Traits
from streamdedup.schemes.layout import keys_of, set_ends, with_crops, with_signature
from streamdedup.sketch.minhash import FAMILY_VERSION, hash_family
from streamdedup.text.kernel import MODE_EMPTY
from streamdedup.text.shingler import Shingler, ShingleSets

if TYPE_CHECKING:
    from streamdedup.article import Article
    from streamdedup.config import MatchConfig, SchemeConfig

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
        traits = Traits(np.diff(sets.starts), sets.languages, self.shingler.languages)
        crops = self._config.crop_keys
        if self._by_signature:
            words, starts = with_signature(
                sets.hashes,
                sets.extras,
                sets.starts,
                self._factors,
                self._summands,
                crops,
                self._config.min_shingles,
            )
        else:
            words, starts = with_crops(sets.hashes, sets.extras, sets.starts, crops)
        return Payloads(
            words.view(np.uint8),
            starts[:-1] * 4,
            starts[1:] * 4,
            sets.digests,
            sets.modes == MODE_EMPTY,
            traits,
        )

    def keys(self, payloads: Payloads) -> Keys:
        """Band and crop keys; none for a set below the floor."""
        return Keys(
            *keys_of(
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
        sides = (*self._sets(left, left_index), *self._sets(right, right_index))
        match = self._match
        if self._by_signature:
            return Similarities(*compare_signatures(*sides, len(self._factors), match.jaccard))
        return Similarities(
            *compare_sets(*sides, match.jaccard, match.containment, match.containment_shingles)
        )

    def _sets(
        self, payloads: Payloads, index: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
        """Where what is compared lies in the payloads, in words."""
        starts, ends = payloads.starts[index] // 4, payloads.ends[index] // 4
        if not self._by_signature:
            ends = set_ends(starts, ends, self._config.crop_keys)
        return payloads.data.view(np.uint32), starts, ends
