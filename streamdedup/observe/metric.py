"""What a metric is: its name, its kind, its labels, its unit, its buckets, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product

PREFIX = "streamdedup_"
Labels = tuple[str, ...]


class Kind(StrEnum):
    """As Prometheus knows them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, eq=False)
class Metric:
    """One line of the catalogue.

    `labels` names each label with the values that are known beforehand: a metric is there with all
    of them, at zero, before anything happens.  `known` names those of several labels together.
    What is not known begins with its first, and a rate then misses that.
    """

    name: str
    kind: Kind
    meaning: str
    unit: str = ""
    labels: Mapping[str, Labels] = field(default_factory=dict)
    buckets: Sequence[float] = ()
    known: Sequence[Labels] = ()

    def __post_init__(self) -> None:
        name, kind = self.name, self.kind
        if not name.startswith(PREFIX):
            raise ValueError(f"{name} does not begin with {PREFIX}")
        if name.endswith("_total") is not (kind is Kind.COUNTER):
            raise ValueError(f"{name}: counters end in _total, and nothing else does")
        if self.unit and not name.removesuffix("_total").endswith(f"_{self.unit}"):
            raise ValueError(f"{name} does not name its unit, {self.unit}")
        if any(len(values) != len(self.labels) for values in self.known):
            raise ValueError(f"{name}: known values are one for each label")
        if bool(self.buckets) is not (kind is Kind.HISTOGRAM):
            raise ValueError(f"{name}: histograms have buckets, and nothing else does")
        if list(self.buckets) != sorted(set(self.buckets)):
            raise ValueError(f"{name}: buckets must grow")

    @property
    def beginnings(self) -> list[Labels]:
        """The label values with which it exists from the start."""
        return list(self.known) or list(product(*self.labels.values()))


def counter(
    name: str,
    meaning: str,
    *,
    unit: str = "",
    labels: Mapping[str, Labels] | None = None,
    known: Sequence[Labels] = (),
) -> Metric:
    """A number that only grows while the process lives."""
    return Metric(
        f"{PREFIX}{name}_total", Kind.COUNTER, meaning, unit, labels or {}, known=tuple(known)
    )


def gauge(
    name: str, meaning: str, *, unit: str = "", labels: Mapping[str, Labels] | None = None
) -> Metric:
    """A number that goes up and down."""
    return Metric(f"{PREFIX}{name}", Kind.GAUGE, meaning, unit, labels or {})


def histogram(
    name: str,
    meaning: str,
    buckets: Sequence[float],
    *,
    unit: str = "",
    labels: Mapping[str, Labels] | None = None,
) -> Metric:
    """How often a value was at most so large."""
    return Metric(f"{PREFIX}{name}", Kind.HISTOGRAM, meaning, unit, labels or {}, tuple(buckets))
