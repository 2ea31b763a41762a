"""`streamdedup scan`: what goes in, what comes out, and on which stream."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from conftest import HARBOUR, ORCHARD, SAMPLE, Run, json_lines, small_feed
from jsonschema import Draft202012Validator

from streamdedup.cli.intake import Intake
from streamdedup.cli.summary import ScanSummary
from streamdedup.config import InputConfig

SCHEMA = json.loads(files("streamdedup").joinpath("verdict.schema.json").read_text())
FEED = json_lines(small_feed())


def last_json(err: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(err.splitlines()[-1])
    return decoded


def test_one_verdict_a_line_in_input_order(run: Run) -> None:
    done = run("scan", "-", stdin=FEED)
    assert done.code == 0
    assert [(v["id"], v["verdict"], v["duplicate_of"]) for v in done.verdicts] == [
        ("a1", "unique", None),
        ("b1", "unique", None),
        ("a2", "duplicate", "a1"),
    ]
    assert done.verdicts[2]["story"] == "a1"
    assert done.verdicts[2]["published"] == "2026-03-02T08:00:00Z"


def test_verdicts_conform_to_the_schema(run: Run) -> None:
    validator = Draft202012Validator(SCHEMA)
    verdicts = run("scan", SAMPLE / "feed.jsonl").verdicts
    assert {v["reason"] for v in verdicts} >= {"new", "near", "exact", "redelivery"}
    for verdict in verdicts:
        validator.validate(verdict)


def test_files_are_read_one_after_the_other_plain_or_gzipped(run: Run, tmp_path: Path) -> None:
    first, second, third = small_feed()
    (tmp_path / "1.jsonl").write_bytes(json_lines([first]))
    (tmp_path / "2.jsonl.gz").write_bytes(gzip.compress(json_lines([second])))
    done = run("scan", "1.jsonl", "2.jsonl.gz", "-", stdin=json_lines([third]))
    assert [v["id"] for v in done.verdicts] == ["a1", "b1", "a2"]
    assert done.out == run("scan", "-", stdin=FEED).out


def test_the_same_input_gives_the_same_bytes_whatever_the_batch(run: Run) -> None:
    runs = [run("scan", SAMPLE / "feed.jsonl", "--batch", n) for n in ("1", "7", "1024")]
    articles = len((SAMPLE / "feed.jsonl").read_bytes().splitlines())
    assert [len(done.verdicts) for done in runs] == [articles] * 3
    assert len({done.out for done in runs}) == 1


def test_output_goes_to_a_file_on_request(run: Run, tmp_path: Path) -> None:
    done = run("scan", "-", "--output", "v.jsonl", stdin=FEED)
    assert done.out == ""
    assert (tmp_path / "v.jsonl").read_text() == run("scan", "-", stdin=FEED).out


def test_an_input_is_never_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_bytes(FEED)
    done = run("scan", "f.jsonl", "--output", "./f.jsonl")
    assert done.code == 2
    assert (tmp_path / "f.jsonl").read_bytes() == FEED


def test_without_a_state_directory_nothing_is_left_behind(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    assert run("scan", "-", stdin=FEED, env={"TMPDIR": str(tmp_path / "tmp")}).code == 0
    assert list((tmp_path / "tmp").iterdir()) == []
    assert [p.name for p in tmp_path.iterdir()] == ["tmp"]


def test_a_state_directory_remembers(run: Run) -> None:
    first, second, third = small_feed()
    assert run("scan", "-", "--state", "s", stdin=json_lines([first, second])).code == 0
    done = run("scan", "-", "--state", "s", stdin=json_lines([third]))
    assert [(v["id"], v["duplicate_of"], v["story"]) for v in done.verdicts] == [("a2", "a1", "a1")]


def test_settings_reach_the_engine(run: Run) -> None:
    strict_match = ("--set", "match.jaccard=1.0", "--set", "match.containment=1.0")
    other = HARBOUR.replace("winter", "summer").replace("bridge", "tunnel")
    feed = json_lines([{"id": "a", "text": HARBOUR}, {"id": "b", "text": other}])
    assert run("scan", "-", stdin=feed).verdicts[1]["verdict"] == "duplicate"
    assert run("scan", "-", *strict_match, stdin=feed).verdicts[1]["verdict"] == "unique"


def test_field_names_are_settings(run: Run) -> None:
    feed = json_lines([{"guid": "a", "body": HARBOUR}])
    names = ("--set", "input.id_field=guid", "--set", "input.text_field=body")
    assert run("scan", "-", *names, stdin=feed).verdicts[0]["id"] == "a"


def test_blank_lines_and_a_byte_order_mark_are_no_errors(run: Run) -> None:
    done = run("scan", "-", "--json", stdin=b"\xef\xbb\xbf" + FEED.replace(b"\n", b"\r\n\r\n"))
    assert len(done.verdicts) == 3
    assert last_json(done.err)["bad_lines"] == 0


def test_an_empty_input_is_no_error(run: Run) -> None:
    done = run("scan", "-", "--json", stdin=b"")
    assert (done.code, done.out, last_json(done.err)["articles"]) == (0, "", 0)


# Bad lines ------------------------------------------------------------------------------------

MIXED = (
    json_lines([{"id": "a", "text": HARBOUR}])
    + b"<html>\x1b[31m</html>\n"
    + b'{"id":"e","text":" ... "}\n'
    + b'{"id":7,"text":"x"}\n'
    + json_lines([{"id": "b", "text": ORCHARD}])
)


def test_bad_lines_are_reported_with_their_place_and_the_rest_is_judged(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "f.jsonl").write_bytes(MIXED)
    done = run("scan", "f.jsonl", "--json")
    assert done.code == 0
    assert [v["id"] for v in done.verdicts] == ["a", "b"]
    reported = {line.split(": ")[0] for line in done.err.splitlines() if ": " in line}
    assert {"f.jsonl:2", "f.jsonl:3", "f.jsonl:4"} <= reported
    assert "\x1b" not in done.err
    summary = last_json(done.err)
    assert summary["bad_lines"] == 3
    assert summary["bad_line_reasons"]["bad_json"] == 1
    assert summary["bad_line_reasons"]["bad_field"] == 1


def test_the_junk_of_the_sample_is_refused_line_by_line(run: Run) -> None:
    done = run("scan", SAMPLE / "junk.jsonl", "--json")
    assert (done.code, done.out) == (0, "")
    assert last_json(done.err)["bad_lines"] == len(
        (SAMPLE / "junk.jsonl").read_bytes().splitlines()
    )


@pytest.mark.parametrize(
    "bad", [b"nonsense\n", b'{"id":"e","text":"..."}\n'], ids=["not json", "no words"]
)
def test_strict_stops_at_the_first_bad_line_and_keeps_what_came_before(
    run: Run, bad: bytes
) -> None:
    first, second, third = (json_lines([article]) for article in small_feed())
    done = run("scan", "-", "--strict", "--state", "s", stdin=first + second + bad + third)
    assert done.code == 3
    assert [v["id"] for v in done.verdicts] == ["a1", "b1"]
    assert "standard input:3: " in done.err
    after = run("scan", "-", "--state", "s", stdin=third)
    assert after.verdicts[0]["reason"] == "near"


def test_bad_lines_are_told_in_line_order_whoever_found_them(run: Run) -> None:
    articles = [json_lines([article]) for article in small_feed()]
    wordless, broken = b'{"id":"e","text":"..."}\n', b"nonsense\n"
    feed = wordless + articles[0] + broken + articles[1] + wordless + b"\n" + broken + articles[2]
    done = run("scan", "-", stdin=feed)
    told = [line.split(": ")[:2] for line in done.err.splitlines() if ": " in line]
    assert told == [
        ["standard input:1", "empty"],
        ["standard input:3", "bad_json"],
        ["standard input:5", "empty"],
        ["standard input:7", "bad_json"],
    ]
    assert [v["id"] for v in done.verdicts] == ["a1", "b1", "a2"]


def test_strict_tells_only_the_first_of_two_bad_lines(run: Run) -> None:
    wordless, broken = b'{"id":"e","text":"..."}\n', b"nonsense\n"
    for feed in (wordless + broken, broken + wordless):
        done = run("scan", "-", "--strict", "--json", stdin=feed)
        assert (done.code, done.err.count("standard input:")) == (3, 1)
        assert "standard input:1: " in done.err
        assert last_json(done.err)["bad_lines"] == 1


def test_a_batch_of_long_articles_is_bounded_in_bytes(tmp_path: Path) -> None:
    line = json_lines([{"id": "a", "text": "x" * 4_000_000}])
    (tmp_path / "f").write_bytes(12 * line)
    intake = Intake(
        (str(tmp_path / "f"),),
        InputConfig(),
        1_024,
        strict=False,
        wake_fd=None,
        summary=ScanSummary(),
    )
    assert [len(batch) for batch in intake.batches()] == [9, 3]


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
def test_a_line_of_50_megabytes_is_reported_and_skipped(
    run: Run, tmp_path: Path, compress: bool
) -> None:
    huge = b'{"id":"h","text":"' + b"x" * 50_000_000 + b'"}\n'
    content = json_lines(small_feed()[:1]) + huge + json_lines(small_feed()[1:])
    (tmp_path / "f").write_bytes(gzip.compress(content, 1) if compress else content)
    done = run("scan", "f", "--json")
    assert done.code == 0
    assert [v["id"] for v in done.verdicts] == ["a1", "b1", "a2"]
    assert "f:2: too_large: " in done.err
    assert last_json(done.err)["bad_line_reasons"] == {"too_large": 1}


def test_a_cut_off_gzip_file_is_an_error_after_the_lines_that_were_whole(
    run: Run, tmp_path: Path
) -> None:
    # Stored blocks, so that the cut falls into the last line and not before the first.
    (tmp_path / "f.gz").write_bytes(gzip.compress(FEED, 0)[:-100])
    done = run("scan", "f.gz")
    assert done.code == 5
    assert [v["id"] for v in done.verdicts] == ["a1", "b1"]
    assert "error: f.gz: the gzip data is damaged or cut off" in done.err
    assert "Traceback" not in done.err


# What a person sees ---------------------------------------------------------------------------


def test_the_summary_counts_what_was_judged(run: Run) -> None:
    summary = last_json(run("scan", "-", "--json", stdin=FEED + FEED).err)
    assert (summary["articles"], summary["unique"], summary["duplicates"]) == (6, 2, 4)
    assert summary["stories"] == 2
    assert summary["duplicate_reasons"] == {"near": 1, "redelivery": 3}
    assert summary["seconds"] > 0


def test_the_summary_is_text_by_default(run: Run) -> None:
    err = run("scan", "-", stdin=FEED).err
    assert "duplicates          1   near 1" in err
    assert "articles a second" in err


def test_pretty_shows_titles_instead_of_json(run: Run) -> None:
    done = run("scan", "-", "--pretty", stdin=FEED)
    new, other, copied = done.out.splitlines()
    assert new.startswith("NEW")
    assert "Terminal shut" in new
    assert "New apple" in other
    assert copied.startswith("near")
    assert "Ferry terminal closes" in copied
    assert "a2 copies a1" in copied


@pytest.mark.parametrize("title", [b"7", b'"\xff\xfe"'], ids=["a number", "bad UTF-8"])
def test_a_title_that_cannot_be_read_is_no_title(run: Run, title: bytes) -> None:
    line = b'{"id":"a","text":"the and of it x","title":' + title + b"}\n"
    done = run("scan", "-", "--pretty", stdin=line)
    assert (done.code, "the and of it x" in done.out) == (0, True), done.err


def test_pretty_titles_cannot_steer_the_terminal(run: Run) -> None:
    evil = {"id": "a\x1b[2J", "title": "\x1b]0;owned\x07[bold]x", "text": HARBOUR}
    out = run("scan", "-", "--pretty", stdin=json_lines([evil])).out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[bold]x" in out


def test_pretty_with_an_output_file_still_writes_json_there(run: Run, tmp_path: Path) -> None:
    done = run("scan", "-", "--pretty", "--output", "v.jsonl", stdin=FEED)
    assert done.out.startswith("NEW")
    assert (tmp_path / "v.jsonl").read_text() == run("scan", "-", stdin=FEED).out
