"""The two keys that every scheme gets for free: the article's id, and its exact content.

With them redelivery, revision and exact copies need no index of their own.  They come before the
scheme's keys and are numbered before its kinds.
"""

from __future__ import annotations

import numpy as np
import xxhash
from numpy.typing import NDArray

from streamdedup.compiled import compiled
from streamdedup.hashing import mix
from streamdedup.schemes.contract import Keys, Payloads, Scheme
from streamdedup.store.records import Records

ID_KIND, EXACT_KIND, OWN_KINDS = 0, 1, 2
_ID_SEED = 0x1D
_EXACT_SALT = np.uint64(0xE8AC7)


def id_key(id: bytes) -> int:
    """The key under which every article of this id lies."""
    return xxhash.xxh3_64_intdigest(id, _ID_SEED)


def all_keys(ids: list[bytes], payloads: Payloads, scheme_keys: Keys) -> Keys:
    """The id key, the content key, then the scheme's own, by article."""
    id_keys = np.fromiter(map(id_key, ids), np.uint64, len(ids))
    return Keys(
        *_interleaved(
            id_keys, payloads.digests, scheme_keys.values, scheme_keys.kinds, scheme_keys.starts
        )
    )


def rekeyed(scheme: Scheme, records: Records) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The keys of stored records, computed again."""
    ids = [records.id(index) for index in range(len(records))]
    keys = all_keys(ids, records.payloads, scheme.keys(records.payloads))
    return keys.values, keys.starts


@compiled
def _interleaved(
    id_keys: NDArray[np.uint64],
    digests: NDArray[np.uint64],
    values: NDArray[np.uint64],
    kinds: NDArray[np.uint8],
    starts: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.int64]]:
    count = len(id_keys)
    out = np.empty(len(values) + OWN_KINDS * count, np.uint64)
    out_kinds = np.empty(len(out), np.uint8)
    out_starts = np.zeros(count + 1, np.int64)
    used = 0
    for article in range(count):
        out[used] = id_keys[article]
        out_kinds[used] = ID_KIND
        out[used + 1] = mix(digests[article] + _EXACT_SALT)
        out_kinds[used + 1] = EXACT_KIND
        used += OWN_KINDS
        for at in range(starts[article], starts[article + 1]):
            out[used] = values[at]
            out_kinds[used] = OWN_KINDS + kinds[at]
            used += 1
        out_starts[article + 1] = used
    return out, out_kinds, out_starts
