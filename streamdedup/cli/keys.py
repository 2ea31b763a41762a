"""The key that a line gets on Kafka: the id of its article, so that one article stays in order."""

from __future__ import annotations

import msgspec

from streamdedup.article import ArticleDecoder
from streamdedup.config import InputConfig
from streamdedup.errors import InputError


class ArticleKey:
    """Keys of lines; with `check`, a line that cannot be judged is an `InputError`."""

    def __init__(self, config: InputConfig, *, check: bool) -> None:
        self._articles = ArticleDecoder(config)
        self._check = check
        self.max_line_bytes = self._articles.max_line_bytes
        shape = msgspec.defstruct("Keyed", [("id", str)], rename={"id": config.id_field})
        self._keyed = msgspec.json.Decoder(shape)

    def of(self, line: bytes) -> bytes | None:
        """None for a line without an id, which the service will say about it too."""
        if self._check:
            article = self._articles.decode(line)
            if not any(map(str.isalnum, article.text)):
                raise InputError("empty", "the text has no word in it")
            return _bytes(article.id)
        try:
            id: str = self._keyed.decode(line).id  # type: ignore[attr-defined]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return _bytes(id) or None


def _bytes(id: str) -> bytes:
    return id.encode("utf-8", "surrogatepass")
