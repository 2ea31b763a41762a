"""Writes the dashboard."""

from __future__ import annotations

from streamdedup.observe.dashboard.board import FILE, text

if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
