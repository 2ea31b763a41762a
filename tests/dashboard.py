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
            yield Target(panel["title"], target["expr"], target["instant"])


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
