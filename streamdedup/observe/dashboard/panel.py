"""A panel as a value, and its form in Grafana's JSON.

It knows Grafana and none of our metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = dict[str, Any]
SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}


class Unit(StrEnum):
    """Of those that Grafana knows, the ones in use."""

    NUMBER = "short"
    WHOLE = "none"
    SHARE = "percentunit"
    SECONDS = "s"
    BYTES = "bytes"
    BYTES_A_SECOND = "Bps"
    A_SECOND = "cps"


class Kind(StrEnum):
    """Panel types, as Grafana calls them."""

    LINES = "timeseries"
    FIGURE = "stat"
    HEAT_MAP = "heatmap"
    STATES = "state-timeline"
    TABLE = "table"


GREEN, ORANGE, RED, BLUE, GREY = "green", "orange", "red", "blue", "text"
Steps = Sequence[tuple[float, str]]
"""From this value on, this colour."""


@dataclass(frozen=True)
class Query:
    """One expression and what its series are called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """`base` is the colour below the first of `steps`; `labels` are names for values."""

    title: str
    description: str
    queries: Sequence[Query]
    unit: Unit
    kind: Kind = Kind.LINES
    width: int = 8
    height: int = 7
    base: str = GREEN
    steps: Steps = ()
    stacked: bool = False
    top: float | None = None
    empty: str = "no data"
    labels: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @property
    def instant(self) -> bool:
        """One value is of now: the last one of three hours would hide that it has ended."""
        return self.kind in (Kind.FIGURE, Kind.TABLE)

    def json(self, number: int, x: int, y: int) -> Json:
        """At its place."""
        defaults: Json = {
            "unit": self.unit,
            "noValue": self.empty,
            "color": {"mode": "thresholds" if self._shows_steps else "palette-classic"},
            "thresholds": {"mode": "absolute", "steps": self._steps()},
            "mappings": self._mappings(),
            "custom": self._custom(),
        }
        if self.kind is Kind.LINES:
            defaults["min"] = 0
        if self.top is not None:
            defaults["max"] = self.top
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self._target(*one) for one in zip("ABCDEF", self.queries, strict=False)],
            "fieldConfig": {"defaults": defaults, "overrides": []},
            "options": self._options(),
            "transformations": self._transformations(),
        }

    @property
    def _shows_steps(self) -> bool:
        return self.kind in (Kind.FIGURE, Kind.STATES)

    def _steps(self) -> list[Json]:
        first: Json = {"color": self.base, "value": None}
        return [first, *({"color": color, "value": value} for value, color in self.steps)]

    def _mappings(self) -> list[Json]:
        if not self.labels:
            return []
        named = {
            str(value): {"text": text, "color": color, "index": index}
            for index, (value, (text, color)) in enumerate(self.labels.items())
        }
        return [{"type": "value", "options": named}]

    def _custom(self) -> Json:
        if self.kind is Kind.STATES:
            return {"fillOpacity": 80, "lineWidth": 0}
        if self.kind is not Kind.LINES:
            return {}
        return {
            "lineWidth": 1,
            "fillOpacity": 30 if self.stacked else 5,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if self.steps else "off"},
        }

    def _options(self) -> Json:
        match self.kind:
            case Kind.LINES:
                return {
                    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                    "tooltip": {"mode": "multi", "sort": "desc"},
                }
            case Kind.FIGURE:
                return {
                    "reduceOptions": {"calcs": ["last"], "fields": "", "values": False},
                    "colorMode": "background",
                    "graphMode": "none",
                    "textMode": "value",
                }
            case Kind.HEAT_MAP:
                return {
                    "calculate": False,
                    "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
                    "cellGap": 1,
                    "yAxis": {"axisPlacement": "left", "unit": Unit.NUMBER},
                    "tooltip": {"mode": "single", "yHistogram": True},
                }
            case Kind.STATES:
                return {"showValue": "auto", "mergeValues": True, "rowHeight": 0.8}
            case Kind.TABLE:
                return {"showHeader": True}

    def _transformations(self) -> list[Json]:
        if self.kind is not Kind.TABLE:
            return []
        # What is told stands in the labels.
        hidden = {"excludeByName": {"Time": True, "Value": True}}
        return [{"id": "organize", "options": hidden}]

    def _target(self, letter: str, query: Query) -> Json:
        form = {Kind.HEAT_MAP: "heatmap", Kind.TABLE: "table"}.get(self.kind, "time_series")
        return {
            "refId": letter,
            "datasource": SOURCE,
            "expr": query.expr,
            "legendFormat": query.legend or "__auto",
            "format": form,
            "instant": self.instant,
            "range": not self.instant,
        }
