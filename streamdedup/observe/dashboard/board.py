"""Rows of panels put together into the dashboard, and where it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamdedup.observe.catalogue import BUILD
from streamdedup.observe.dashboard.overview import OVERVIEW
from streamdedup.observe.dashboard.panel import SOURCE, Json, Panel
from streamdedup.observe.dashboard.pipeline import PIPELINE
from streamdedup.observe.dashboard.quality import QUALITY
from streamdedup.observe.dashboard.state import STATE

FILE = Path(__file__).parents[3] / "deploy" / "grafana" / "dashboards" / "streamdedup.json"
UID = "streamdedup"
WIDTH = 24


@dataclass(frozen=True)
class Row:
    """A heading and what stands below it."""

    title: str
    panels: Sequence[Panel]


ROWS = (
    Row("Overview: is all well?", OVERVIEW),
    Row("Pipeline: where does the time go?", PIPELINE),
    Row("State: index, RocksDB, window, restore", STATE),
    Row("Quality: what is found, and what cannot be judged?", QUALITY),
)


def text() -> str:
    """`deploy/grafana/dashboards/streamdedup.json`."""
    return json.dumps(_board(), indent=1, ensure_ascii=False) + "\n"


def _board() -> Json:
    return {
        "uid": UID,
        "title": "streamdedup",
        "description": "An owner and its standbys; made by python -m streamdedup.observe.dashboard",
        "tags": ["streamdedup"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "utc",
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": _variables()},
        "panels": list(_panels()),
    }


def _variables() -> list[Json]:
    chooser: Json = {"type": "query", "datasource": SOURCE, "refresh": 2, "sort": 1}
    return [
        {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
        },
        chooser
        | {
            "name": "job",
            "label": "Job",
            "description": "One group of instances: an owner and its standbys.",
            "query": {"query": f"label_values({BUILD.name}, job)", "refId": "job"},
        },
        chooser
        | {
            "name": "instance",
            "label": "Instance",
            "query": {
                "query": f'label_values({BUILD.name}{{job="$job"}}, instance)',
                "refId": "instance",
            },
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        },
    ]


def _panels() -> Iterator[Json]:
    number, y = 1, 0
    for row in ROWS:
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
        }
        number, x, y, tallest = number + 1, 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, tallest = 0, y + tallest, 0
            yield panel.json(number, x, y)
            number, x, tallest = number + 1, x + panel.width, max(tallest, panel.height)
        y += tallest
