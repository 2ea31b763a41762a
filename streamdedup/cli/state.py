"""`streamdedup state`: what a state directory holds, without changing it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from streamdedup.cli.options import config_options, load
from streamdedup.cli.terminal import printable


@click.group()
def state() -> None:
    """Look into a state directory."""


@state.command()
@click.argument("directory", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@config_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def info(
    directory: Path | None, config_file: Path | None, overrides: tuple[str, ...], as_json: bool
) -> None:
    """Print what DIR holds; without DIR, the directory that `state.path` names."""
    path = directory or Path(load(config_file, overrides).state.path)
    from streamdedup.store.inspect import state_info

    tree = state_info(path)
    click.echo(json.dumps(tree) if as_json else "\n".join(_rows(tree)))


def _rows(tree: dict[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield f"{indent}{name}"
            yield from _rows(value, indent + "  ")
        elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            yield f"{indent}{name}  {len(value):,}"
            for item in value:
                pairs = (f"{key} {_shown(inner)}" for key, inner in item.items())
                yield f"{indent}  " + "  ".join(pairs)
        else:
            yield f"{indent}{name:<24}{_shown(value)}"


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return printable("-" if value is None else str(value))
