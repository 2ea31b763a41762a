"""`streamdedup state info`: what a directory holds, for people and for programs, changing nothing.
Whatever is no state directory is named in one line, with the exit code for trouble with a state.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import HARBOUR, Run

from streamdedup import Article, Config, Deduplicator
from streamdedup.article import rfc3339
from streamdedup.config import StateConfig
from streamdedup.kafka.changelog import Mark

CONFIG = Config(state=StateConfig(head_articles=16, fan_in=2, cache_mib=8))
DAY_MS = 86_400_000
LATEST_MS = 20_000 * DAY_MS
FEED = [
    Article(id=str(at), text=f"{HARBOUR} The {at} more words.", published=LATEST_MS - at * 1_000)
    for at in range(1_234)
]


@pytest.fixture
def used(tmp_path: Path) -> Path:
    path = tmp_path / "used"
    with Deduplicator.open(path, CONFIG) as deduplicator:
        for first in range(0, len(FEED), 100):
            deduplicator.process(FEED[first : first + 100])
    return path


def test_json_is_one_object_with_the_figures_of_the_directory(run: Run, used: Path) -> None:
    done = run("state", "info", used, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert (found["articles"], found["next_number"], found["format"]) == (1_234, 1_234, 1)
    assert found["watermark"] == rfc3339(LATEST_MS)
    assert found["path"] == str(used)
    assert found["disk_bytes"] > 0


def test_the_segments_lie_side_by_side_from_the_first_article_on(run: Run, used: Path) -> None:
    segments = json.loads(run("state", "info", used, "--json").out)["segments"]
    ends = [segment["base"] + segment["count"] for segment in segments]
    assert [segment["base"] for segment in segments] == [0, *ends[:-1]]
    assert 1_234 - 64 < ends[-1] <= 1_234


def test_the_parameters_are_those_that_the_index_was_made_with(run: Run, used: Path) -> None:
    parameters = json.loads(run("state", "info", used, "--json").out)["parameters"]
    assert parameters["state.head_articles"] == "16"
    assert parameters["scheme.name"] == "news"
    assert parameters["match.verify"] == "exact"


def test_a_person_reads_the_same_figures(run: Run, used: Path) -> None:
    done = run("state", "info", used)
    rows = dict(line.split(maxsplit=1) for line in done.out.splitlines() if " " in line.strip())
    assert done.code == 0
    assert rows["articles"] == "1,234"
    assert rows["watermark"] == rfc3339(LATEST_MS)
    assert rows["state.head_articles"] == "16"


def test_how_much_of_which_changelog_it_contains_is_told(run: Run, tmp_path: Path) -> None:
    mark = Mark.behind("rWvzoX9CT1uCGvZCa1q0Ew", 41, b"the last record")
    with Deduplicator.open(tmp_path / "served", CONFIG) as deduplicator:
        decision = deduplicator.decide(deduplicator.sketch(FEED[:10]))
        deduplicator.apply(decision, mark.encode())
    changelog = json.loads(run("state", "info", "served", "--json").out)["changelog"]
    assert (changelog["topic_id"], changelog["next_offset"]) == (mark.topic_id, 42)
    rows = [line.split() for line in run("state", "info", "served").out.splitlines()]
    assert ["topic_id", mark.topic_id] in rows
    assert ["next_offset", "42"] in rows


def test_an_index_that_no_service_made_belongs_to_no_changelog(run: Run, used: Path) -> None:
    assert json.loads(run("state", "info", used, "--json").out)["changelog"] is None


def test_without_an_argument_the_settings_name_the_directory(run: Run, used: Path) -> None:
    done = run("state", "info", "--json", env={"STREAMDEDUP_STATE__PATH": str(used)})
    assert json.loads(done.out)["path"] == str(used)


def test_a_directory_in_use_can_be_looked_into(run: Run, used: Path) -> None:
    with Deduplicator.open(used, CONFIG) as deduplicator:
        done = run("state", "info", used, "--json")
        assert json.loads(done.out)["articles"] == 1_234
        verdict = deduplicator.process([FEED[-1]])[0]
    assert verdict.reason == "redelivery"


def test_looking_changes_no_file(run: Run, used: Path) -> None:
    before = {file.name: file.read_bytes() for file in used.iterdir()}
    assert run("state", "info", used).code == 0
    assert {file.name: file.read_bytes() for file in used.iterdir()} == before


def test_a_new_index_is_empty_and_has_no_watermark(run: Run, tmp_path: Path) -> None:
    Deduplicator.open(tmp_path / "new", CONFIG).close()
    found = json.loads(run("state", "info", "new", "--json").out)
    assert (found["articles"], found["watermark"], found["segments"]) == (0, None, [])


@pytest.mark.parametrize("name", ["missing", "foreign", "file"])
def test_what_is_no_state_directory_is_said_to_be_none(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    done = run("state", "info", name, "--json")
    assert (done.code, done.out) == (4, "")
    assert done.err == f"error: {name} is not a state directory\n"


def test_a_missing_directory_is_not_created(run: Run, tmp_path: Path) -> None:
    run("state", "info", "missing")
    assert list(tmp_path.iterdir()) == []
