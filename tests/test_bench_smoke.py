"""The benchmarks run from end to end on tiny inputs and say what they promise to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, Run, command_environment

from streamdedup import engine
from streamdedup.bench.growth import Growth, Tenth
from streamdedup.bench.stages import STAGES, Stages
from streamdedup.bench.synthetic import synthetic_batch
from streamdedup.engine import Deduplicator

BENCHMARKS = ROOT / "benchmarks"


def python(*arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=command_environment(),
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_growth_figures_are_complete(run: Run, tmp_path: Path) -> None:
    done = run("bench", "--articles", "3000", "--batch", "100", "--plot", "growth.png", "--json",
               "--set", "state.head_articles=256")  # fmt: skip
    assert done.code == 0, done.err
    figures = json.loads(done.out)
    assert [tenth["articles"] for tenth in figures["tenths"]] == list(range(300, 3_001, 300))
    assert set(figures["targets"]) == {
        "last_to_second_tenth",
        "slowest_to_median_batch",
        "peak_rss_bytes",
        "disk_bytes_per_article",
    }
    assert figures["segments"] > 0
    assert figures["wall_us_per_article"] > 0
    assert figures["recall"] > 0.99
    assert figures["wrong"] == 0
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_growth_report_for_a_person_names_every_target(run: Run) -> None:
    done = run("bench", "--articles", "1000", "--batch", "100")
    assert done.code == 0, done.err
    assert done.out.count("target ≤") == 4


def test_targets_of_millions_are_not_held_against_a_small_index(run: Run) -> None:
    done = run("bench", "--articles", "1000", "--batch", "100")
    assert done.out.count("not judged") == 4
    assert "MISSED" not in done.out
    tenths = [Tenth(1, 100.0, 1.0, 1, 1), Tenth(2, 1.0, 1.0, 1, 1)]
    for articles, reached in ((999_999, None), (1_000_000, True)):
        growth = Growth(articles=articles, batch=1, batch_ms=[1.0], tenths=tenths)
        targets = growth.figures()["targets"].values()
        assert [target["reached"] for target in targets] == [reached] * 4


def test_growth_leaves_a_used_directory_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    done = run("bench", "--articles", "1000", "--batch", "100", "--state", "used")
    assert done.code == 2
    assert "not empty" in done.err


def test_growth_keeps_the_index_where_it_is_told_to(run: Run, tmp_path: Path) -> None:
    assert run("bench", "--articles", "1000", "--batch", "100", "--state", "new").code == 0
    assert (tmp_path / "new" / "CURRENT").is_file()


def test_synthetic_articles_do_not_depend_on_batches() -> None:
    whole = synthetic_batch(500, 40)
    part = synthetic_batch(520, 20)
    assert np.array_equal(whole.sets.of(25), part.sets.of(5))
    assert np.array_equal(whole.sources[20:], part.sources)


def test_synthetic_copies_resemble_their_sources() -> None:
    batch = synthetic_batch(0, 2_000)
    copies = np.flatnonzero(batch.sources >= 0)
    assert 0.2 < len(copies) / 2_000 < 0.3
    for copy in copies.tolist():
        own = set(batch.sets.of(copy).tolist())
        source = set(batch.sets.of(int(batch.sources[copy])).tolist())
        assert 0.5 < len(own & source) / len(own | source) < 0.95


def test_stages_are_put_back() -> None:
    before = dict(vars(engine))
    with Deduplicator.open(None) as deduplicator:
        stages = Stages()
        stages.watch(deduplicator)
        assert vars(engine) != before
        stages.stop()
        assert vars(engine) == before
        assert "probe" not in vars(deduplicator.store)
    assert set(stages.cpu_s) == set(STAGES)


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("datasketch")
    pytest.importorskip("rensa")
    pytest.importorskip("matplotlib")
    picture = tmp_path_factory.mktemp("peers") / "peers.png"
    out = python(BENCHMARKS / "peers.py", "--articles", "400", "--rounds", "1", "--json",
                 "--plot", picture)  # fmt: skip
    assert picture.read_bytes().startswith(b"\x89PNG")
    figures: dict[str, Any] = json.loads(out)
    return figures


def test_peers_are_measured_on_the_same_articles(peers: dict[str, Any]) -> None:
    measured = peers["contestants"]
    assert list(measured) == ["streamdedup", "datasketch", "rensa"]
    assert len({one["owed"] for one in measured.values()}) == 1
    assert all(one["cpu_us"] > 0 and one["sketch_cpu_us"] > 0 for one in measured.values())
    assert all(one["precision"] > 0.95 for one in measured.values())
    assert peers["ratios"]["end_to_end"]["streamdedup"] == 1.0
    assert set(peers["targets"]) == {"end_to_end", "sketch"}


def test_peers_split_our_time_by_stage(peers: dict[str, Any]) -> None:
    ours = peers["contestants"]["streamdedup"]
    split = ours["details"]["stages_cpu_us"]
    assert set(STAGES) < set(split)
    assert sum(split.values()) == pytest.approx(ours["cpu_us"], rel=0.1)


def test_benchmark_articles_look_like_news_and_never_change() -> None:
    probe = (
        "import sys; sys.path.insert(0, sys.argv[1]); from articles import samples; import json; "
        "print(json.dumps([[s.id, s.text, s.cluster] for s in samples(60)]))"
    )
    first, again = (python("-c", probe, BENCHMARKS) for _ in range(2))
    assert first == again
    made = json.loads(first)
    words = [len(text.split()) for _, text, _ in made]
    assert 450 < sum(words) / len(words) < 650
    assert 8 <= sum(id != cluster for id, _, cluster in made) <= 32
    assert any("“" in text for _, text, _ in made)
