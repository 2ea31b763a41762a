"""Where an index may be made: in its own directory, a new or an empty one, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Run, json_lines, small_feed
from plain import open_rocks

from streamdedup import Deduplicator
from streamdedup.errors import StateError
from streamdedup.kafka.set_aside import set_aside

FEED = json_lines(small_feed())


@pytest.mark.parametrize("name", ["notes.txt", "src/main.py", "data.db", "LOG", "1.log"])
def test_a_directory_of_somebody_elses_is_refused_and_left_as_it_is(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(StateError, match=f"{tmp_path} is not a state directory, and not empty"):
        Deduplicator.open(tmp_path)
    assert [file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file()] == [
        Path(name)
    ]


def test_the_command_line_refuses_it_with_its_code(run: Run, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").write_text("mine")
    done = run("scan", "-", "--state", "used", stdin=FEED)
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("error: used is not a state directory")
    assert "notes.txt" in done.err


@pytest.mark.parametrize("there", [[], ["lost+found"], [".snapshot", "lost+found"]], ids=str)
def test_an_empty_volume_may_have_what_its_file_system_puts_there(
    tmp_path: Path, there: list[str]
) -> None:
    for name in there:
        (tmp_path / name).mkdir()
    open_rocks(tmp_path).close()
    open_rocks(tmp_path).close()


def test_a_state_directory_may_hold_what_somebody_left_in_it(tmp_path: Path) -> None:
    open_rocks(tmp_path).close()
    (tmp_path / "notes.txt").write_text("mine")
    open_rocks(tmp_path).close()


def test_a_volume_from_whose_root_an_index_was_set_aside_takes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(source: Path, target: Path) -> Path:
        if source == tmp_path:
            raise OSError("a mount point")
        return rename(source, target)

    rename = Path.rename
    open_rocks(tmp_path).close()
    monkeypatch.setattr(Path, "rename", refused)
    assert set_aside(tmp_path) == tmp_path / "set-aside-1"
    open_rocks(tmp_path).close()


def test_an_index_that_was_not_made_to_its_end_is_made_again(tmp_path: Path) -> None:
    open_rocks(tmp_path / "whole").close()
    (tmp_path / "part").mkdir()
    (tmp_path / "whole" / "rocksdict-config.json").rename(tmp_path / "part/rocksdict-config.json")
    open_rocks(tmp_path / "part").close()
