"""The figures at the end of a scan: counted in constant memory, shown as text or JSON."""

from __future__ import annotations

import json
from collections import Counter
from time import perf_counter
from typing import Any

from streamdedup.verdict import Verdict


class ScanSummary:
    """What one scan has seen so far."""

    def __init__(self) -> None:
        self._started = perf_counter()
        self._unique: Counter[str] = Counter()
        self._duplicates: Counter[str] = Counter()
        self._bad_lines: Counter[str] = Counter()

    def add(self, verdict: Verdict) -> None:
        by_reason = self._unique if verdict.verdict == "unique" else self._duplicates
        by_reason[verdict.reason] += 1

    def add_bad_line(self, reason: str) -> None:
        self._bad_lines[reason] += 1

    def __bool__(self) -> bool:
        """Whether there is anything to tell."""
        return any((self._unique, self._duplicates, self._bad_lines))

    def figures(self) -> dict[str, Any]:
        """Everything counted.  A story is counted where it starts: at its first, new article."""
        seconds = perf_counter() - self._started
        articles = self._unique.total() + self._duplicates.total()
        return {
            "articles": articles,
            "unique": self._unique.total(),
            "duplicates": self._duplicates.total(),
            "stories": self._unique["new"],
            "unique_reasons": dict(sorted(self._unique.items())),
            "duplicate_reasons": dict(sorted(self._duplicates.items())),
            "bad_lines": self._bad_lines.total(),
            "bad_line_reasons": dict(sorted(self._bad_lines.items())),
            "seconds": round(seconds, 3),
            "articles_per_second": round(articles / seconds, 1),
        }

    def as_json(self) -> str:
        return json.dumps(self.figures())

    def as_text(self) -> str:
        figures = self.figures()
        rows = [
            ("articles", figures["articles"], ""),
            ("unique", figures["unique"], _listed(figures["unique_reasons"])),
            ("duplicates", figures["duplicates"], _listed(figures["duplicate_reasons"])),
            ("stories", figures["stories"], ""),
            ("bad lines", figures["bad_lines"], _listed(figures["bad_line_reasons"])),
        ]
        lines = [f"{name:<11}{count:>10,}   {detail}".rstrip() for name, count, detail in rows]
        speed = figures["articles_per_second"]
        lines.append(f"in {figures['seconds']:,.2f} s, {speed:,.0f} articles a second")
        return "\n".join(lines)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
