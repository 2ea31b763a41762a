"""Whatever happened to the state directory: it is made good from the changelog."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from probes import address, ask, ready
from service import Setup, feed, running, undisturbed, wait_until

from streamdedup import Article, Deduplicator
from streamdedup.testing import Kafka

MESSAGES = feed(600)


def test_a_state_that_was_lost_damaged_or_restored_from_a_backup_gives_the_same_verdicts(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker, extra={"STREAMDEDUP_KAFKA__BATCH_ARTICLES": "50"})
    state, backup = tmp_path / "state", tmp_path / "backup"
    done = 0
    for name, harm, said in harms(state, backup):
        setup.produce(MESSAGES[done : done + 100])
        harm()
        with running(setup, tmp_path) as instance:
            setup.wait_for(done + 100)
            assert instance.stop() == 0, name
            assert said in instance.log, name
        if name == "nothing":
            shutil.copytree(state, backup)
        done += 100
    setup.check_truth()
    assert setup.verdicts() == undisturbed(setup, len(MESSAGES))


def harms(state: Path, backup: Path) -> Iterator[tuple[str, Callable[[], object], str]]:
    def nothing() -> None:
        """At first there is no state yet."""

    def lose() -> None:
        shutil.rmtree(state)

    def flip_everywhere() -> None:
        for table in state.glob("*.sst"):
            content = bytearray(table.read_bytes())
            for at in range(0, len(content), 256):
                content[at] ^= 0x55
            table.write_bytes(content)

    def restore_backup() -> None:
        shutil.rmtree(state)
        shutil.copytree(backup, state)

    def foreign() -> None:
        shutil.rmtree(state)
        with Deduplicator.open(state) as engine:
            engine.process([Article(id="foreign", text="one two three")])

    yield "nothing", nothing, "working"
    yield "lost", lose, "restored 100 articles"
    yield "flipped", flip_everywhere, "set aside"
    yield "old copy", restore_backup, "restored 200 articles"
    yield "foreign", foreign, "set aside"
    yield "lost again", lose, "restored 500 articles"


def test_a_state_of_another_changelog_is_set_aside(broker: Kafka, tmp_path: Path) -> None:
    for setup in (Setup(broker), Setup(broker)):
        setup.produce(MESSAGES[:50])
        with running(setup, tmp_path) as instance:
            setup.wait_for(50)
            assert instance.stop() == 0
        # The other index would have called every article a redelivery.
        assert setup.verdicts() == undisturbed(setup, 50)
    assert "belongs to another changelog topic" in instance.log
    assert (tmp_path / "state.set-aside-1" / "CURRENT").is_file()


@pytest.mark.parametrize("setting", ["state.fan_in=4", "state.head_articles=32"])
def test_another_layout_of_the_index_is_made_from_the_same_changelog(
    broker: Kafka, tmp_path: Path, setting: str
) -> None:
    setup = Setup(broker, extra={"STREAMDEDUP_LOG__FORMAT": "json"})
    setup.produce(MESSAGES[:100])
    with running(setup, tmp_path) as instance:
        setup.wait_for(100)
        assert instance.stop() == 0
    setup.produce(MESSAGES[100:200])
    with running(setup, tmp_path, "--set", setting) as instance:
        setup.wait_for(200)
        assert instance.stop() == 0
    [event] = [json.loads(line) for line in instance.log.splitlines() if "set_aside" in line]
    assert event["event"] == "state_set_aside"
    assert "made with other parameters" in event["message"]
    assert Path(event["path"]).exists()
    assert setup.verdicts() == undisturbed(setup, 200)


def test_other_parameters_than_the_changelogs_are_refused_before_anything_is_emitted(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker)
    setup.produce(MESSAGES[:60])
    with running(setup, tmp_path) as instance:
        setup.wait_for(50)
        assert instance.stop() == 0
    before = {role: setup.read(role) for role in ("verdicts", "changelog", "dead_letters")}
    setup.produce(MESSAGES[60:])
    for directory in (tmp_path, tmp_path / "elsewhere"):
        with running(
            setup, directory, "--set", "scheme.bands=9", "--set", "scheme.crop_keys=20"
        ) as instance:
            assert instance.wait() == 6
        assert "scheme.bands: the changelog has 8, the configuration 9" in instance.log
        assert "scheme.crop_keys: the changelog has 24, the configuration 20" in instance.log
        assert "Traceback" not in instance.log
    assert {role: setup.read(role) for role in before} == before
    assert not list(tmp_path.glob("*set-aside*"))


def test_a_full_disk_stops_judging_until_there_is_space_again(
    broker: Kafka, tmp_path: Path, small_disk: Path
) -> None:
    extra = {"STREAMDEDUP_KAFKA__BATCH_ARTICLES": "50", "STREAMDEDUP_HTTP__PORT": "0"}
    setup = Setup(broker, extra={**extra, "STREAMDEDUP_LOG__FORMAT": "json"})
    setup.produce(MESSAGES[:100])
    with running(setup, small_disk) as instance:
        setup.wait_for(100)
        wait_until(lambda: ready(instance)["state"] == "owner", "an owner")
        filler = small_disk / "filler"
        fill(filler)
        setup.produce(MESSAGES[100:])
        instance.wait_for_log("nothing is judged until it works again")
        answered = len(setup.answered())
        # What was committed when the disk refused it, and what fitted before; no more.
        assert answered < len(MESSAGES)
        assert "blocked" in instance.log
        assert (ready(instance)["state"], ready(instance)["ok"]) == ("blocked", False)
        assert ask(address(instance) + "healthz")[0] == 200
        instance.process.poll()
        assert len(setup.answered()) == answered
        filler.unlink()
        instance.wait_for_log("the state directory works again")
        setup.wait_for(len(MESSAGES))
        assert ready(instance)["state"] == "owner"
        assert instance.stop() == 0
        events = [json.loads(line) for line in instance.log.splitlines()]
        disk = [(event["level"], event["path"]) for event in events if event["event"] == "disk"]
        assert disk == [("warning", str(instance.state)), ("info", str(instance.state))]
    setup.check_truth()
    assert setup.verdicts() == undisturbed(setup, len(MESSAGES))


def test_a_disk_that_is_full_from_the_start_is_said_once_and_waited_for(
    broker: Kafka, tmp_path: Path, small_disk: Path
) -> None:
    setup = Setup(broker)
    setup.produce(MESSAGES[:100])
    where = {"STREAMDEDUP_STATE__PATH": str(small_disk / "state")}
    with running(setup, tmp_path, **where) as instance:
        setup.wait_for(100)
        assert instance.stop() == 0
    fill(small_disk / "filler")
    setup.produce(MESSAGES[100:200])
    more = {**where, "STREAMDEDUP_HTTP__PORT": "0"}
    with running(setup, tmp_path, **more) as instance:
        instance.wait_for_log("blocked")
        blocked = time.time()
        # Each attempt makes files there.
        wait_until(lambda: (small_disk / "state").stat().st_mtime > blocked + 3, "more attempts")
        assert instance.log.count(" blocked") == 1
        assert instance.log.count("nothing is judged until it works again") == 1
        assert ready(instance)["state"] == "blocked"
        (small_disk / "filler").unlink()
        instance.wait_for_log("the state directory works again")
        setup.wait_for(200)
        assert instance.stop() == 0
    assert setup.verdicts() == undisturbed(setup, 200)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(file: Path) -> None:
    """Leave no byte free."""
    with file.open("wb", buffering=0) as out:
        for chunk in (1 << 20, 4_096, 1):
            try:
                while out.write(bytes(chunk)) == chunk:
                    pass
            except OSError:
                continue
