"""`streamdedup state`: what a state directory holds, a copy of it, or a new beginning.

`info` and `lookup` change nothing and work beside a live service; the others want the directory for
themselves.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from streamdedup.cli.options import config_options, load
from streamdedup.cli.terminal import printable

_directory = click.argument(
    "directory", required=False, type=click.Path(path_type=Path), metavar="[DIR]"
)


@click.group()
def state() -> None:
    """Look into a state directory, copy it, or have it made again."""


@state.command()
@_directory
@config_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def info(
    directory: Path | None, config_file: Path | None, overrides: tuple[str, ...], as_json: bool
) -> None:
    """Print what DIR holds; without DIR, the directory that `state.path` names.

    `changelog` says how much of which topic the index contains: all before `next_offset`.
    """
    path = _path(directory, config_file, overrides)
    import msgspec

    from streamdedup.kafka.changelog import Mark
    from streamdedup.store.inspect import state_info

    tree = state_info(path)
    tree["changelog"] = msgspec.to_builtins(Mark.decode(tree.pop("mark")))
    click.echo(json.dumps(tree) if as_json else "\n".join(_rows(tree)))


@state.command()
@click.argument("id")
@_directory
@config_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def lookup(
    id: str,
    directory: Path | None,
    config_file: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print what is stored under an article's ID, newest first.

    Beside a live service everything is found that it had written when the looking began.
    """
    path = _path(directory, config_file, overrides)
    import msgspec

    from streamdedup.store.lookup import lookup as look_up

    found = look_up(path, id)
    if as_json:
        click.echo(json.dumps({"id": id, "records": msgspec.to_builtins(found)}))
        return
    if not found:
        click.echo(f"nothing is stored under {printable(id)} in {path}", err=True)
    for record in found:
        click.echo(
            f"number {record.number:,}  published {record.published}  "
            f"story {printable(record.story)}  shingles {_shown(record.shingles)}"
        )


@state.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.argument("copy", type=click.Path(path_type=Path), metavar="DEST")
def checkpoint(directory: Path, copy: Path) -> None:
    """Copy DIR, which nobody may have in use, into a new directory DEST.

    Consistent as of this moment.  On one file system the copy shares the files that never change,
    so it is quick and takes no space at first.
    """
    from streamdedup.store.copies import checkpoint as copy_state
    from streamdedup.store.inspect import state_info

    copy_state(directory, copy)
    click.echo(f"{copy} holds {state_info(copy)['articles']:,} articles")


@state.command()
@_directory
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_options
def rebuild(
    directory: Path | None, yes: bool, config_file: Path | None, overrides: tuple[str, ...]
) -> None:
    """Set DIR aside, so that the next `run` makes the index again from the changelog.

    Nothing is deleted.  The changelog remembers what is inside the window.
    """
    path = _path(directory, config_file, overrides)
    from streamdedup.kafka.set_aside import set_aside
    from streamdedup.store.copies import for_ourselves, refuse_without_changelog

    refuse_without_changelog(path)
    with for_ourselves(path):
        if not yes:
            _ask(path)
        moved = set_aside(path)
    click.echo(
        f"{path} was set aside as {moved}; the next `streamdedup run` makes it again from the "
        f"changelog.\nDelete {moved} when that is done."
    )


def _ask(path: Path) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("rebuild sets a state directory aside: say --yes")
    click.confirm(f"Set {path} aside and have it made again from the changelog?", abort=True)


def _path(directory: Path | None, config_file: Path | None, overrides: tuple[str, ...]) -> Path:
    """The argument, or what `state.path` names."""
    return directory or Path(load(config_file, overrides).state.path)


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
