"""The metric catalogue: its rules, and the page that is made from it."""

from __future__ import annotations

import pytest

from streamdedup.observe.catalogue import CATALOGUE, PAGE, page
from streamdedup.observe.metric import PREFIX, counter, gauge, histogram


def test_the_page_of_metrics_is_what_the_catalogue_says() -> None:
    stale = "docs/metrics.md is stale: run python -m streamdedup.observe.catalogue"
    assert PAGE.read_text("utf-8") == page(), stale


def test_every_metric_has_a_name_of_its_own_and_one_line_of_meaning() -> None:
    names = [metric.name for metric in CATALOGUE]
    assert len(set(names)) == len(names)
    for metric in CATALOGUE:
        assert metric.name.startswith(PREFIX)
        assert metric.meaning.endswith(".")
        assert "\n" not in metric.meaning
        assert "|" not in metric.meaning


def test_units_are_base_units() -> None:
    assert {metric.unit for metric in CATALOGUE} <= {"", "seconds", "bytes", "ratio"}


def test_a_metric_that_breaks_the_rules_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="unit"):
        gauge("disk_free", "Free space.", unit="bytes")
    with pytest.raises(ValueError, match="_total"):
        gauge("things_total", "Things.")
    with pytest.raises(ValueError, match="buckets"):
        histogram("things", "Things.", ())
    with pytest.raises(ValueError, match="grow"):
        histogram("things", "Things.", (2, 1))
    with pytest.raises(ValueError, match="one for each label"):
        counter("things", "Things.", labels={"a": ()}, known=[("x", "y")])


def test_known_label_values_are_there_from_the_start() -> None:
    metric = counter("things", "Things.", labels={"a": ("x", "y"), "b": ("1",)})
    assert metric.beginnings == [("x", "1"), ("y", "1")]
    assert counter("others", "Others.", labels={"a": ()}).beginnings == []
    assert counter("plain", "Plain.").beginnings == [()]
    pairs = counter("pairs", "Pairs.", labels={"a": (), "b": ()}, known=[("x", "1"), ("y", "2")])
    assert pairs.beginnings == [("x", "1"), ("y", "2")]
