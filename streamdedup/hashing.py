"""The two steps that every hash here is made of: fixed for ever, as indexes hold their values."""

from __future__ import annotations

import numpy as np

from streamdedup.compiled import inlined

MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_33 = np.uint64(33)
_29 = np.uint64(29)


@inlined
def mix(value: np.uint64) -> np.uint64:
    """Spread every bit of the value over all 64 (the finaliser of MurmurHash3)."""
    value = np.uint64(value)
    value ^= value >> _33
    value *= MIX_1
    value ^= value >> _33
    value *= MIX_2
    value ^= value >> _33
    return value


@inlined
def fold_in(state: np.uint64, part: np.uint64) -> np.uint64:
    """One step of a running hash over 64-bit parts; order matters."""
    state = (np.uint64(state) ^ np.uint64(part)) * MIX_1
    return state ^ (state >> _29)
