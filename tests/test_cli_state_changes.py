"""`streamdedup state lookup`, `checkpoint` and `rebuild`: find, copy, begin again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import HARBOUR, ORCHARD, Run
from service import Setup, feed, running
from terminal import on_terminal

from streamdedup import Article, Config, Deduplicator
from streamdedup.article import rfc3339
from streamdedup.config import MatchConfig, StateConfig
from streamdedup.schemes.shingled import ShingledScheme
from streamdedup.testing import Kafka

CONFIG = Config(state=StateConfig(head_articles=16, fan_in=2, cache_mib=8))
BEGIN_MS = 1_772_400_000_000
MARK = b"a service was here"


def article(number: int, text: str = HARBOUR) -> Article:
    return Article(
        id=f"n{number}",
        text=f"{text} The {number} more words.",
        published=BEGIN_MS + number * 1_000,
    )


FEED = [article(number) for number in range(200)]


def fill(path: Path, config: Config = CONFIG, *, mark: bytes | None = MARK) -> Path:
    with Deduplicator.open(path, config) as deduplicator:
        for first in range(0, len(FEED), 25):
            batch = FEED[first : first + 25]
            deduplicator.apply(deduplicator.decide(deduplicator.sketch(batch)), mark)
    return path


@pytest.fixture
def used(tmp_path: Path) -> Path:
    return fill(tmp_path / "used")


def looked_up(run: Run, id: str, path: Path) -> list[dict[str, object]]:
    done = run("state", "lookup", id, path, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["id"] == id
    records: list[dict[str, object]] = found["records"]
    return records


@pytest.mark.parametrize("number", [0, 77, 199], ids=["segment", "later segment", "head"])
def test_an_article_is_found_wherever_it_lies(run: Run, used: Path, number: int) -> None:
    scheme = ShingledScheme(CONFIG.scheme, CONFIG.match)
    payloads = scheme.payloads([FEED[number]])
    assert looked_up(run, f"n{number}", used) == [
        {
            "number": number,
            "published": rfc3339(BEGIN_MS + number * 1_000),
            "story": "n0",
            "shingles": int(payloads.ends[0] - payloads.starts[0]) // 4,
        }
    ]


def test_revisions_are_listed_newest_first(run: Run, used: Path) -> None:
    revised = Article(id="n5", text=ORCHARD, published=BEGIN_MS + 999_000)
    with Deduplicator.open(used, CONFIG) as deduplicator:
        deduplicator.process([revised])
    assert [(each["number"], each["story"]) for each in looked_up(run, "n5", used)] == [
        (200, "n5"),
        (5, "n0"),
    ]


def test_an_index_in_use_is_looked_into_up_to_its_newest_article(run: Run, used: Path) -> None:
    with Deduplicator.open(used, CONFIG) as deduplicator:
        deduplicator.process([article(777, ORCHARD)])
        assert [each["number"] for each in looked_up(run, "n777", used)] == [200]
        assert deduplicator.process([article(777, ORCHARD)])[0].reason == "redelivery"


def test_a_signature_has_no_shingles_to_count(run: Run, tmp_path: Path) -> None:
    config = Config(state=CONFIG.state, match=MatchConfig(verify="signature"))
    found = looked_up(run, "n3", fill(tmp_path / "signed", config))
    assert [(each["number"], each["shingles"]) for each in found] == [(3, None)]


def test_an_unknown_id_has_no_records(run: Run, used: Path) -> None:
    assert looked_up(run, "nobody", used) == []
    done = run("state", "lookup", "nobody", used)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"nothing is stored under nobody in {used}\n"


def test_a_person_reads_one_line_a_record(run: Run, used: Path) -> None:
    done = run("state", "lookup", "n7", env={"STREAMDEDUP_STATE__PATH": str(used)})
    assert done.out.startswith(f"number 7  published {rfc3339(BEGIN_MS + 7_000)}  story n0  ")


@pytest.mark.parametrize("command", [("lookup", "n1"), ("rebuild", "--yes")])
def test_what_is_no_state_directory_is_said_to_be_none(
    run: Run, tmp_path: Path, command: tuple[str, str]
) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    done = run("state", *command, "foreign")
    assert (done.code, done.out) == (4, "")
    assert done.err == "error: foreign is not a state directory\n"
    assert (tmp_path / "foreign" / "notes.txt").read_text() == "mine"


def test_a_checkpoint_judges_as_the_index_did(run: Run, used: Path, tmp_path: Path) -> None:
    done = run("state", "checkpoint", "used", "copy")
    assert (done.code, done.out) == (0, "copy holds 200 articles\n")
    new = [article(n, text) for n in range(300, 340) for text in (HARBOUR, ORCHARD)]
    with (
        Deduplicator.open(used, CONFIG) as original,
        Deduplicator.open(tmp_path / "copy", CONFIG) as copy,
    ):
        assert copy.mark == original.mark == MARK
        assert copy.process(new) == original.process(new)


def test_what_is_written_later_is_not_in_the_checkpoint(
    run: Run, used: Path, tmp_path: Path
) -> None:
    assert run("state", "checkpoint", used, "copy").code == 0
    with Deduplicator.open(used, CONFIG) as deduplicator:
        for number in range(300, 900, 20):
            deduplicator.process([article(number + each) for each in range(20)])
    assert json.loads(run("state", "info", "copy", "--json").out)["articles"] == 200
    assert [each["number"] for each in looked_up(run, "n199", tmp_path / "copy")] == [199]


def test_no_checkpoint_is_made_over_something_or_of_an_index_in_use(
    run: Run, used: Path, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    done = run("state", "checkpoint", "used", "there")
    assert (done.code, done.err.count("there exists")) == (4, 1)
    done = run("state", "checkpoint", "used", "no/where")
    assert (done.code, done.err.count("no is not a directory")) == (4, 1)
    with Deduplicator.open(used, CONFIG):
        done = run("state", "checkpoint", "used", "copy")
    assert (done.code, done.err.count("in use by another process")) == (4, 1)
    assert not (tmp_path / "copy").exists()


def test_rebuild_sets_the_directory_aside_and_deletes_nothing(
    run: Run, used: Path, tmp_path: Path
) -> None:
    before = {file.name: file.read_bytes() for file in used.iterdir()}
    done = run("state", "rebuild", "used", "--yes")
    assert done.code == 0
    assert done.out.startswith("used was set aside as used.set-aside-1; the next `streamdedup run`")
    assert not used.exists()
    aside = tmp_path / "used.set-aside-1"
    assert {file.name: file.read_bytes() for file in aside.iterdir()} == before


def test_rebuild_asks_a_person_and_takes_no_for_an_answer(used: Path, tmp_path: Path) -> None:
    refused = on_terminal(tmp_path, "state", "rebuild", "used", answer=b"n\n")
    assert refused.code == 130
    assert used.exists()
    agreed = on_terminal(tmp_path, "state", "rebuild", "used", answer=b"y\n")
    assert agreed.code == 0
    assert not used.exists()


def test_without_a_terminal_rebuild_wants_to_be_told(run: Run, used: Path) -> None:
    done = run("state", "rebuild", "used")
    assert (done.code, done.err.count("--yes")) == (2, 1)
    assert used.exists()


def test_an_index_in_use_is_not_rebuilt(run: Run, used: Path) -> None:
    with Deduplicator.open(used, CONFIG):
        done = run("state", "rebuild", "used", "--yes")
    assert (done.code, done.err.count("in use by another process")) == (4, 1)
    assert used.exists()


def test_an_index_without_a_changelog_is_not_rebuilt(run: Run, tmp_path: Path) -> None:
    fill(tmp_path / "scanned", mark=None)
    done = run("state", "rebuild", "scanned", "--yes")
    assert (done.code, done.err.count("no changelog")) == (4, 1)
    assert (tmp_path / "scanned").exists()


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST"])
def test_a_damaged_index_can_be_rebuilt(run: Run, used: Path, name: str) -> None:
    for file in used.glob(f"{name}*"):
        file.unlink()
    assert run("state", "rebuild", "used", "--yes").code == 0
    assert not used.exists()


def test_after_rebuild_the_service_knows_everything_again(
    broker: Kafka, run: Run, tmp_path: Path
) -> None:
    setup = Setup(broker)
    messages = feed(120)
    setup.produce(messages[:100])
    with running(setup, tmp_path) as first:
        setup.wait_for(100)
        assert first.stop() == 0
    assert run("state", "rebuild", "state", "--yes").code == 0
    setup.produce(messages)  # the first hundred are known, the rest is not
    with running(setup, tmp_path) as second:
        setup.wait_for(220)
        assert second.stop() == 0
        assert "restored 100 articles" in second.log
    reasons = [json.loads(verdict)["reason"] for verdict in setup.verdicts()[100:]]
    assert reasons[:100] == ["redelivery"] * 100
    assert "redelivery" not in reasons[100:]
