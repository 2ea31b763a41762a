"""Errors become documented exit codes and one-line messages."""

from __future__ import annotations

import pytest
from conftest import ROOT

from streamdedup import errors
from streamdedup.cli.exit_codes import ExitCode, exit_code
from streamdedup.cli.terminal import printable


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 2),
        (errors.InputError("bad_json", "x"), 3),
        (errors.StateMismatch("x"), 4),
        (errors.StateLocked("x"), 4),
        (errors.StateCorrupt("x"), 4),
        (errors.StateDiskError("x"), 5),
        (errors.SourceError("x"), 5),
        (OSError(28, "No space left on device"), 5),
        (errors.TopicsError("x"), 6),
        (errors.ChangelogMismatch("x"), 6),
        (errors.InputLost("x"), 7),
        (errors.TooManyDeadLetters("x"), 8),
        (ZeroDivisionError("x"), 1),
    ],
)
def test_every_kind_of_error_has_its_code(error: Exception, code: int) -> None:
    assert exit_code(error) == code


def test_the_readme_lists_every_code() -> None:
    readme = (ROOT / "README.md").read_text()
    for code in ExitCode:
        assert f"\n| {code.value} |" in readme


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "a\rb", "\x9b31m", "\u202egnp.exe", "\x00"])
def test_nothing_shown_can_steer_the_terminal(text: str) -> None:
    assert printable(text).isprintable()
