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
        help="Settings in TOML; `streamdedup config show` prints all of them. Without it, the "
        "file that STREAMDEDUP_CONFIG names.",
    )(with_set)


def load(config_file: Path | None, overrides: tuple[str, ...]) -> Config:
    """The settings for this command, from all layers."""
    from streamdedup.config import load_config

    return load_config(config_file, overrides)


def input_topic(config: Config, remedy: str) -> str:
    """The one topic to write articles into, if the settings name just one."""
    names = config.kafka.input
    if len(names) > 1 or names[0].startswith("^"):
        raise click.UsageError(f"kafka.input is {', '.join(names)}: {remedy}")
    return names[0]
