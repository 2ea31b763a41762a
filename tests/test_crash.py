"""Killed with SIGKILL at any point, a stream goes on as if nothing had happened.

Verdicts are compared with those of an undisturbed run, candidate sets with a plain dictionary.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import command_environment
from crash_child import ARTICLES, CONFIG, RANDOM_KILLS, stream

from streamdedup import Deduplicator

CHILD = Path(__file__).parent / "crash_child.py"
Verdicts = dict[str, bytes]


def verdicts_in(directory: Path) -> Verdicts:
    """By id; an article judged twice, before and after a kill, was judged the same."""
    verdicts: Verdicts = {}
    for line in (directory / "verdicts").read_bytes().splitlines():
        id = json.loads(line)["id"]
        assert verdicts.setdefault(id, line) == line
    return verdicts


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    directory = tmp_path_factory.mktemp("undisturbed")
    stream(directory)
    return verdicts_in(directory)


def killed_stream(directory: Path, plan: str) -> list[int]:
    """How each life ended: -9, and 0 for the last."""
    done = subprocess.run(
        [sys.executable, CHILD, directory, plan],
        capture_output=True,
        env=command_environment(),
        timeout=120,
        check=True,
    )
    ends: list[int] = json.loads(done.stdout)
    assert set(ends[:-1]) <= {-signal.SIGKILL}, done.stderr.decode()
    assert ends[-1] == 0
    return ends


def check_candidates(directory: Path) -> None:
    """Every key's bucket is that of a dictionary, but for articles behind the window."""
    with Deduplicator.open(directory / "state", CONFIG) as engine:
        assert engine.store.next_number == len(ARTICLES)
        keys = engine.sketch(ARTICLES).keys
        buckets: dict[int, list[int]] = defaultdict(list)
        for number, (first, end) in enumerate(pairwise(keys.starts.tolist())):
            for key in keys.values[first:end].tolist():
                buckets[key].append(number)
        wanted = sorted(buckets)
        hits = engine.store.probe(np.array(wanted, np.uint64), np.arange(len(wanted) + 1))
        oldest = len(ARTICLES) - 1 - CONFIG.window.seconds
        starts = hits.starts.tolist()
        for key, (first, end) in zip(wanted, pairwise(starts), strict=True):
            found = [n for n in hits.numbers[first:end].tolist() if n >= oldest]
            newest = buckets[key][: -CONFIG.state.bucket_entries - 1 : -1]
            assert found == [n for n in newest if n >= oldest]
        alive = np.unique(hits.numbers)
        records = engine.store.fetch(alive)
        ids = [records.id(index).decode() for index in range(len(records))]
        assert ids == [ARTICLES[number].id for number in alive.tolist()]


def check_like_undisturbed(directory: Path, undisturbed: Verdicts) -> None:
    assert verdicts_in(directory) == undisturbed
    check_candidates(directory)


def test_the_stream_has_duplicates_to_lose(undisturbed: Verdicts) -> None:
    duplicates = sum(b'"duplicate"' in line for line in undisturbed.values())
    assert len(undisturbed) == len(ARTICLES)
    assert 200 < duplicates < 700


def test_kills_at_random_moments_change_nothing(tmp_path: Path, undisturbed: Verdicts) -> None:
    ends = killed_stream(tmp_path, "random")
    assert ends.count(-signal.SIGKILL) == RANDOM_KILLS
    check_like_undisturbed(tmp_path, undisturbed)


# Life k of the stream dies at its k-th write of the kind; how many deaths there are at least
# shows that the writes meant do happen.
@pytest.mark.parametrize(
    ("plan", "deaths"),
    [
        ("records-before", 15),
        ("records-after", 15),
        ("records-torn", 15),
        ("freeze-before", 8),
        ("freeze-after", 8),
        ("freeze-torn", 8),
        ("merge-before", 8),
        ("merge-after", 8),
        ("merge-torn", 8),
        ("swap-before", 5),
        ("swap-after", 5),
        ("swap-torn", 5),
        ("expiry-before", 2),
        ("expiry-after", 2),
    ],
)
def test_a_kill_at_any_write_changes_nothing(
    tmp_path: Path, undisturbed: Verdicts, plan: str, deaths: int
) -> None:
    ends = killed_stream(tmp_path, plan)
    assert len(ends) - 1 >= deaths
    check_like_undisturbed(tmp_path, undisturbed)
