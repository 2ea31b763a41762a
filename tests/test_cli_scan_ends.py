"""How a scan ends when something outside goes wrong: pipes, signals, disks, states."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import SAMPLE, Run, command, command_environment, json_lines, small_feed

FEED = json_lines(small_feed())


def start(tmp_path: Path, *arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=command_environment({"TMPDIR": str(tmp_path)}),
    )


def test_a_slow_feed_gets_each_verdict_at_once(tmp_path: Path) -> None:
    with start(tmp_path, "scan", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for article in small_feed():
            process.stdin.write(json_lines([article]))
            process.stdin.flush()
            # The feed is still open: this line comes only if the batch did not wait to be full.
            assert json.loads(process.stdout.readline())["id"] == article["id"]
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_tidily(tmp_path: Path, number: int, code: int) -> None:
    with start(tmp_path, "scan", "-", "--json") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(FEED)
        process.stdin.flush()
        verdicts = [process.stdout.readline() for _ in range(3)]
        process.send_signal(number)
        assert process.wait(60) == code
        err = process.stderr.read().decode()
        process.stdin.close()
    assert len(verdicts) == 3
    summary, farewell = err.splitlines()[-2:]
    assert json.loads(summary)["articles"] == 3
    assert farewell == "interrupted"
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [[], ["--pretty"]], ids=["json", "pretty"])
def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path, mode: list[str]) -> None:
    feed = SAMPLE / "feed.jsonl"
    with start(tmp_path, "scan", feed, feed, feed, "--batch", "1", *mode) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_under_the_output_is_named(run: Run) -> None:
    done = run("scan", "-", "--output", "/dev/full", stdin=FEED)
    assert done.code == 5
    assert "error: /dev/full: No space left on device" in done.err
    assert "Traceback" not in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_articles_whose_verdicts_could_not_be_written_are_judged_again(run: Run) -> None:
    assert run("scan", "-", "--state", "s", "--output", "/dev/full", stdin=FEED).code == 5
    again = run("scan", "-", "--state", "s", stdin=FEED)
    assert [verdict["reason"] for verdict in again.verdicts] == ["new", "new", "near"]


def test_a_refused_state_costs_no_earlier_output(run: Run, tmp_path: Path) -> None:
    arguments = ("scan", "-", "--state", "s", "--output", "kept.jsonl")
    assert run(*arguments, stdin=FEED).code == 0
    kept = (tmp_path / "kept.jsonl").read_bytes()
    assert run(*arguments, "--set", "scheme.bands=20", stdin=FEED).code == 4
    assert (tmp_path / "kept.jsonl").read_bytes() == kept != b""


@pytest.mark.parametrize(("closed", "code"), [(">&-", 5), ("<&-", 5), ("2>&-", 0)])
def test_a_closed_standard_stream_is_named_and_never_written_to(
    tmp_path: Path, closed: str, code: int
) -> None:
    (tmp_path / "feed.jsonl").write_bytes(FEED)
    source = "-" if closed == "<&-" else "feed.jsonl"
    called = " ".join(command("scan", source, "--state", "s"))
    done = subprocess.run(
        ["bash", "-c", f"{called} {closed}"],
        capture_output=True,
        cwd=tmp_path,
        env=command_environment(),
        timeout=120,
        check=False,
    )
    assert done.returncode == code
    assert b"bug" not in done.stderr
    assert len(done.stdout.splitlines()) == (3 if code == 0 else 0)


def test_an_output_that_cannot_be_created_is_named(run: Run) -> None:
    done = run("scan", "-", "--output", "nowhere/v.jsonl", stdin=FEED)
    assert done.code == 5
    assert "nowhere/v.jsonl" in done.err


def test_a_state_made_with_other_settings_is_refused(run: Run) -> None:
    assert run("scan", "-", "--state", "s", stdin=FEED).code == 0
    done = run("scan", "-", "--state", "s", "--set", "scheme.bands=20", stdin=FEED)
    assert done.code == 4
    assert done.out == ""
    assert "bands" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("style", [[], ["--json"]], ids=["text", "json"])
def test_a_run_that_is_refused_has_no_summary(run: Run, style: list[str]) -> None:
    assert run("scan", "-", "--state", "s", stdin=FEED).code == 0
    for refused in (["--state", "s", "--set", "scheme.bands=20"], ["--output", "no/where"]):
        done = run("scan", "-", *refused, *style, stdin=FEED)
        assert done.code in (4, 5)
        assert done.err.startswith("error: ")
    empty = run("scan", "-", *style)
    assert (empty.code, empty.err.count("articles") > 0) == (0, True)


def test_a_state_in_use_is_refused(run: Run, tmp_path: Path) -> None:
    with start(tmp_path, "scan", "-", "--state", "s") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(FEED)
        process.stdin.flush()
        process.stdout.readline()
        done = run("scan", "-", "--state", "s", stdin=FEED)
        process.stdin.close()
        process.wait(60)
    assert done.code == 4
    assert done.err.splitlines()[-1].startswith("error: ")


def test_a_debug_run_shows_where_an_error_came_from(run: Run) -> None:
    done = run("config", "check", "--set", "a.b=1", env={"STREAMDEDUP_DEBUG": "1"})
    assert done.code == 2
    assert "Traceback" in done.err


def test_state_info_tells_what_a_directory_holds(run: Run) -> None:
    assert run("scan", "-", "--state", "state", stdin=FEED).code == 0
    named, default = run("state", "info", "state", "--json"), run("state", "info", "--json")
    assert named.code == 0
    assert named.out == default.out
    assert json.loads(named.out)["articles"] == 3
    text = run("state", "info", "state")
    assert "articles" in text.out


def test_state_info_of_no_state_is_an_error(run: Run, tmp_path: Path) -> None:
    done = run("state", "info", "nowhere")
    assert done.code == 4
    assert "nowhere" in done.err
    assert not (tmp_path / "nowhere").exists()
