"""The page at /: what one wants to know at a glance, as plain HTML without scripts or assets.

Everything on it comes from the metrics and from health; nothing of an article can be there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from html import escape
from threading import Lock

import streamdedup
from streamdedup.kafka.report import Role
from streamdedup.observe import catalogue as the
from streamdedup.observe.health import HealthWatch
from streamdedup.observe.series import Series

_REFRESH_SECONDS = 5
_RATE_SECONDS = 30.0
_MIB = 1 << 20
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:44rem;padding:0 1rem;"
    "color:#1c1e21;background:#fff}h1{font-size:1.3rem}table{border-collapse:collapse;width:100%}"
    "td,th{padding:.3rem .6rem .3rem 0;text-align:left;border-bottom:1px solid #e2e4e8;"
    "vertical-align:top;font-weight:400}th{color:#5b616b;width:13rem}"
    ".state{padding:.1rem .6rem;border-radius:.3rem;color:#fff;background:#a33}"
    ".ready{background:#276b3d}@media(prefers-color-scheme:dark){body{color:#e6e6e6;"
    "background:#15171a}td,th{border-color:#33373d}th{color:#9aa1ab}a{color:#8ab4f8}}"
)


class StatusPage:
    """Made anew for every visit; rates are since the visit about half a minute before."""

    def __init__(
        self,
        health: HealthWatch,
        series: Series,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._health = health
        self._series = series
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = Lock()
        self._visits: deque[tuple[float, float]] = deque([(clock(), 0.0)])

    def html(self) -> str:
        """The whole page."""
        health = self._health.now()
        shade = "state ready" if health.ready else "state"
        rows = "\n".join(
            f"<tr><th>{escape(n)}</th><td>{escape(v)}</td></tr>" for n, v in self._rows(health.role)
        )
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="refresh" content="{_REFRESH_SECONDS}">\n'
            '<meta name="viewport" content="width=device-width">\n'
            f"<title>streamdedup: {escape(health.state)}</title>\n<style>{_STYLE}</style>\n"
            f"</head>\n<body>\n<h1>streamdedup {escape(streamdedup.__version__)} "
            f'<span class="{shade}">{escape(health.state)}</span></h1>\n'
            f"<p>{escape(health.why)}</p>\n<table>\n{rows}\n</table>\n"
            '<p><a href="/metrics">metrics</a> · <a href="/healthz">healthz</a> · '
            '<a href="/readyz">readyz</a></p>\n</body>\n</html>\n'
        )

    def _rows(self, role: str) -> Iterator[tuple[str, str]]:
        value, total = self._series.value, self._series.total
        rate = f"{self._records_per_second():,.0f} records/s"
        yield "Throughput", rate if role == Role.WORKING else "none: this instance does not judge"
        yield "Records", f"{value(the.RECORDS):,.0f} judged by this instance"
        articles, unique = total(the.ARTICLES), value(the.STORIES)
        share = f", {1 - unique / articles:.1%} duplicates" if articles else ""
        yield "Articles", f"{articles:,.0f}{share}"
        yield "Dead letters", f"{total(the.DEAD_LETTERS):,.0f}"
        lag = f"{total(the.LAG):,.0f} offsets behind the input"
        yield "Lag", lag if self._series.has(the.LAG) else "only the owner knows it"
        last = value(the.LAST_BATCH)
        ago = f"{_when(last)}, {self._wall_clock() - last:,.0f} s ago" if last else "none yet"
        yield "Last verdicts", ago
        yield "Restore", f"{value(the.RESTORE):.1%} of the changelog"
        position, end = value(the.CHANGELOG_POSITION), value(the.CHANGELOG_END)
        yield "Changelog", f"offset {position:,.0f} of {end:,.0f}"
        segments = value(the.SEGMENTS)
        yield "Index", f"{value(the.INDEXED):,.0f} articles, {segments:,.0f} segments"
        clock, start = value(the.CLOCK), value(the.WINDOW_START)
        if clock:
            since = f", remembers since {_when(start)}" if start else ""
            yield "Stream's clock", f"{_when(clock)}{since}"
        yield "On disk", f"{value(the.TABLE_BYTES) / _MIB:,.1f} MiB"
        yield "Warnings", f"{value(the.TROUBLES):,.0f}"

    def _records_per_second(self) -> float:
        now, records = self._clock(), self._series.value(the.RECORDS)
        with self._lock:
            while len(self._visits) > 1 and self._visits[1][0] <= now - _RATE_SECONDS:
                self._visits.popleft()
            since, before = self._visits[0]
            if now - self._visits[-1][0] >= 1.0:
                self._visits.append((now, records))
        return (records - before) / (now - since) if now > since else 0.0


def _when(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):  # a clock set by wild dates
        return f"{seconds:,.0f} s after 1970"
