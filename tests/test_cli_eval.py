"""`streamdedup eval` from files to figures, on cases small enough to compute by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import SAMPLE, Run, json_lines, small_feed

from streamdedup import Article
from streamdedup.cli.eval import batches

TRUTH = [
    {"id": "a1", "cluster": "A", "lang": "en"},
    {"id": "a2", "cluster": "A", "lang": "en"},
    {"id": "b1", "cluster": "B", "lang": "fr"},
    {"id": "b2", "cluster": "B", "lang": "fr"},
    {"id": "c1", "cluster": 3},
]


def verdict(id: str, of: str | None = None) -> dict[str, Any]:
    return {
        "id": id,
        "verdict": "unique" if of is None else "duplicate",
        "story": of or id,
        "duplicate_of": of,
        "similarity": None if of is None else 0.9,
        "measure": None if of is None else "jaccard",
        "reason": "new" if of is None else "near",
        "published": None,
        "source": None,
    }


# One right (a2), one missed (b2), one wrong (c1).
VERDICTS = [
    verdict("a1"),
    verdict("a2", "a1"),
    verdict("b1"),
    verdict("b2"),
    verdict("c1", "a1"),
]


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "truth.jsonl"
    path.write_bytes(json_lines(TRUTH))
    return path


def test_json_figures_of_a_case_done_by_hand(run: Run, truth: Path) -> None:
    done = run("eval", truth, "-", "--json", stdin=json_lines(VERDICTS))
    assert done.code == 0
    figures = json.loads(done.out)
    assert (figures["tp"], figures["fp"], figures["fn"]) == (1, 1, 1)
    assert (figures["precision"], figures["recall"], figures["f1"]) == (0.5, 0.5, 0.5)
    # Pairs together in both: a1 a2.  By truth: 2 pairs; by stories (a1 a2 c1): 3; of 10 in all.
    assert figures["ari"] == pytest.approx((1 - 0.6) / (2.5 - 0.6))
    assert (figures["articles"], figures["clusters"], figures["stories"]) == (5, 3, 3)


def test_the_text_report_has_the_same_figures(run: Run, truth: Path, tmp_path: Path) -> None:
    (tmp_path / "v.jsonl.gz").write_bytes(gzip.compress(json_lines(VERDICTS)))
    done = run("eval", truth, "v.jsonl.gz")
    assert done.code == 0
    heading, row, counts = done.out.splitlines()
    assert heading.split() == ["precision", "recall", "F1", "ARI", "tp", "fp", "fn"]
    assert row.split() == ["verdicts", "0.5000", "0.5000", "0.5000", "0.2105", "1", "1", "1"]
    assert counts == "5 articles, 3 clusters, 3 stories"


def test_figures_for_each_value_of_a_field(run: Run, truth: Path) -> None:
    done = run("eval", truth, "-", "--by", "lang", "--json", stdin=json_lines(VERDICTS))
    by = json.loads(done.out)["by"]
    assert list(by) == ["lang=(none)", "lang=en", "lang=fr"]
    assert (by["lang=en"]["precision"], by["lang=en"]["recall"]) == (1.0, 1.0)
    assert (by["lang=fr"]["tp"], by["lang=fr"]["fn"]) == (0, 1)
    assert by["lang=(none)"]["fp"] == 1


def test_mistakes_are_listed_on_request(run: Run, truth: Path) -> None:
    done = run("eval", truth, "-", "--errors", "9", stdin=json_lines(VERDICTS))
    missed, wrong = done.out.splitlines()[-2:]
    assert missed == "missed  b2 (cluster B); b1 was there to be found"
    assert wrong == "wrong   c1 (cluster 3) was called a copy of a1"
    one = run("eval", truth, "-", "--errors", "1", "--json", stdin=json_lines(VERDICTS))
    assert [error["id"] for error in json.loads(one.out)["errors"]] == ["b2"]


def test_repeated_ids_are_left_out_and_told(run: Run, truth: Path) -> None:
    again = verdict("a1", "a1") | {"reason": "redelivery", "similarity": 1.0, "measure": "exact"}
    done = run("eval", truth, "-", "--json", stdin=json_lines([*VERDICTS, again]))
    figures = json.loads(done.out)
    assert figures["repeated"] == 1
    assert (figures["tp"], figures["articles"]) == (1, 5)


@pytest.mark.parametrize(
    ("truth_lines", "verdict_lines", "said"),
    [
        (b'{"id":"a"}\n', b"", "truth.jsonl:1: needs"),
        (b'{"id":"a","cluster":null}\n', b"", "truth.jsonl:1: needs"),
        (b'{"id":"a","cluster":1}\n{"id":"a","cluster":2}\n', b"", "truth.jsonl:2: 'a' is in two"),
        (b"nonsense\n", b"", "truth.jsonl:1: "),
        (b'{"id":"a","cluster":1}\n', b'\n{"id":"a"}\n', "standard input:2: not a verdict"),
        (
            b'{"id":"a","cluster":1}\n',
            b'{"id":"a","verdict":"perhaps","story":"a"}\n',
            "not a verd",
        ),
    ],
)
def test_a_bad_line_in_either_file_is_an_error(
    run: Run, truth: Path, truth_lines: bytes, verdict_lines: bytes, said: str
) -> None:
    truth.write_bytes(truth_lines)
    done = run("eval", truth, "-", stdin=verdict_lines)
    assert done.code == 3
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert said in done.err


def test_truth_and_verdicts_cannot_both_be_standard_input(run: Run) -> None:
    assert run("eval", "-", "-").code == 2


def test_without_verdicts_the_engine_judges_the_texts_of_the_truth(
    run: Run, tmp_path: Path
) -> None:
    clusters = {"a1": "A", "a2": "A", "b1": "B"}
    articles = [article | {"cluster": clusters[article["id"]]} for article in small_feed()]
    (tmp_path / "t.jsonl").write_bytes(json_lines(articles))
    figures = json.loads(run("eval", "t.jsonl", "--json").out)
    assert (figures["tp"], figures["fp"], figures["fn"], figures["ari"]) == (1, 0, 0, 1.0)


def test_without_verdicts_a_truth_without_texts_is_an_error(run: Run, truth: Path) -> None:
    done = run("eval", truth)
    assert done.code == 3
    assert "text" in done.err


def test_exhaustive_shows_what_the_index_loses(run: Run, tmp_path: Path) -> None:
    clusters = {"a1": "A", "a2": "A", "b1": "B"}
    articles = [article | {"cluster": clusters[article["id"]]} for article in small_feed()]
    (tmp_path / "t.jsonl").write_bytes(json_lines(articles))
    figures = json.loads(run("eval", "t.jsonl", "--exhaustive", "--json").out)
    assert figures["exhaustive"]["recall"] == 1.0
    assert figures["recall_lost"] == 0.0
    assert figures["duplicates_lost"] == 0
    # Verdicts that found nothing: comparing every pair finds the copy.
    blind = json_lines([verdict("a1"), verdict("b1"), verdict("a2")])
    figures = json.loads(run("eval", "t.jsonl", "-", "--exhaustive", "--json", stdin=blind).out)
    assert figures["recall_lost"] == 1.0
    assert figures["duplicates_lost"] == 1


def test_the_sample_feed_is_judged_well(run: Run, tmp_path: Path) -> None:
    assert run("scan", SAMPLE / "feed.jsonl", "--output", "v.jsonl").code == 0
    figures = json.loads(run("eval", SAMPLE / "truth.jsonl", "v.jsonl", "--json").out)
    assert figures["missing"] == figures["unknown"] == 0
    assert figures["f1"] > 0.95


def test_a_batch_of_long_articles_is_bounded_in_size() -> None:
    articles = [Article(id=f"a{n}", text="x" * 4_000_000) for n in range(12)]
    assert [len(batch) for batch in batches(articles)] == [9, 3]
