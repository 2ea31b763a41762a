"""A segment in the making stores its filter as it goes: its end costs no more than a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import MAX_KEYS, open_rocks, records_of

from streamdedup.config import StateConfig
from streamdedup.errors import StateDiskError
from streamdedup.store import pieces
from streamdedup.store.build import Build, FullHead
from streamdedup.store.database import FILTERS, PAGES, Batch, Database
from streamdedup.store.filter import WORDS
from streamdedup.store.head import Head
from streamdedup.store.pieces import load_segment, put_pieces
from streamdedup.store.segments import Geometry

PIECE = 5  # does not divide what a step brings
PIECE_BYTES = 64 * PIECE
STATE = StateConfig(head_articles=1_024, fan_in=4, bucket_entries=4, cache_mib=8)
GEOMETRY = Geometry.of(
    head_articles=STATE.head_articles,
    max_keys=MAX_KEYS,
    fan_in=STATE.fan_in,
    bucket_entries=STATE.bucket_entries,
)


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE_BLOCKS", PIECE)
        yield


@pytest.fixture
def puts(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[int]]]:
    """By family, for each batch, the lengths of the values put."""
    made: dict[str, list[list[int]]] = {PAGES: [], FILTERS: []}
    new, put = Database.batch, Batch.put

    def batch(self: Database) -> Batch:
        for lengths in made.values():
            lengths.append([])
        return new(self)

    def counted(self: Batch, family: str, key: bytes, value: bytes) -> None:
        if family in made:
            made[family][-1].append(len(value))
        put(self, family, key, value)

    monkeypatch.setattr(Database, "batch", batch)
    monkeypatch.setattr(Batch, "put", counted)
    return made


def rows(count: int, seed: int = 0) -> list[list[int]]:
    return np.random.default_rng(seed).integers(0, 1 << 40, (count, MAX_KEYS)).tolist()


def full_head() -> Head:
    head = Head(base=0, articles=STATE.head_articles, max_keys=MAX_KEYS)
    batch = records_of(rows(STATE.head_articles), [0] * STATE.head_articles)
    head.insert(batch.records, batch.seen_ms, batch.keys, batch.key_starts)
    return head


def test_no_write_brings_more_of_a_filter_than_its_share_and_a_piece(
    tmp_path: Path, puts: dict[str, list[list[int]]]
) -> None:
    articles = 128
    with closing(open_rocks(tmp_path, STATE)) as store:
        for batch in range(26 * STATE.head_articles // articles):
            store.append(records_of(rows(articles, batch), [0] * articles))
        live = store.figures().filter_bytes
        biggest = max(segment.filter.nbytes for segment in store._index._live)
    # A merge brings the filter of `fan_in` heads in the time of one; so does one of merged ones.
    share = STATE.fan_in * articles * MAX_KEYS * STATE.filter_bits // 8
    written = [sum(lengths) for lengths in puts[FILTERS]]
    assert biggest > 25 * share
    assert max(written) <= share + PIECE_BYTES
    assert max(max(lengths, default=0) for lengths in puts[FILTERS]) == PIECE_BYTES
    # Heads were frozen, merged, and merged again.
    assert 2 * live < sum(written) < 4 * live


# Of each attempt, how many steps, and whether its write fails.
@settings(max_examples=20)
@given(plan=st.lists(st.tuples(st.integers(1, GEOMETRY.pages(0)), st.booleans()), max_size=12))
def test_a_step_that_could_not_be_written_is_done_again_and_the_filter_is_whole(
    plan: list[tuple[int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    database = Database(tmp_path_factory.mktemp("state"), cache_mib=8)
    with closing(database):
        build = Build(database, GEOMETRY, 1, FullHead(full_head(), GEOMETRY), STATE.filter_bits)
        write = database.write
        for steps, fails in plan:
            if fails:
                database.write = full_disk  # type: ignore[method-assign]
                with pytest.raises(StateDiskError):
                    build.advance(steps)
                database.write = write  # type: ignore[method-assign]
            else:
                build.advance(steps)
        assert build.advance(GEOMETRY.pages(0))
        made = build.result()
        loaded = load_segment(database, made.meta)
    assert loaded.meta == made.meta
    assert loaded.filter.tolist() == made.filter.tolist()


def full_disk(batch: Batch) -> None:
    raise StateDiskError("no space")


@given(
    blocks=st.integers(1, 40),
    stops=st.lists(st.integers(0, 40), max_size=6).map(sorted),
)
def test_a_piece_is_stored_once_and_not_before_its_last_block_is_final(
    blocks: int, stops: list[int]
) -> None:
    words = np.arange(blocks * WORDS, dtype=np.uint64)
    stored = b""
    count = 0

    class Sink:
        def put(self, family: str, key: bytes, value: bytes) -> None:
            nonlocal stored
            assert int.from_bytes(key[4:]) * PIECE_BYTES == len(stored)
            stored += value

    for final in [*stops, blocks]:
        count = put_pieces(Sink(), 1, words, count, min(final, blocks))  # type: ignore[arg-type]
        assert len(stored) <= 64 * final
        assert len(stored) > 64 * min(final, blocks) - PIECE_BYTES
    assert stored == words.tobytes()
