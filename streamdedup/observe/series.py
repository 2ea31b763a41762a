"""The present value of every metric, and how Prometheus's own library reads them.

It knows the catalogue's metrics and no service: adding is one dictionary operation a batch, and a
histogram takes a whole array at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from streamdedup.observe.metric import Kind, Labels, Metric

Values = NDArray[np.int64] | NDArray[np.float64]


class _Tally:
    """A histogram's counts by bucket, and the sum."""

    def __init__(self, metric: Metric) -> None:
        self.bounds = np.array(metric.buckets, np.float64)
        self.counts = np.zeros(len(metric.buckets) + 1, np.int64)
        self.sum = 0.0

    def add(self, values: Values) -> None:
        places = np.searchsorted(self.bounds, values)
        self.counts += np.bincount(places, minlength=len(self.counts))
        self.sum += float(values.sum())


class Series(Collector):
    """All time series of one process.  `before` is called when somebody asks for them."""

    def __init__(self, catalogue: Iterable[Metric], before: Callable[[], None]) -> None:
        self._before = before
        self._lock = Lock()
        self._numbers: dict[Metric, dict[Labels, float]] = {}
        self._tallies: dict[Metric, dict[Labels, _Tally]] = {}
        for metric in catalogue:
            if metric.kind is Kind.HISTOGRAM:
                self._tallies[metric] = {labels: _Tally(metric) for labels in metric.beginnings}
            else:
                self._numbers[metric] = dict.fromkeys(metric.beginnings, 0.0)

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """A counter grows."""
        with self._lock:
            values = self._numbers[metric]
            values[labels] = values.get(labels, 0.0) + amount

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """A gauge, or a counter that is counted elsewhere, has this value now."""
        with self._lock:
            self._numbers[metric][labels] = value

    def set_one(self, metric: Metric, chosen: str) -> None:
        """1 for this label value, 0 for all others."""
        with self._lock:
            values = self._numbers[metric]
            self._numbers[metric] = dict.fromkeys(values, 0.0) | {(chosen,): 1.0}

    def replace(self, metric: Metric, values: dict[Labels, float]) -> None:
        """These label values and no others."""
        with self._lock:
            self._numbers[metric] = values

    def observe(self, metric: Metric, values: Values, *labels: str) -> None:
        """A histogram takes all of them."""
        if len(values) == 0:
            return
        with self._lock:
            tallies = self._tallies[metric]
            if labels not in tallies:
                tallies[labels] = _Tally(metric)
            tallies[labels].add(values)

    def value(self, metric: Metric, *labels: str) -> float:
        """A counter or gauge as it is; 0 if it has not been seen."""
        with self._lock:
            return self._numbers[metric].get(labels, 0.0)

    def total(self, metric: Metric) -> float:
        """The sum over all labels."""
        with self._lock:
            return sum(self._numbers[metric].values())

    def has(self, metric: Metric) -> bool:
        """Whether a counter or gauge has any value now."""
        with self._lock:
            return bool(self._numbers[metric])

    def collect(self) -> Iterator[Family]:
        """For a registry of prometheus_client."""
        self._before()
        with self._lock:
            numbers = {metric: dict(values) for metric, values in self._numbers.items()}
            tallies = {
                metric: {labels: (tally.counts.copy(), tally.sum) for labels, tally in of.items()}
                for metric, of in self._tallies.items()
            }
        for metric, values in numbers.items():
            yield _plain(metric, values)
        for metric, counted in tallies.items():
            yield _histogram(metric, counted)

    def describe(self) -> list[Family]:
        """Names are unique already; nothing is asked at registration."""
        return []


def _plain(metric: Metric, values: dict[Labels, float]) -> Family:
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.meaning, labels=list(metric.labels))
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _histogram(
    metric: Metric, counted: dict[Labels, tuple[NDArray[np.int64], float]]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(metric.name, metric.meaning, labels=list(metric.labels))
    bounds = [*(str(float(bound)) for bound in metric.buckets), "+Inf"]
    for labels, (counts, total) in counted.items():
        buckets = list(zip(bounds, np.cumsum(counts).astype(float).tolist(), strict=True))
        family.add_metric(labels, buckets=buckets, sum_value=total)
    return family
