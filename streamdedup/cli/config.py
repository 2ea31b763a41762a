"""`streamdedup config`: what is set, after the file, the environment and the overrides."""

from __future__ import annotations

import json
from pathlib import Path

import click

from streamdedup.cli.options import config_options, load
from streamdedup.cli.toml_text import toml_text


@click.group()
def config() -> None:
    """Show or check the settings.

    Layers, weakest first: defaults, --config FILE (or the one that STREAMDEDUP_CONFIG names),
    STREAMDEDUP_SECTION__KEY in the environment, --set SECTION.KEY=VALUE.
    """


@config.command()
@config_options
@click.option("--json", "as_json", is_flag=True, help="JSON instead of TOML.")
def show(config_file: Path | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print every setting that is in effect, as a config file."""
    from streamdedup.config import config_tree

    tree = config_tree(load(config_file, overrides))
    click.echo(json.dumps(tree) if as_json else toml_text(tree), nl=as_json)


@config.command()
@config_options
def check(config_file: Path | None, overrides: tuple[str, ...]) -> None:
    """Exit with 0 if the settings are good, else say what is wrong and exit with 2."""
    load(config_file, overrides)
    click.echo("the settings are good")
