"""Damaged bytes are told as damage, with the directory and the remedy, or change nothing at all.

After every damage the feed brings a copy of each article: one that was lost shows in a verdict.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from conftest import Run, command_environment, json_lines
from crash_child import CONFIG, news

from streamdedup import Article, Deduplicator
from streamdedup.article import rfc3339
from streamdedup.errors import StateCorrupt
from streamdedup.store import pieces
from streamdedup.store.database import FILTERS, Database
from streamdedup.store.manifest import CLOCK, put_note, read_manifest
from streamdedup.store.segments import segment_key
from streamdedup.verdict import Rejection, Verdict

COUNT = 150
FIRST = news(COUNT)
COPIES = [Article(id=f"c{a.id}", text=a.text, published=1_000 * COUNT) for a in FIRST]
SETTINGS = ["state.head_articles=16", "state.fan_in=2", "state.bucket_entries=8"]
SETTINGS += ["state.cache_mib=8", "window.seconds=600"]
# Data blocks, then the smaller blocks behind them, then the footer, as shares of a table.
PLACES = [0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95, 0.98, 0.999]
Outcomes = list[Verdict | Rejection]


def judge_copies(state: Path) -> Outcomes:
    with Deduplicator.open(state, CONFIG) as engine:
        return [v for at in range(0, COUNT, 30) for v in engine.process(COPIES[at : at + 30])]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables only, from several openings."""
    state = tmp_path_factory.mktemp("closed") / "state"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE_BLOCKS", 8)  # so small a filter would be one piece
        for first in range(0, COUNT, 50):
            with Deduplicator.open(state, CONFIG) as engine:
                for at in range(first, first + 50, 5):
                    engine.process(FIRST[at : at + 5])
    return state


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything is still in the log, in a last block and in one before it."""
    state = tmp_path_factory.mktemp("killed") / "state"
    code = (
        "import os, sys; from test_corruption import *\n"
        "engine = Deduplicator.open(Path(sys.argv[1]), CONFIG)\n"
        "for at in range(0, COUNT, 5): engine.process(FIRST[at : at + 5])\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path.cwd())])}
    arguments = [sys.executable, "-c", code, str(state)]
    done = subprocess.run(arguments, env=command_environment(path), timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    return state


@pytest.fixture(scope="module")
def undisturbed(closed: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    copy = tmp_path_factory.mktemp("undisturbed") / "state"
    shutil.copytree(closed, copy)
    return judge_copies(copy)


def flip(file: Path, at: int, mask: int = 0x80) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= mask
    file.write_bytes(content)


def damaged(original: Path, scratch: Path, damage: Callable[[Path], None]) -> Path:
    state = scratch / "state"
    shutil.rmtree(state, ignore_errors=True)
    shutil.copytree(original, state)
    damage(state)
    return state


def raised(state: Path, undisturbed: Outcomes) -> bool:
    """Whether the damage was told; if it was not, it must have changed nothing."""
    try:
        outcomes = judge_copies(state)
    except StateCorrupt as error:
        check_message(str(error), state)
        return True
    assert outcomes == undisturbed
    return False


def must_raise(state: Path) -> None:
    with pytest.raises(StateCorrupt) as caught:
        judge_copies(state)
    check_message(str(caught.value), state)


def check_message(message: str, state: Path) -> None:
    assert str(state) in message
    assert "build the index again" in message
    assert "\n" not in message


def log_records(log: bytes) -> Iterator[int]:
    """Where the records of a log begin (`streamdedup.store.torn` tells the format)."""
    at = 0
    while at + 7 <= len(log):
        if 32_768 - at % 32_768 < 7:
            at += 32_768 - at % 32_768
            continue
        yield at
        at += 7 + int.from_bytes(log[at + 4 : at + 6], "little")


def test_every_copy_is_found_in_an_intact_state(undisturbed: Outcomes) -> None:
    assert all(isinstance(v, Verdict) and v.verdict == "duplicate" for v in undisturbed)


def test_a_killed_state_answers_like_a_closed_one(
    killed: Path, tmp_path: Path, undisturbed: Outcomes
) -> None:
    assert judge_copies(damaged(killed, tmp_path, lambda _: None)) == undisturbed


@pytest.mark.parametrize("share", PLACES)
def test_a_flipped_byte_in_a_table_never_gives_a_wrong_verdict(
    closed: Path, tmp_path: Path, undisturbed: Outcomes, share: float
) -> None:
    told = []
    for table in sorted(file.name for file in closed.glob("*.sst")):
        size = (closed / table).stat().st_size
        state = damaged(closed, tmp_path, lambda s, t=table, n=size: flip(s / t, int(share * n)))
        told.append(raised(state, undisturbed))
    # Bytes that are never read again may be anything, but not in every table.
    assert any(told)


def test_a_flipped_byte_anywhere_in_the_manifest_is_damage(closed: Path, tmp_path: Path) -> None:
    [manifest] = closed.glob("MANIFEST-*")
    for at in range(0, manifest.stat().st_size, manifest.stat().st_size // 40):
        must_raise(damaged(closed, tmp_path, lambda s, at=at: flip(s / manifest.name, at)))


def test_a_flipped_length_in_the_manifest_is_damage(closed: Path, tmp_path: Path) -> None:
    [manifest] = closed.glob("MANIFEST-*")
    for at in list(log_records(manifest.read_bytes()))[::4]:
        must_raise(damaged(closed, tmp_path, lambda s, at=at: flip(s / manifest.name, at + 5)))


def test_a_flipped_byte_anywhere_in_the_log_is_damage(killed: Path, tmp_path: Path) -> None:
    [log] = killed.glob("*.log")
    for at in range(0, log.stat().st_size, log.stat().st_size // 40):
        must_raise(damaged(killed, tmp_path, lambda s, at=at: flip(s / log.name, at)))


@pytest.mark.parametrize("byte", [4, 5, 6], ids=["length", "length-high", "kind"])
def test_a_flipped_record_header_in_the_log_is_not_taken_for_a_torn_end(
    killed: Path, tmp_path: Path, byte: int
) -> None:
    [log] = killed.glob("*.log")
    places = list(log_records(log.read_bytes()))
    assert len(places) > 60
    for at in [*places[:-4:6], *places[-4:]]:
        must_raise(damaged(killed, tmp_path, lambda s, at=at: flip(s / log.name, at + byte)))


def test_zeros_over_a_record_of_the_log_are_not_taken_for_its_end(
    killed: Path, tmp_path: Path
) -> None:
    [log] = killed.glob("*.log")
    content = log.read_bytes()
    at = list(log_records(content))[-10]
    zeroed = content[:at] + bytes(64) + content[at + 64 :]
    must_raise(damaged(killed, tmp_path, lambda s: (s / log.name).write_bytes(zeroed) and None))


@pytest.mark.parametrize("bytes_off", [1, 5, 100])
def test_a_torn_end_of_the_log_opens_without_the_torn_write(
    killed: Path, tmp_path: Path, bytes_off: int
) -> None:
    [log] = killed.glob("*.log")
    size = log.stat().st_size - bytes_off
    state = damaged(killed, tmp_path, lambda s: os.truncate(s / log.name, size))
    with Deduplicator.open(state, CONFIG) as engine:
        assert engine.store.next_number == COUNT - 5


def test_a_flipped_byte_in_current_is_damage(closed: Path, tmp_path: Path) -> None:
    for at in range((closed / "CURRENT").stat().st_size):
        must_raise(damaged(closed, tmp_path, lambda s, at=at: flip(s / "CURRENT", at, 1)))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_table_is_damage(closed: Path, tmp_path: Path, share: float) -> None:
    for table in closed.glob("*.sst"):
        size = int(table.stat().st_size * share)
        name = table.name
        must_raise(damaged(closed, tmp_path, lambda s, t=name, n=size: os.truncate(s / t, n)))


@pytest.mark.parametrize("pattern", ["*.sst", "CURRENT", "MANIFEST-*"])
def test_a_deleted_file_is_damage(closed: Path, tmp_path: Path, pattern: str) -> None:
    for file in closed.glob(pattern):
        must_raise(damaged(closed, tmp_path, lambda s, n=file.name: (s / n).unlink()))


def harm_piece(state: Path, place: int, harm: Callable[[bytes], bytes | None]) -> None:
    """In the filter of the first live segment, another piece at this place, or none."""
    database = Database(state)
    id = read_manifest(database).segments[0].id
    with closing(database.scan(FILTERS, segment_key(id))) as stored:
        pieces = [(key, piece) for key, piece in stored if key.startswith(segment_key(id))]
    assert len(pieces) > 2
    key, piece = pieces[place]
    harmed = harm(piece)
    batch = database.batch()
    batch.delete_range(FILTERS, key, key + b"\0")
    if harmed is not None:
        batch.put(FILTERS, key, harmed)
    database.write(batch)
    database.close()


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda piece: None, id="missing"),
        pytest.param(lambda piece: b"", id="empty"),
        pytest.param(lambda piece: piece[:-64], id="a-block-less"),
        pytest.param(lambda piece: piece[:-1], id="a-byte-less"),
        pytest.param(lambda piece: piece + bytes(64), id="a-block-more"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, -1], ids=["first", "middle", "last"])
def test_a_filter_that_has_lost_a_part_is_damage(
    closed: Path, tmp_path: Path, harm: Callable[[bytes], bytes | None], place: int
) -> None:
    must_raise(damaged(closed, tmp_path, lambda state: harm_piece(state, place, harm)))


def test_a_clock_that_cannot_be_read_is_damage(closed: Path, tmp_path: Path) -> None:
    def harm(state: Path) -> None:
        with closing(Database(state)) as database:
            batch = database.batch()
            put_note(batch, CLOCK, b"noon")
            database.write(batch)

    must_raise(damaged(closed, tmp_path, harm))


def test_opening_a_damaged_state_leaves_its_log_for_a_rescue(killed: Path, tmp_path: Path) -> None:
    [log] = killed.glob("*.log")
    at = list(log_records(log.read_bytes()))[-10]
    state = damaged(killed, tmp_path, lambda s: flip(s / log.name, at + 5))
    before = (state / log.name).read_bytes()
    with suppress(StateCorrupt):
        judge_copies(state)
    assert (state / log.name).read_bytes() == before


@pytest.mark.parametrize("what", ["table", "log", "current"])
def test_the_command_line_tells_damage_without_a_traceback(
    closed: Path, killed: Path, tmp_path: Path, run: Run, what: str
) -> None:
    if what == "table":
        table = max(closed.glob("*.sst"), key=lambda file: file.stat().st_size)
        state = damaged(closed, tmp_path, lambda s: os.truncate(s / table.name, 1_000))
    elif what == "log":
        [log] = killed.glob("*.log")
        at = list(log_records(log.read_bytes()))[-10]
        state = damaged(killed, tmp_path, lambda s: flip(s / log.name, at + 5))
    else:
        state = damaged(closed, tmp_path, lambda s: (s / "CURRENT").unlink())
    feed = tmp_path / "feed.jsonl"
    rows = [{"id": c.id, "text": c.text, "published": rfc3339(c.published or 0)} for c in COPIES]
    feed.write_bytes(json_lines(rows))
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    done = run("scan", "--state", state, feed, *settings)
    assert done.code == 4
    assert done.out == ""
    last = done.err.splitlines()[-1]
    assert last.startswith("error: ")
    check_message(last, state)
    assert "Traceback" not in done.err
