"""Before the curtain rises: what must be compiled on this machine is, so that nobody waits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from threading import Timer

from streamdedup.article import ArticleDecoder
from streamdedup.config import Config, InputConfig
from streamdedup.demo.feed import Feed
from streamdedup.engine import Deduplicator

_PATIENCE_SECONDS = 2.0


def warm_up(config: Config, on_wait: Callable[[], None]) -> None:
    """Judge a few articles and forget them; `on_wait` is told if it takes more than a moment."""
    decode = ArticleDecoder(InputConfig()).decode
    articles = [decode(line.content) for line in islice(Feed().lines(), 20)]
    waiting = Timer(_PATIENCE_SECONDS, on_wait)
    waiting.daemon = True
    waiting.start()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="streamdedup-", ignore_cleanup_errors=True) as name,
            Deduplicator.open(Path(name) / "state", config) as engine,
        ):
            for _ in range(2):
                engine.process(articles)
    finally:
        waiting.cancel()
