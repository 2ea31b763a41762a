"""What the files under deploy/ may refer to: our settings, command line, pages and image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from conftest import ROOT
from image import instructions

from streamdedup.cli.app import cli
from streamdedup.cli.run import LEAVE_SECONDS
from streamdedup.config import ENV_PREFIX, FILE_VARIABLE, load_config
from streamdedup.errors import ConfigError

DEPLOY = ROOT / "deploy"
IMAGE = dict(instructions((ROOT / "Dockerfile").read_text()))
VOLUME = "/var/lib/streamdedup"
PAGES = set(re.findall(r'case "(/\w*)"', (ROOT / "streamdedup/observe/server.py").read_text())) - {
    "/"
}
LEAST_GRACE_SECONDS = LEAVE_SECONDS + 0.5


def unknown_settings(env: Mapping[str, str], file: Path | None = None) -> Iterator[str]:
    """What the service itself would say of this environment and the file that it names."""
    env = {name: value for name, value in env.items() if name != FILE_VARIABLE}
    for name, value in env.items():
        if name.startswith(ENV_PREFIX) and "__" not in name:
            yield f"{name} is no setting"
        try:
            load_config(environ={name: value})
        except ConfigError as error:
            yield f"{name}: {error}"
    try:
        load_config(file, environ=env)
    except ConfigError as error:
        yield str(error)


def bad_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Whether our command line takes them."""
    command, *rest = arguments
    with click.Context(cli) as context:
        found = cli.get_command(context, command)
        if found is None:
            yield f"there is no command {command}"
            return
        try:
            found.make_context(command, rest, parent=context)
        except click.ClickException as error:
            yield f"{command}: {error.format_message()}"
