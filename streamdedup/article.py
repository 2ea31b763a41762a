"""What comes in: an article, and the limits that keep hostile input out of the engine.

Decoding from bytes lives here so that `scan` and any other source agree on what a good article
is.  Nothing here knows about shingles, stores or brokers.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from streamdedup.config import InputConfig
from streamdedup.errors import InputError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = EPOCH.date()
_MILLISECOND = timedelta(milliseconds=1)
_CERTAIN_MS = (-62_000_000_000_000, 253_000_000_000_000)  # the years 6 to 9987
FIRST_MS = -62_135_596_800_000  # the year 1, in which the calendar begins
LAST_MS = 253_402_300_799_999  # the end of 9999


class Article(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One article.  `published` is event time in milliseconds since 1970, or None if unknown.

    >>> Article(id="a1", text="The cat sat on the mat.").published is None
    True
    """

    id: str
    text: str
    published: int | None = None


def milliseconds(moment: datetime) -> int:
    """Event time of a moment; one without a zone is taken as UTC.

    >>> milliseconds(datetime(1970, 1, 1, 0, 0, 1))
    1000
    """
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // _MILLISECOND


def rfc3339(event_ms: int) -> str:
    """The inverse of `milliseconds`, as a UTC string.

    >>> rfc3339(1_500)
    '1970-01-01T00:00:01.500Z'
    """
    minutes, in_minute = divmod(event_ms, 60_000)
    second, rest = divmod(in_minute, 1_000)
    fraction = f".{rest:03}" if rest else ""
    return f"{_minute(minutes)}:{second:02}{fraction}Z"


@lru_cache(1_024)
def _minute(minutes: int) -> str:
    """A live feed has few at a time."""
    days, in_day = divmod(minutes, 1_440)
    hour, minute = divmod(in_day, 60)
    # isoformat, not strftime: the latter writes the year 999 with three digits.
    return f"{(_EPOCH_DAY + timedelta(days=days)).isoformat()}T{hour:02}:{minute:02}"


def what_is_bad(error: Exception) -> str:
    """What a JSON decoder complains of; of bad UTF-8 it only knows the place in some string."""
    return "bad UTF-8 in a string" if isinstance(error, UnicodeDecodeError) else str(error)


class ArticleDecoder:
    """Turns one JSON object (bytes) into an `Article`, or raises `InputError` saying why not."""

    def __init__(self, config: InputConfig) -> None:
        self._max_text_bytes = config.max_text_bytes
        self._max_id_bytes = config.max_id_bytes
        # A letter of two or four bytes takes three times as many when written as \u escapes.
        self.max_line_bytes = 3 * config.max_text_bytes + 65_536
        self._decoder = _decoder(config, published=datetime)
        self._dateless = _decoder(config, published=str)

    def decode(self, line: bytes) -> Article:
        """The article in `line`; every way it can be bad has its own `reason`."""
        if len(line) > self.max_line_bytes:
            raise InputError("too_large", f"{len(line):,} bytes is more than a line may take")
        try:
            wire: Any = self._decoder.decode(line)
        except msgspec.ValidationError:
            wire = self._without_date(line)
            wire.published = _leap_second(wire.published)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError("bad_json", what_is_bad(error)) from None
        except RecursionError:
            raise InputError("too_deep", "the JSON is nested too deeply") from None
        return self._checked(wire.id, wire.text, wire.published)

    def _without_date(self, line: bytes) -> Any:
        """Well-formed JSON in which something is wrong: its date, if this raises nothing."""
        try:
            return self._dateless.decode(line)
        except msgspec.ValidationError as error:
            raise InputError("bad_field", str(error)) from None

    def _checked(self, id: str, text: str, published: datetime | None) -> Article:
        # Four bytes a character at most: encode only what could be over a limit.
        if not id:
            raise InputError("bad_id", "the id is empty")
        if 4 * len(id) > self._max_id_bytes:
            id_bytes = len(id.encode("utf-8", "replace"))
            if id_bytes > self._max_id_bytes:
                raise InputError(
                    "bad_id", f"the id has {id_bytes:,} bytes, over {self._max_id_bytes}"
                )
        if 4 * len(text) > self._max_text_bytes:
            text_bytes = len(text.encode("utf-8", "replace"))
            if text_bytes > self._max_text_bytes:
                raise InputError(
                    "too_large", f"the text has {text_bytes:,} bytes, over {self._max_text_bytes:,}"
                )
        event_ms = None if published is None else _event_ms(published)
        return Article(id=id, text=text, published=event_ms)


def _decoder(config: InputConfig, published: type) -> msgspec.json.Decoder[Any]:
    """Of a struct with the configured field names: msgspec skips every other field unread."""
    shape = msgspec.defstruct(
        "WireArticle",
        [("id", str), ("text", str), ("published", published | None, None)],
        rename={
            "id": config.id_field,
            "text": config.text_field,
            "published": config.published_field,
        },
        gc=False,
    )
    return msgspec.json.Decoder(shape)


def _event_ms(published: datetime) -> int:
    try:
        event_ms = milliseconds(published)
        # Near the years 1 and 9999 a zone can push the moment off the calendar in UTC.
        if not _CERTAIN_MS[0] < event_ms < _CERTAIN_MS[1]:
            rfc3339(event_ms)
    except OverflowError:
        raise _bad_published(published.isoformat()) from None
    return event_ms


def _leap_second(published: str) -> datetime:
    """A second that no clock here can show is taken as the one before it."""
    if published[16:19] == ":60":
        with suppress(msgspec.ValidationError):
            before = msgspec.convert(f"{published[:17]}59{published[19:]}", datetime)
            if milliseconds(before) // 1_000 % 3_600 == 3_599:  # none is in the middle of an hour
                return before
    raise _bad_published(published)


def _bad_published(text: str) -> InputError:
    return InputError("bad_published", f"not an RFC 3339 date and time: {text[:64]!r}")
