"""The files that `eval` reads: known clusters, and verdicts as `scan` writes them.

A measurement over half-read files would be worth nothing, so here any bad line is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from streamdedup.article import Article, ArticleDecoder, what_is_bad
from streamdedup.cli.lines import LineSource, Pause
from streamdedup.config import InputConfig
from streamdedup.errors import InputError
from streamdedup.verdict import Verdict


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """Known clusters by article id; the articles in file order where the file has their texts."""

    clusters: dict[str, str | int]
    values: dict[str, str]
    articles: list[Article] | None


class _VerdictLine(msgspec.Struct):
    """The part of a verdict that is scored; whatever else stands in the line is left alone."""

    id: str
    verdict: str
    story: str
    duplicate_of: str | None = None
    reason: str = "new"


def read_truth(path: str, config: InputConfig, by: str | None, *, with_text: bool) -> Truth:
    """Clusters, the values of the field `by`, and the articles if `with_text` asks for them."""
    decoder = ArticleDecoder(config)
    clusters: dict[str, str | int] = {}
    values: dict[str, str] = {}
    articles: list[Article] = []
    for where, line in _lines(path, decoder.max_line_bytes):
        fields = _object(where, line)
        id, cluster = fields.get(config.id_field), fields.get("cluster")
        if not isinstance(id, str) or not isinstance(cluster, str | int):
            raise InputError("bad_truth", f"{where}: needs a string `id` and a `cluster`")
        if clusters.setdefault(id, cluster) != cluster:
            raise InputError("bad_truth", f"{where}: {id!r} is in two clusters")
        if by is not None:
            values.setdefault(id, _label(fields.get(by)))
        if with_text:
            try:
                articles.append(decoder.decode(line))
            except InputError as error:
                raise InputError(error.reason, f"{where}: {error.detail}") from None
    return Truth(clusters=clusters, values=values, articles=articles if with_text else None)


def read_verdicts(path: str, limit_bytes: int = 1_048_576) -> Iterator[Verdict]:
    """The verdicts of a file, in order."""
    decoder = msgspec.json.Decoder(_VerdictLine)
    for where, line in _lines(path, limit_bytes):
        try:
            read = decoder.decode(line)
            yield msgspec.convert(msgspec.to_builtins(read), Verdict)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(
                "bad_verdict", f"{where}: not a verdict: {what_is_bad(error)}"
            ) from None


def _lines(path: str, limit_bytes: int) -> Iterator[tuple[str, bytes]]:
    with LineSource(path) as source:
        for line in source.lines(limit_bytes):
            if isinstance(line, Pause):
                continue
            where = f"{source.name}:{line.number}"
            if line.content is None:
                raise InputError("too_large", f"{where}: a line of {line.length_bytes:,} bytes")
            if line.content.strip():
                yield where, line.content


def _object(where: str, line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError("bad_json", f"{where}: {what_is_bad(error)}") from None
    except RecursionError:
        raise InputError("too_deep", f"{where}: the JSON is nested too deeply") from None


def _label(value: object) -> str:
    if isinstance(value, str):
        return value
    return "(none)" if value is None else msgspec.json.encode(value).decode()
