"""What other people wrote, made safe to show on a terminal."""

from __future__ import annotations


def printable(text: str, limit: int = 200) -> str:
    r"""The text on one line, control characters escaped, cut to about `limit` characters.

    >>> printable("red \x1b[31malert\n")
    'red \\x1b[31malert\\n'
    >>> printable("abcdef", limit=3)
    'abc…'
    """
    shown = text[:limit]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)
    return shown + "…" if len(text) > limit else shown
