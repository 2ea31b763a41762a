"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from streamdedup.config import Config

type_file = click.Path(exists=True, dir_okay=False, path_type=Path)


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--config FILE` and `--set section.key=value`."""
    with_set = click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Override one setting; may be repeated.",
    )(command)
    return click.option(
        "--config",
        "config_file",
        type=type_file,
        metavar="FILE",
        help="Settings in TOML; `streamdedup config show` prints all of them.",
    )(with_set)


def load(config_file: Path | None, overrides: tuple[str, ...]) -> Config:
    """The settings for this command, from all layers."""
    from streamdedup.config import load_config

    return load_config(config_file, overrides)
