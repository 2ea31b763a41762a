"""The root command, and the one place where an error becomes a message and an exit code.

Commands are imported when they are called, so that `streamdedup --help` stays instant.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from streamdedup import __version__
from streamdedup.cli.exit_codes import ExitCode, exit_code
from streamdedup.cli.interrupts import Interrupted
from streamdedup.cli.terminal import printable
from streamdedup.errors import StreamdedupError

# name -> (module, attribute, what the list of commands says about it)
COMMANDS = {
    "demo": ("demo", "demo", "See it at work on a made-up news feed; nothing else is needed."),
    "run": ("run", "run", "Judge the articles of Kafka topics as they come."),
    "produce": ("produce", "produce", "Send the lines of files into the input topic."),
    "verdicts": ("verdicts", "verdicts", "Follow the verdicts as they come."),
    "dlq": ("dlq", "dlq", "List the records that could not be judged, or send them again."),
    "scan": ("scan", "scan", "Judge every article of JSON-lines files."),
    "eval": ("eval", "evaluate", "Score verdicts against known clusters."),
    "bench": ("bench", "bench", "Measure what an article costs while the index grows."),
    "config": ("config", "config", "Show or check the settings."),
    "state": ("state", "state", "Look into a state directory, copy it, or have it made again."),
}

MESSAGE_CHARACTERS = 2_000


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(import_module(f"streamdedup.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, _, about) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="streamdedup", message="%(prog)s %(version)s")
def cli() -> None:
    """Tell, in a stream of articles, what is new and what has been said before."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; nothing escapes but a message."""
    if _fill_closed_streams():
        _say("error: standard output is closed")
        return ExitCode.DISK
    try:
        # Not cli.main(): that one maps a broken pipe and a keyboard interrupt to its own codes.
        with cli.make_context("streamdedup", list(arguments)) as context:
            cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return ExitCode.USAGE
    except click.ClickException as error:
        return _usage_error(error)
    except Interrupted as signal:
        _say("interrupted")
        return signal.exit_code
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return ExitCode.BROKEN_PIPE
    except Exception as error:
        return _failure(error)
    return ExitCode.OK


def _fill_closed_streams() -> bool:
    """No file opened later may become a standard stream; tells if standard output was closed."""
    closed = sys.stdout is None
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the process's life
    return closed


def _usage_error(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    if context is not None:
        _say(context.get_usage())
    _say(f"error: {error.format_message()}")
    return error.exit_code


def _failure(error: Exception) -> int:
    if os.environ.get("STREAMDEDUP_DEBUG") == "1":
        traceback.print_exception(error)
    code = exit_code(error)
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        _say(f"error: {error.filename}: {reason}" if error.filename else f"error: {reason}")
    elif isinstance(error, StreamdedupError):
        _say(f"error: {error}")
    else:
        _say(f"error: unexpected {type(error).__name__}: {error}")
        _say("This is a bug. STREAMDEDUP_DEBUG=1 shows where it happened.")
    if code is ExitCode.DISK:
        _silence_stdout()
    return code


def _say(message: str) -> None:
    for line in message.splitlines():
        click.echo(printable(line, MESSAGE_CHARACTERS), err=True)


def _silence_stdout() -> None:
    """Bytes that could not be written must not raise again when the interpreter flushes."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
