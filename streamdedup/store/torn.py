"""Telling a log that a crash cut off from one that was damaged before its end.

RocksDB takes a record that reaches past the end of its log (or one of zeros) for the torn last
write of a crash, and drops it with all that follows.  Behind a torn write there is nothing; if a
whole record follows, or the bytes left are one, its header was damaged and articles would be lost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdedup.compiled import compiled

# RocksDB's log format: blocks; a record is checksum (4 bytes), length (2), kind (1), payload.
_BLOCK = 32_768
_HEADER = 7
_KINDS = (1, 2, 3, 4, 9, 10)  # full, first, middle, last, compression, timestamp size
_MASK_DELTA = 0xA282EAD8


def damaged_before_end(log: bytes) -> int | None:
    """Where the bytes stop making sense although records follow; None if nothing would be lost."""
    at = 0
    data = np.frombuffer(log, np.uint8)
    while len(log) - at >= _HEADER:
        block_end = (at // _BLOCK + 1) * _BLOCK
        if block_end - at < _HEADER:  # too short for a header: filled up with zeros
            at = block_end
            continue
        end = at + _HEADER + int.from_bytes(log[at + 4 : at + 6], "little")
        last = min(block_end, len(log))
        if end > last or (log[at + 6] not in _KINDS and not _is_record(data, at, end)):
            return at if last < len(log) or _holds_record(data, at, last) else None
        at = end
    return None


def _crc32c_table() -> NDArray[np.int64]:
    table = np.arange(256, dtype=np.int64)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ 0x82F63B78, table >> 1)
    return table


_TABLE = _crc32c_table()


@compiled
def _is_record(log: NDArray[np.uint8], first: int, end: int) -> bool:
    """Whether the checksum at `first` is that of the kind and payload up to `end`."""
    crc = 0xFFFFFFFF
    for at in range(first + 6, end):
        crc = (crc >> 8) ^ int(_TABLE[(crc ^ int(log[at])) & 0xFF])
    crc ^= 0xFFFFFFFF
    masked = (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF
    stored = 0
    for at in range(4):
        stored |= int(log[first + at]) << (8 * at)
    return masked == stored


@compiled
def _holds_record(log: NDArray[np.uint8], first: int, end: int) -> bool:
    """Whether all the bytes are a record whose length is wrong, or a whole one begins in them."""
    if _is_record(log, first, end):
        return True
    for at in range(first + 1, end - _HEADER + 1):
        last = at + _HEADER + int(log[at + 4]) + 256 * int(log[at + 5])
        if 0 < int(log[at + 6]) < 16 and last <= end and _is_record(log, at, last):
            return True
    return False
