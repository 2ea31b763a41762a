"""The committed dashboard as a test reads it: its panels, and what their expressions name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conftest import ROOT

from streamdedup.observe.catalogue import CATALOGUE
from streamdedup.observe.metric import Kind

GRAFANA = ROOT / "deploy" / "grafana"
BOARD: dict[str, Any] = json.loads((GRAFANA / "dashboards" / "streamdedup.json").read_text())
# What Prometheus makes by itself.
PROMETHEUS_OWN = {"up", "ALERTS"}
_WORDS = {"and", "or", "unless", "bool", "offset", "by", "on", "ignoring", "without"}
_WORDS |= {"group_left", "group_right"}


@dataclass(frozen=True)
class Target:
    """One expression of a panel."""

    panel: str
    expr: str
    legend: str
    instant: bool

    def filled_in(self, scrape_seconds: int) -> str:
        """With the variables as Grafana puts them in, all instances chosen."""
        # max($__interval + scrape interval, 4 * scrape interval), of which the second is the larger
        # for as long as a point is drawn for each scrape.
        window = f"{4 * scrape_seconds}s"
        filled = self.expr.replace("$__rate_interval", window)
        filled = filled.replace("$job", "streamdedup").replace("$instance", ".*")
        assert "$" not in filled, f"{self.panel}: a variable without a value: {filled}"
        return filled


def panels(board: dict[str, Any] = BOARD) -> list[dict[str, Any]]:
    """Without the headings."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def targets(board: dict[str, Any] = BOARD) -> Iterator[Target]:
    for panel in panels(board):
        for target in panel["targets"]:
            yield Target(panel["title"], target["expr"], target["legendFormat"], target["instant"])


def known_samples() -> set[str]:
    """Names under which the catalogue's metrics are exported."""
    known = set()
    for metric in CATALOGUE:
        ends = ("_bucket", "_count", "_sum") if metric.kind is Kind.HISTOGRAM else ("",)
        known |= {metric.name + end for end in ends}
    return known


def named(expr: str) -> set[str]:
    """The metrics that an expression names."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", expr)
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]", "", bare)
    bare = re.sub(r"\b(by|on|ignoring|without|group_left|group_right)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\boffset\s+\w+", "", bare)
    words = re.findall(r"(?<![\w:.])([a-zA-Z_:][\w:]*)(?!\s*\()(?![\w:])", bare)
    return {word for word in words if word not in _WORDS}


def labels(sample: str) -> dict[str, tuple[str, ...]]:
    """What it is told apart by, with the values that are known beforehand."""
    if ":" in sample:  # our recording rules
        return {"job": ()}
    has: dict[str, tuple[str, ...]] = {"job": (), "instance": ()}
    if sample == "ALERTS":
        has |= {"alertname": (), "alertstate": ("pending", "firing")}
    if sample.endswith("_bucket"):
        has["le"] = ()
    for metric in CATALOGUE:
        if metric.name in (sample, re.sub(r"_(bucket|sum|count)$", "", sample)):
            has |= metric.labels
            has |= zip(metric.labels, zip(*metric.known, strict=True), strict=False)
    return has


def wrong_labels(target: Target) -> Iterator[str]:
    """Labels and label values that nothing has: such a panel stays empty or is one line."""
    of_all: set[str] = set()
    for name in named(target.expr):
        has = labels(name)
        of_all |= set(has)
        for matchers in re.findall(rf"(?<![\w:]){re.escape(name)}\{{([^}}]*)\}}", target.expr):
            for label, how, value in re.findall(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"', matchers):
                if label not in has:
                    yield f"{name} has no {label}"
                elif how == "=" and has[label] and value not in has[label]:
                    yield f"{name}: {label} is never {value}"
    grouping = r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)"
    grouped = {label for found in re.findall(grouping, target.expr) for label in found.split(", ")}
    yield from (f"nothing has {label}" for label in grouped - of_all)
    shown = set(re.findall(r"\{\{\s*(\w+)\s*\}\}", target.legend))
    yield from (f"no line has {label}" for label in shown - grouped)
