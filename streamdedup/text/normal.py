"""What "the same text" means: the slow, obvious definition that the kernel's tables come from.

Typography goes first (apostrophes become one, invisible characters vanish), then NFKC and full
case folding.  The kernel does the same code point by code point; only a text with characters
that act on their neighbours (combining marks that compose or stand out of order) comes here.
"""

from __future__ import annotations

import re
import unicodedata

# Syndicated copies differ in these; an acute accent standing alone is a mistyped apostrophe.
APOSTROPHES = "'`\u00b4\u02b9\u02bb\u02bc\u1ffd\u2018\u2019\u201b\u2032\u055a\u05f3\uff07"

_IGNORABLE_RANGES = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x0591, 0x05BD),  # Hebrew accents and points, which most texts leave out
    (0x05BF, 0x05BF),
    (0x05C1, 0x05C2),
    (0x05C4, 0x05C5),
    (0x05C7, 0x05C7),
    (0x061C, 0x061C),  # Arabic letter mark
    (0x0640, 0x0640),  # Arabic tatweel stretches a word for the eye only
    (0x064B, 0x0652),  # Arabic vowel signs, which most texts leave out
    (0x0670, 0x0670),
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),  # Mongolian selectors
    (0x200B, 0x200F),  # zero-width space and joiners, direction marks
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),  # tags, more variation selectors
)

# Letters that the same word is typed with on one keyboard and another, or in capitals: Arabic and
# Persian yeh and kaf, and the Turkish i without a dot, whose capital is everybody's I.
_LETTERS = str.maketrans("\u064a\u0649\u0643\u0131", "\u06cc\u06cc\u06a9i")

_APOSTROPHE = re.compile(f"[{re.escape(APOSTROPHES)}]")
_IGNORABLE = re.compile(
    "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _IGNORABLE_RANGES) + "]"
)


def normalise(text: str) -> str:
    """The text as it is compared.

    >>> normalise("It\u2019s Co\u00adoperation, \u2126 and Stra\u00dfe")
    "it's cooperation, \u03c9 and strasse"
    """
    text = _typed(text)
    while True:
        # Full folding keeps the dot of the Turkish capital as a separate mark; readers do not.
        folded = unicodedata.normalize("NFKC", text).replace("\u0130", "i").casefold()
        folded = _typed(unicodedata.normalize("NFKC", folded).translate(_LETTERS))
        # A few characters need a second round (a folding that composes into another capital).
        if folded == text:
            return folded
        text = folded


def _typed(text: str) -> str:
    """The text as a plain keyboard would give it."""
    return _APOSTROPHE.sub("'", _IGNORABLE.sub("", text))
