"""The dashboard as a file: made of its source, complete, and such that Grafana can show it."""

from __future__ import annotations

import re

import pytest
import yaml
from conftest import ROOT
from dashboard import (
    BOARD,
    GRAFANA,
    PROMETHEUS_OWN,
    Target,
    known_samples,
    named,
    panels,
    targets,
    wrong_labels,
)
from monitors import shipped

from streamdedup.observe.catalogue import CATALOGUE, READY, ROLE
from streamdedup.observe.dashboard.board import FILE, ROWS, WIDTH, text
from streamdedup.observe.metric import Metric

# Units as Grafana's panel editor stores them.
GRAFANA_UNITS = {"short", "none", "percentunit", "s", "bytes", "Bps", "cps"}
NOT_SHOWN: dict[Metric, str] = {
    ROLE: "health_state tells the same, and the disk and the loop with it",
    READY: "owner and standby are the ready states",
}


def recorded() -> set[str]:
    groups = shipped("rules.yml")["groups"]
    return {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}


def test_the_dashboard_is_what_its_source_says() -> None:
    stale = "the dashboard is stale: run python -m streamdedup.observe.dashboard"
    assert FILE.read_text("utf-8") == text(), stale


def test_panels_name_only_metrics_that_exist() -> None:
    known = known_samples() | recorded() | PROMETHEUS_OWN
    for target in targets():
        assert named(target.expr), target
        assert named(target.expr) <= known, target


def test_a_metric_that_does_not_exist_would_be_seen() -> None:
    assert named('sum by (le) (rate(nobody_knows_total{a="up"}[5m]))') == {"nobody_knows_total"}
    assert named("a:b:c / on (x) group_left (y) (d > 0) or vector(0)") == {"a:b:c", "d"}
    assert named("avg_over_time(e[1d] offset 1h) unless f") == {"e", "f"}
    assert not named("nobody_knows_total") <= known_samples() | recorded() | PROMETHEUS_OWN


def test_panels_name_only_labels_and_values_that_their_metrics_have() -> None:
    for target in targets():
        assert list(wrong_labels(target)) == [], target


@pytest.mark.parametrize(
    ("expr", "legend", "said"),
    [
        ("sum by (stag) (rate(streamdedup_stage_seconds_sum[5m]))", "", "nothing has stag"),
        ("sum by (stage) (rate(streamdedup_stage_seconds_sum[5m]))", "{{le}}", "no line has le"),
        ("sum by (le) (rate(streamdedup_stage_seconds_sum[5m]))", "", "nothing has le"),
        ('streamdedup_health_state{stat="owner"}', "", "streamdedup_health_state has no stat"),
        ('streamdedup_health_state{state="boss"}', "", "streamdedup_health_state: state is never"),
        ('streamdedup_articles_total{verdict="copy"}', "", "verdict is never copy"),
        ('ALERTS{alert="x"}', "", "ALERTS has no alert"),
        ("a * on (instanc) group_right (version) streamdedup_build_info", "", "has instanc"),
    ],
)
def test_a_label_that_does_not_exist_would_be_seen(expr: str, legend: str, said: str) -> None:
    [found] = wrong_labels(Target("a panel", expr, legend, instant=False))
    assert said in found


def test_every_metric_is_on_a_panel_or_left_out_for_a_reason() -> None:
    shown = {name for target in targets() for name in named(target.expr)}
    for metric in CATALOGUE:
        there = any(metric.name == re.sub(r"_(bucket|sum|count)$", "", name) for name in shown)
        assert (there or metric.name in shown) is not (metric in NOT_SHOWN), metric.name


def test_every_panel_says_what_it_shows_and_in_what_unit() -> None:
    titles = [panel["title"] for panel in panels()]
    assert len(set(titles)) == len(titles)
    for panel in panels():
        assert re.search(r"\w.*[.)]$", panel["description"]), panel["title"]
        assert len(panel["description"]) > 30, panel["title"]
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"] in GRAFANA_UNITS, panel["title"]
        assert defaults["thresholds"]["steps"][0]["value"] is None, panel["title"]
        steps = [step["value"] for step in defaults["thresholds"]["steps"][1:]]
        assert steps == sorted(steps), panel["title"]


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken: dict[tuple[int, int], str] = {}
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= WIDTH
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]


def test_rows_come_in_the_order_in_which_one_asks() -> None:
    rows = [panel["title"].partition(":")[0] for panel in BOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Overview", "Pipeline", "State", "Quality"]
    assert BOARD["panels"][0]["type"] == "row"


def test_the_manual_tells_what_each_row_answers() -> None:
    manual = (ROOT / "docs" / "operations.md").read_text()
    told = re.findall(r"^\| (\w+) \| .*\? \|$", manual, re.M)
    assert told == [row.title.partition(":")[0] for row in ROWS]


def test_every_query_goes_through_the_variables() -> None:
    variables = {variable["name"] for variable in BOARD["templating"]["list"]}
    assert variables == {"datasource", "job", "instance"}
    for panel in panels():
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            used = set(re.findall(r"\$\{?([a-z]+)", str(target).replace("$__rate_interval", "")))
            assert used <= variables
            assert target["datasource"]["uid"] == panel["datasource"]["uid"] == "${datasource}"
            assert "$job" in target["expr"], panel["title"]
            # Every selector of an instance's metric, not only the first.
            for selector in re.findall(r"streamdedup_[a-z_]+\{([^}]*)\}", target["expr"]):
                assert selector.startswith('job="$job"'), panel["title"]
            assert not re.search(r"\bstreamdedup_[a-z_]+\b(?![{:\w])", target["expr"])


def test_a_single_value_is_asked_for_now_and_rates_follow_the_scrape_interval() -> None:
    for panel in panels():
        for target in panel["targets"]:
            assert target["instant"] is (panel["type"] in ("stat", "table")), panel["title"]
            assert target["instant"] is not target["range"]
            for function, window in re.findall(
                r"(rate|increase|deriv)\([^[]+\[([^]]+)\]", str(target)
            ):
                assert window == "$__rate_interval", (panel["title"], function)


def test_grafana_is_told_where_the_dashboard_and_prometheus_are() -> None:
    [source] = yaml.safe_load(
        (GRAFANA / "provisioning" / "datasources" / "prometheus.yml").read_text()
    )["datasources"]
    [provider] = yaml.safe_load(
        (GRAFANA / "provisioning" / "dashboards" / "streamdedup.yml").read_text()
    )["providers"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    # Grafana makes $__rate_interval of it: four scrapes, which a rate needs to bear a lost one.
    scraped_every = shipped("prometheus.yml")["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scraped_every
    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
    assert BOARD["uid"] == "streamdedup"
    assert BOARD.get("id") is None
