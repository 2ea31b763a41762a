"""Reading lines: plain, gzipped, from a pipe, and never more of one than the limit."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdedup.cli.lines import CHUNK_BYTES, Line, LineSource, Pause
from streamdedup.errors import SourceError


def lines_of(path: Path, limit_bytes: int = 1_000_000) -> list[Line]:
    with LineSource(str(path)) as source:
        return [line for line in source.lines(limit_bytes) if isinstance(line, Line)]


def contents(path: Path, limit_bytes: int = 1_000_000) -> list[bytes | None]:
    return [line.content for line in lines_of(path, limit_bytes)]


@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"").replace(b"\x1f", b""))))
def test_lines_come_back_as_written_and_numbered(
    tmp_path_factory: pytest.TempPathFactory, written: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "f"
    path.write_bytes(b"".join(line + b"\n" for line in written))
    expected = [
        line.removeprefix(b"\xef\xbb\xbf") if i == 0 else line for i, line in enumerate(written)
    ]
    assert [(line.number, line.content) for line in lines_of(path)] == list(
        enumerate(expected, start=1)
    )


def test_the_last_line_needs_no_line_end(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one\ntwo")
    assert contents(tmp_path / "f") == [b"one", b"two"]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    assert contents(tmp_path / "f") == []


def test_a_line_may_span_many_chunks(tmp_path: Path) -> None:
    long = b"x" * (2 * CHUNK_BYTES + 5)
    (tmp_path / "f").write_bytes(b"a\n" + long + b"\nb\n")
    assert contents(tmp_path / "f") == [b"a", long, b"b"]


def test_gzip_is_known_by_its_first_byte_whatever_the_name(tmp_path: Path) -> None:
    for name in ("f.gz", "f.jsonl"):
        (tmp_path / name).write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
        assert contents(tmp_path / name) == [b"one", b"two"]


def test_a_line_at_the_limit_is_kept_and_one_over_it_is_not(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345\n123456\nend")
    assert lines_of(tmp_path / "f", limit_bytes=5) == [
        Line(1, b"12345", 5),
        Line(2, None, 6),
        Line(3, b"end", 3),
    ]


@pytest.mark.parametrize("name", ["f", "f.gz"])
def test_a_line_of_50_megabytes_is_never_held(tmp_path: Path, name: str) -> None:
    content = b"x" * 50_000_000 + b"\nnext\n"
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    del content
    tracemalloc.start()
    lines = lines_of(tmp_path / name, limit_bytes=1_000_000)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == [Line(1, None, 50_000_000), Line(2, b"next", 4)]
    assert peak_bytes < 6_000_000


DAMAGED = {
    "cut off": gzip.compress(b"one\n" * 1_000, mtime=0)[:-12],
    "empty": b"",
    "not gzip": b'{"id":"a"}\n',
    "flipped": gzip.compress(os.urandom(50_000), mtime=0)[:20_000] + b"\x00" * 500 + b"\xff" * 900,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_gzip_is_an_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.gz").write_bytes(content)
    with pytest.raises(SourceError, match=r"f\.gz.*gzip"):
        lines_of(tmp_path / "f.gz")


def test_a_pause_is_told_where_a_pipe_has_nothing_more(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = os.open(fifo, os.O_RDWR)
    os.write(writer, b"one\n")
    with LineSource(str(fifo)) as source:
        lines = source.lines(100)
        while next(lines) != Line(1, b"one", 3):
            pass
        # The pipe is open and empty: without the pause this would wait for ever.
        assert isinstance(next(lines), Pause)
        os.close(writer)
        assert [line for line in lines if isinstance(line, Line)] == []
