"""What the process's exit code says, for scripts that call `streamdedup`.

The codes are part of the interface: one is never given another meaning.
"""

from __future__ import annotations

from enum import IntEnum

from streamdedup.errors import (
    ConfigError,
    InputError,
    InputLost,
    ServiceError,
    SourceError,
    StateDiskError,
    StateError,
    TooManyDeadLetters,
)


class ExitCode(IntEnum):
    """Anything above 128 is 128 plus the number of the signal that ended the run."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    BAD_INPUT = 3
    STATE = 4
    DISK = 5
    KAFKA = 6
    INPUT_LOST = 7
    DEAD_LETTERS = 8
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


def exit_code(error: BaseException) -> ExitCode:
    """The code for an error.

    >>> exit_code(StateDiskError("disk full")).name, exit_code(StateError("locked")).name
    ('DISK', 'STATE')
    """
    match error:
        case ConfigError():
            return ExitCode.USAGE
        case InputError():
            return ExitCode.BAD_INPUT
        case StateDiskError() | SourceError() | OSError():
            return ExitCode.DISK
        case StateError():
            return ExitCode.STATE
        case InputLost():
            return ExitCode.INPUT_LOST
        case TooManyDeadLetters():
            return ExitCode.DEAD_LETTERS
        case ServiceError():
            return ExitCode.KAFKA
        case KeyboardInterrupt():
            return ExitCode.INTERRUPTED
        case _:
            return ExitCode.UNEXPECTED
