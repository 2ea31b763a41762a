"""The one door from Python texts to shingle sets: encodes, sends the rare text through the slow
normalisation, calls the kernel once a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamdedup.text.folding import PADDING, needs_normalising
from streamdedup.text.kernel import (
    CHAR_UNIT,
    STOP_UNIT,
    UNSPACED_K,
    WORD_UNIT,
    shingle_batch,
)
from streamdedup.text.normal import normalise
from streamdedup.text.stopwords import StopTable, default_stop_table
from streamdedup.text.tables import unicode_tables
from streamdedup.text.words import HASH_VERSION


@dataclass(frozen=True)
class ShingleSets:
    """Shingles of article i: `hashes[starts[i]:starts[i + 1]]`, sorted, each once; `extras` has 16
    more bits of each."""

    hashes: NDArray[np.uint32]
    extras: NDArray[np.uint16]
    starts: NDArray[np.int64]
    digests: NDArray[np.uint64]
    modes: NDArray[np.uint8]
    languages: NDArray[np.uint8]

    def of(self, article: int) -> NDArray[np.uint32]:
        """The shingles of one article."""
        return self.hashes[self.starts[article] : self.starts[article + 1]]


class Shingler:
    """Cuts texts into shingles of one kind.

    >>> sets = Shingler(unit="char", k=2).shingle(["abcab"])
    >>> len(sets.of(0))  # ab, bc, ca
    3
    """

    def __init__(
        self,
        *,
        unit: str = "stop",
        k: int = 3,
        bag: bool = False,
        stop_share: float = 0.12,
        stops: StopTable | None = None,
    ) -> None:
        if unit == "stop" and (k != 3 or bag):
            raise ValueError("stop-word shingles are sets of three words")
        self._unit = {"stop": STOP_UNIT, "word": WORD_UNIT, "char": CHAR_UNIT}[unit]
        self._k = k
        self._bag = bag
        self._stop_share = stop_share
        self._stops = stops if stops is not None else default_stop_table()
        self._tables = unicode_tables()
        self.languages = self._stops.lists.groups
        self.fingerprint = {
            "text.hash": str(HASH_VERSION),
            "text.unicode": self._tables.digest,
            "text.unit": unit,
            "text.k": str(k),
            "text.bag": str(bag).lower(),
        }
        if unit == "stop":
            self.fingerprint |= {
                "text.stop_lists": self._stops.lists.digest,
                "text.stop_share": str(stop_share),
                "text.unspaced_k": str(UNSPACED_K),
            }

    def shingle(self, texts: Sequence[str]) -> ShingleSets:
        """The shingle sets of a batch of texts."""
        text, starts = self._encoded(texts)
        tables = self._tables
        return ShingleSets(
            *shingle_batch(
                text,
                starts,
                tables.entries,
                tables.expansion_starts,
                tables.expansions,
                self._stops.slots,
                self._stops.seen,
                self._unit,
                self._k,
                self._bag,
                self._stop_share,
            )
        )

    def _encoded(self, texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        encoded = [_utf8(text) for text in texts]
        text, starts = _joined(encoded)
        # An ASCII string knows that it is one: no look at its bytes is needed.
        if all(map(str.isascii, texts)):
            return text, starts
        slow = np.flatnonzero(needs_normalising(text, starts, self._tables.entries))
        if len(slow) == 0:
            return text, starts
        for article in slow.tolist():
            encoded[article] = _utf8(normalise(texts[article]))
        return _joined(encoded)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair: not a character, so a separator
        return text.encode("utf-8", "replace")


def _joined(encoded: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    starts = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=starts[1:])
    return np.frombuffer(b"".join((*encoded, bytes(PADDING))), np.uint8), starts
