"""The pages for people: links lead somewhere, and the sizing table is its own arithmetic."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DAYS = 30


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {target}"


def test_the_sizing_table_follows_from_the_figures_above_it() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    rows = re.findall(
        r"^\| ([\d,]+) \| ([\d.]+) million \| ([\d.]+) GB \| ([\d.]+) GB \| ([\d.]+) GB \|.*\| "
        r"(\d+) (s|min) \|$",
        text,
        re.M,
    )
    assert len(rows) == 4
    for per_day, millions, disk, memory, cached, restore, unit in rows:
        articles = int(per_day.replace(",", "")) * DAYS
        assert float(millions) * 1e6 == pytest.approx(articles, rel=0.02)
        n = float(millions) * 1e6
        assert float(disk) == pytest.approx(n * 1_350 * 1.125 / 1e9, rel=0.02)
        assert float(memory) == pytest.approx(0.8 + n * 68 / 1e9, rel=0.02)
        assert float(cached) == pytest.approx(n * 270 / 1e9, rel=0.02)
        seconds = int(restore) * (60 if unit == "min" else 1)
        assert seconds == pytest.approx(n / 80_000, rel=0.07)
