"""A batch of items made ready: payloads, keys, and which items no index can hold.

It is made ahead, beside the batches before: nothing that they do to the index can change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamdedup.article import FIRST_MS, LAST_MS
from streamdedup.clock import UNDATED
from streamdedup.identity import all_keys
from streamdedup.schemes.contract import Item, Keys, Payloads, Scheme
from streamdedup.store.contract import Foreseen
from streamdedup.store.records import MAX_ID_BYTES
from streamdedup.verdict import Rejection


@dataclass(frozen=True)
class Sketch:
    """Everything that can be known of a batch before its turn; safe to make ahead."""

    items: Sequence[Item]
    ids: list[bytes]
    published_ms: NDArray[np.int64]
    refused: dict[int, Rejection]
    payloads: Payloads
    keys: Keys
    foreseen: Foreseen | None = None


def sketched(scheme: Scheme, items: Sequence[Item]) -> Sketch:
    """The sketch of a batch."""
    payloads = scheme.payloads(items)
    ids = [_id_bytes(item) for item in items]
    published = [_published_ms(item) for item in items]
    refused = _refused(items, ids, published)
    if refused:
        payloads = replace(payloads, empty=payloads.empty.copy())
        for article in refused:
            payloads.empty[article] = True
            ids[article], published[article] = b"", UNDATED
    scheme_keys = scheme.keys(payloads)
    if len(items) and int(np.diff(scheme_keys.starts).max()) > scheme.max_keys:
        raise ValueError(f"the scheme gave an item more keys than its {scheme.max_keys}")
    keys = all_keys(ids, payloads, scheme_keys)
    return Sketch(items, ids, np.array(published, np.int64), refused, payloads, keys)


def _id_bytes(item: Item) -> bytes:
    if not isinstance(item.id, str):
        raise TypeError(f"an article's id is {type(item.id).__name__}, not str: {item.id!r}")
    try:
        return item.id.encode()
    except UnicodeEncodeError:  # half a surrogate pair: no verdict could name it
        return b""


def _published_ms(item: Item) -> int:
    if item.published is None:
        return UNDATED
    if type(item.published) is not int:
        raise TypeError(
            f"article {item.id!r}: published is {type(item.published).__name__}, not whole "
            "milliseconds since 1970 (streamdedup.article.milliseconds makes them of a datetime)"
        )
    return item.published


def _refused(items: Sequence[Item], ids: list[bytes], published: list[int]) -> dict[int, Rejection]:
    """What no index can hold; sources that decode JSON have tighter limits of their own."""
    refused = {}
    for article, (id, published_ms) in enumerate(zip(ids, published, strict=True)):
        if not 0 < len(id) <= MAX_ID_BYTES:
            refused[article] = Rejection(
                id=items[article].id,
                reason="bad_id",
                detail=f"the id is not Unicode text of 1 to {MAX_ID_BYTES:,} bytes",
            )
        elif published_ms != UNDATED and not FIRST_MS <= published_ms <= LAST_MS:
            refused[article] = Rejection(
                id=items[article].id,
                reason="bad_published",
                detail=f"{published_ms} ms is not in the years 1 to 9999",
            )
    return refused
