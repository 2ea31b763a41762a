"""What a scheme is: items in, payloads and bucket keys out, and a way to compare two payloads.

The engine and the stores know nothing else about what is being deduplicated: not text, not
shingles, only these arrays.  Keys come from payloads alone, so an index can be made again from
its records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Item(Protocol):
    """What the engine itself reads of an item; the rest is the scheme's business."""

    @property
    def id(self) -> str: ...

    @property
    def published(self) -> int | None: ...


@dataclass(frozen=True)
class Traits:
    """What a scheme noticed of the items on its way, for whoever watches: no key and no verdict
    depends on it.  `languages` are places in `language_names`, or beyond them for none."""

    features: NDArray[np.int64]
    languages: NDArray[np.uint8]
    language_names: tuple[str, ...]


@dataclass(frozen=True)
class Payloads:
    """Payload i is the bytes `data[starts[i]:ends[i]]`; `digests` tell exact copies apart."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    digests: NDArray[np.uint64]
    empty: NDArray[np.bool_]
    traits: Traits | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, item: int) -> bytes:
        """The bytes of one payload."""
        return self.data[self.starts[item] : self.ends[item]].tobytes()

    @staticmethod
    def from_bytes(payloads: Sequence[bytes], digests: Sequence[int]) -> Payloads:
        """Payloads from one bytes object an item, padded so that each starts on eight bytes."""
        padded = [payload + bytes(-len(payload) % 8) for payload in payloads]
        starts = np.zeros(len(padded) + 1, np.int64)
        np.cumsum([len(payload) for payload in padded], out=starts[1:])
        lengths = np.array([len(payload) for payload in payloads], np.int64)
        return Payloads(
            np.frombuffer(b"".join(padded), np.uint8),
            starts[:-1],
            starts[:-1] + lengths,
            np.array(digests, np.uint64),
            np.zeros(len(padded), np.bool_),
        )


@dataclass(frozen=True)
class Keys:
    """Keys of item i: `values[starts[i]:starts[i + 1]]`, each of a kind (0 = first kind)."""

    values: NDArray[np.uint64]
    kinds: NDArray[np.uint8]
    starts: NDArray[np.int64]


@dataclass(frozen=True)
class KeyKind:
    """A family of keys, and how many shared ones make a candidate."""

    name: str
    needed: int


@dataclass(frozen=True)
class Similarities:
    """By pair: the similarity, and which of the scheme's `measures` says so (-1 = no match)."""

    values: NDArray[np.float64]
    measures: NDArray[np.int8]


class Scheme(Protocol):
    """How items become keys.  Everything must be a pure function of the item."""

    @property
    def kinds(self) -> tuple[KeyKind, ...]:
        """The kinds of keys it makes."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Names for what `compare` measures."""

    @property
    def max_keys(self) -> int:
        """The most keys that one item can have."""

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """Every parameter that keys or payloads depend on, by name."""

    def payloads(self, items: Sequence[Any]) -> Payloads:
        """What is stored of each item."""

    def keys(self, payloads: Payloads) -> Keys:
        """The bucket keys, from the payloads alone."""

    def compare(
        self,
        left: Payloads,
        left_index: NDArray[np.int64],
        right: Payloads,
        right_index: NDArray[np.int64],
    ) -> Similarities:
        """Compare payload `left_index[p]` of `left` with `right_index[p]` of `right`, all p."""
