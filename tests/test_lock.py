"""One process owns a state directory: another is told so, and the owner does not notice.

Looking (`state info`) is allowed to everybody at any time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from conftest import ROOT, Run, command_environment, json_lines, small_feed
from crash_child import CONFIG, news

from streamdedup import Deduplicator
from streamdedup.errors import StateLocked
from streamdedup.store.inspect import state_info

ARTICLES = news(120)
FEED = json_lines(small_feed())
OPEN = """
import sys
from streamdedup import Deduplicator
from streamdedup.config import Config
from streamdedup.errors import StreamdedupError
import msgspec
try:
    engine = Deduplicator.open(sys.argv[1], msgspec.json.decode(sys.argv[2], type=Config))
except StreamdedupError as error:
    print(type(error).__name__, error)
else:
    print("opened at", engine.store.next_number)
    engine.close()
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Deduplicator]:
    """This process owns the directory and has judged a hundred articles."""
    with Deduplicator.open(tmp_path / "state", CONFIG) as engine:
        for first in range(0, 100, 10):
            engine.process(ARTICLES[first : first + 10])
        yield engine


def open_in_another_process(state: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OPEN, state, msgspec.json.encode(CONFIG).decode()],
        capture_output=True,
        env=command_environment(),
        timeout=60,
        check=True,
    )
    return done.stdout.decode().strip()


def test_a_second_process_is_refused_until_the_first_has_closed(
    owner: Deduplicator, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    assert open_in_another_process(state) == (
        f"StateLocked state directory {state} is in use by another process; "
        "stop that process or choose another directory"
    )
    owner.close()
    assert open_in_another_process(state) == "opened at 100"


def test_a_second_opening_in_the_same_process_is_refused_too(
    owner: Deduplicator, tmp_path: Path
) -> None:
    with pytest.raises(StateLocked, match="in use"):
        Deduplicator.open(tmp_path / "state", CONFIG)


def test_the_owner_goes_on_after_another_was_refused(owner: Deduplicator, tmp_path: Path) -> None:
    with Deduplicator.open(None, CONFIG) as alone:
        alone.process(ARTICLES[:100])
        expected = alone.process(ARTICLES[100:])
    open_in_another_process(tmp_path / "state")
    assert owner.process(ARTICLES[100:]) == expected
    owner.close()
    with Deduplicator.open(tmp_path / "state", CONFIG) as again:
        assert again.store.next_number == 120


def test_the_command_line_tells_a_state_in_use_with_exit_code_4(
    owner: Deduplicator, tmp_path: Path, run: Run
) -> None:
    done = run("scan", "-", "--state", tmp_path / "state", stdin=FEED)
    assert done.code == 4
    assert done.out == ""
    assert f"error: state directory {tmp_path / 'state'} is in use" in done.err
    assert "Traceback" not in done.err


def test_state_info_works_beside_a_live_owner(
    owner: Deduplicator, tmp_path: Path, run: Run
) -> None:
    done = run("state", "info", tmp_path / "state", "--json")
    assert done.code == 0
    info = json.loads(done.out)
    assert info["articles"] == info["next_number"] == 100
    assert len(info["segments"]) == owner.store.segments  # type: ignore[attr-defined]
    owner.process(ARTICLES[100:])
    assert owner.store.next_number == 120


def test_state_info_never_calls_a_busy_directory_damaged(tmp_path: Path) -> None:
    # Flushes, merges, expiry and compaction every few milliseconds.
    busy = "import sys; from pathlib import Path; from test_window import streamed\n"
    busy += "streamed(Path(sys.argv[1]), 10_000)"
    path = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT)])}
    state = tmp_path / "state"
    arguments = [sys.executable, "-c", busy, str(state)]
    with subprocess.Popen(arguments, env=command_environment(path)) as writer:
        try:
            wait_for(state / "CURRENT")
            seen = [state_info(state)["next_number"] for _ in range(60)]
            assert writer.poll() is None
        finally:
            writer.kill()
    assert seen[-1] > seen[0]


def wait_for(file: Path) -> None:
    until = time.monotonic() + 30
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(1)  # until the first articles expire
