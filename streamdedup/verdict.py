"""What goes out: one verdict an article, or a rejection that says why there is none.

Both are plain values without processing time, so that the same input gives the same bytes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from streamdedup.article import milliseconds, rfc3339


class Source(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where on Kafka the article came from."""

    topic: str
    partition: int
    offset: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Whether an article is new.  The last match fields are None for a unique article."""

    id: str
    verdict: Literal["unique", "duplicate"]
    story: str
    duplicate_of: str | None = None
    similarity: float | None = None
    measure: Literal["jaccard", "containment", "exact", "signature"] | None = None
    reason: Literal["new", "near", "exact", "redelivery", "revision"] = "new"
    published: int | None = None
    source: Source | None = None


class Rejection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An article that cannot be judged, such as one without a single word."""

    id: str
    reason: str
    detail: str


class _WireVerdict(msgspec.Struct, frozen=True, gc=False):
    id: str
    verdict: str
    story: str
    duplicate_of: str | None
    similarity: float | None
    measure: str | None
    reason: str
    published: str | None
    source: Source | None


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(_WireVerdict)


def encode_verdict(verdict: Verdict, source: Source | None = None) -> bytes:
    """The verdict as one JSON object, all keys present, without a line end.

    A source that is given here stands in for the verdict's own, which the engine leaves empty.

    >>> encode_verdict(Verdict(id="a", verdict="unique", story="a"))[:40]
    b'{"id":"a","verdict":"unique","story":"a"'
    """
    published = None if verdict.published is None else rfc3339(verdict.published)
    return _ENCODER.encode(
        _WireVerdict(
            verdict.id,
            verdict.verdict,
            verdict.story,
            verdict.duplicate_of,
            verdict.similarity,
            verdict.measure,
            verdict.reason,
            published,
            verdict.source if source is None else source,
        )
    )


def decode_verdict(line: bytes) -> Verdict:
    """The inverse of `encode_verdict`; raises `msgspec.DecodeError` for anything else.

    >>> decode_verdict(encode_verdict(Verdict(id="a", verdict="unique", story="a"))).reason
    'new'
    """
    wire = msgspec.structs.asdict(_DECODER.decode(line))
    if wire["published"] is not None:
        wire["published"] = milliseconds(msgspec.convert(wire["published"], datetime))
    # The structs inside are ours already; `from_attributes` lets them be taken as they are.
    return msgspec.convert(wire, Verdict, from_attributes=True)
