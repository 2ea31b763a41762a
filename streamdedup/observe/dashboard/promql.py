"""PromQL in the few forms that the panels need, with the dashboard's variables filled in.

An owner and its standbys export the same metrics: counters of a standby stand still, so rates are
summed; gauges of the index exist once an instance, and are shown one by one.
"""

from __future__ import annotations

from streamdedup.observe.metric import Metric

HERE = 'job="$job", instance=~"$instance"'
WINDOW = "[$__rate_interval]"


def series(metric: Metric, *, part: str = "", **labels: str) -> str:
    """The chosen instances' series; a label value that begins with ~ is a pattern."""
    chosen = [HERE]
    for name, value in labels.items():
        chosen.append(f'{name}=~"{value[1:]}"' if value.startswith("~") else f'{name}="{value}"')
    return f"{metric.name}{part}{{{', '.join(chosen)}}}"


def rate(metric: Metric, by: str = "", *, part: str = "", **labels: str) -> str:
    """How many a second, over all instances; zero shows as zero."""
    return total(f"rate({series(metric, part=part, **labels)}{WINDOW})", by)


def total(inner: str, by: str = "") -> str:
    """Summed up but for these labels."""
    return f"sum by ({by}) ({inner})" if by else f"sum({inner})"


def each(metric: Metric, **labels: str) -> str:
    """A gauge of every instance by itself; twice the same, after a restart, is one."""
    return f"max by (instance) ({series(metric, **labels)})"


def share(part: str, whole: str) -> str:
    """A quotient that is absent, not NaN, where there is no whole."""
    return f"{part} / ({whole} > 0)"


def mean(metric: Metric, by: str = "") -> str:
    """Of what a histogram counted."""
    return share(rate(metric, by, part="_sum"), rate(metric, by, part="_count"))


def quantile(level: float, metric: Metric, by: str = "") -> str:
    """Of what a histogram counted; absent where nothing was counted."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({level:g}, {rate(metric, labels, part='_bucket')}) >= 0"
