"""The alerts: real promtool accepts and tries them, and none is without a metric or a runbook."""

from __future__ import annotations

import re
import subprocess

import pytest
from conftest import ROOT
from monitors import found

from streamdedup.observe.catalogue import CATALOGUE
from streamdedup.observe.metric import Kind

FOLDER = ROOT / "deploy" / "prometheus"
RULES = (FOLDER / "rules.yml").read_text()
TESTS = (FOLDER / "rules_test.yml").read_text()
ALERTS = re.findall(r"- alert: (\w+)", RULES)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("promtool", ("check", "config", "prometheus.yml")),
        ("promtool", ("check", "rules", "rules.yml")),
        ("promtool", ("test", "rules", "rules_test.yml")),
        ("amtool", ("check-config", "alertmanager.yml")),
    ],
    ids=["config", "rules", "cases", "alertmanager"],
)
def test_prometheus_own_tools_are_content(tool: str, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [found(tool), *arguments], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("severity", "receiver"), [("critical", "wake-somebody"), ("warning", "look-at-it-tomorrow")]
)
def test_what_is_critical_wakes_somebody_and_the_rest_waits(severity: str, receiver: str) -> None:
    route = [found("amtool"), "config", "routes", "test", "--config.file=alertmanager.yml"]
    done = subprocess.run(
        [*route, f"severity={severity}", "alertname=Any"],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, receiver), done.stderr


def test_rules_name_only_metrics_that_exist() -> None:
    known = {metric.name for metric in CATALOGUE}
    for metric in CATALOGUE:
        if metric.kind is Kind.HISTOGRAM:
            known |= {f"{metric.name}_{end}" for end in ("bucket", "count", "sum")}
    named = set(re.findall(r"(?<!:)\bstreamdedup_[a-z_]+\b(?!:)", RULES))
    assert named
    assert named <= known
    assert set(re.findall(r"\bstreamdedup_[a-z_]+(?=\{)", TESTS)) <= known


def test_every_alert_is_tried_firing_and_silent() -> None:
    cases = re.findall(r"alertname: (\w+)(\n\s+exp_alerts:)?", TESTS)
    assert {name for name, _ in cases} == set(ALERTS)
    assert {name for name, fires in cases if fires} == set(ALERTS)
    assert {name for name, fires in cases if not fires} == set(ALERTS)


def test_every_alert_has_a_severity_and_a_section_to_read() -> None:
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "operations.md").read_text(), re.M)
    assert sections == [name for name in sections if name in ALERTS]
    assert set(sections) == set(ALERTS)
    for alert in ALERTS:
        rule = RULES.partition(f"- alert: {alert}\n")[2].partition("- alert:")[0]
        assert re.search(r"severity: (critical|warning)", rule)
        assert f"runbook: docs/operations.md#{alert.lower()}\n" in rule
