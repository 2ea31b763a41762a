"""A bucket gives its newest entries only, so what lies behind them is not even looked for."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from plain import MAX_KEYS, buckets_in, open_rocks, records_of

from streamdedup.config import StateConfig

MOST = 12
HEADS = 6


@pytest.mark.parametrize(("in_head", "segments"), [(MOST, 0), (MOST - 1, 1), (0, 1)])
def test_no_segment_is_asked_that_is_older_than_a_full_bucket(
    tmp_path: Path, in_head: int, segments: int
) -> None:
    state = StateConfig(
        head_articles=64, fan_in=16, bucket_entries=MOST, filter_bits=32, cache_mib=8
    )
    hot = list(range(MAX_KEYS))
    with closing(open_rocks(tmp_path, state)) as store:
        for _ in range(HEADS):
            store.append(records_of([hot] * 64, [0] * 64))
        # As many articles without keys as it takes to make segments of the heads.
        store.append(records_of([[]] * 63, [0] * 63))
        store.append(records_of([[]], [0]))
    # Opened again, it has no pages in memory.
    with closing(open_rocks(tmp_path, state)) as store:
        store.append(records_of([hot] * in_head, [0] * in_head))
        assert store.segments >= HEADS
        before = store.pages_read
        found = buckets_in(store, hot)
        assert all(len(numbers) == MOST for numbers in found)
        assert (store.pages_read - before > 0) == (segments > 0)
        assert store.pages_read - before <= segments * MAX_KEYS
