"""The pages for people: links lead somewhere, and the sizing table is its own arithmetic."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
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


OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
SIZES = re.findall(
    r"^\| ([\d,]+) \| ([\d.]+) million \| ([\d.]+) GB \| ([\d.]+) GB \| ([\d.]+) GB \| "
    r"([\d.]+) % \| (\d+) (s|min) \|$",
    OPERATIONS,
    re.M,
)


def cells(first: str) -> list[str]:
    """What stands in the row that begins so."""
    [row] = re.findall(rf"^\| {first} \|(.*)\|$", OPERATIONS, re.M)
    return [cell.strip(" %") for cell in row.split("|")]


def test_the_sizing_table_follows_from_the_figures_around_it() -> None:
    assert len(SIZES) == 4
    rates = [float(cell) for cell in cells("articles a second")]
    owner = [float(cell) for cell in cells("owner, of a core")]
    for per_day, millions, disk, memory, cached, core, restore, unit in SIZES:
        a_day = int(per_day.replace(",", ""))
        assert float(millions) * 1e6 == pytest.approx(a_day * DAYS, rel=0.02)
        n = float(millions) * 1e6
        assert float(disk) == pytest.approx(n * 1_350 * 1.125 / 1e9, rel=0.02)
        assert float(memory) == pytest.approx(0.8 + n * 68 / 1e9, rel=0.02)
        assert float(cached) == pytest.approx(n * 270 / 1e9, rel=0.02)
        assert float(core) == pytest.approx(np.interp(a_day / 86_400, rates, owner), rel=0.1)
        seconds = int(restore) * (60 if unit == "min" else 1)
        assert seconds == pytest.approx(n / 80_000, rel=0.07)


@pytest.mark.parametrize(("name", "a_day"), [("small", "100,000"), ("large", "3,300,000")])
def test_an_example_of_settings_asks_for_the_disk_of_the_sizing_table(
    name: str, a_day: str
) -> None:
    [disk] = [row[2] for row in SIZES if row[0] == a_day]
    assert f": {disk} GB of" in (ROOT / "config" / f"{name}.toml").read_text()
