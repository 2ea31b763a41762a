"""What a store can tell of itself at any moment, cheap enough to be asked every second.

Plain numbers without a history: it knows no metrics.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DatabaseFigures:
    """RocksDB's own; all families together."""

    table_bytes: int = 0
    memtable_bytes: int = 0
    pending_compaction_bytes: int = 0
    running_compactions: int = 0
    stalled_seconds: float = 0.0
    background_errors: int = 0
    cache_bytes: int = 0
    cache_hits: int = 0
    cache_misses: int = 0


@dataclass(frozen=True)
class StoreFigures:
    """How much is remembered, in how many pieces, and what it costs."""

    articles: int
    segments: int = 0
    filter_bytes: int = 0
    pages_read: int = 0
    database: DatabaseFigures = DatabaseFigures()
