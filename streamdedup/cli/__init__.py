"""The command line: one file a command, each importing what is heavy only when it runs.

This package owns what a person at a terminal sees: options, messages, exit codes.  It decides
nothing about articles.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Entry point of the `streamdedup` command."""
    from streamdedup.cli.app import run

    sys.exit(run(sys.argv[1:]))
