"""Compiling before it matters: every kernel of an index, from text to merge, run once.

A kernel is compiled at its first call, or read from the cache of an earlier process; in the middle
of a stream an article would wait for it, seconds for the first head that freezes.

    python -m streamdedup.warm [--check]

fills the cache of an image; with --check it is an error if anything had to be compiled.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer

import msgspec

from streamdedup.article import Article
from streamdedup.compiled import compiled_here
from streamdedup.config import Config, MatchConfig, SchemeConfig, StateConfig
from streamdedup.engine import Deduplicator
from streamdedup.errors import StateError

_PATIENCE_SECONDS = 2.0
_HEAD = 64


def warm_up(config: Config, on_wait: Callable[[], None] = lambda: None) -> None:
    """Run everything on an index so small that it freezes and merges at once.

    `on_wait` is told, from another thread, if that takes more than a moment.
    """
    waiting = Timer(_PATIENCE_SECONDS, on_wait)
    waiting.daemon = True
    waiting.start()
    try:
        _run_everything(config)
    finally:
        waiting.cancel()


def _run_everything(config: Config) -> None:
    small = msgspec.structs.replace(
        config,
        state=StateConfig(
            head_articles=_HEAD, fan_in=2, bucket_entries=config.state.bucket_entries, cache_mib=8
        ),
    )
    # A disk that cannot hold this is told of where it matters; then kernels compile when needed.
    with (
        suppress(StateError, OSError),
        tempfile.TemporaryDirectory(prefix="streamdedup-", ignore_cleanup_errors=True) as name,
    ):
        state = Path(name) / "state"
        for life in range(2):  # the second one makes a head again, and copies what was frozen
            with Deduplicator.open(state, small) as deduplicator:
                for first in range(0, 5 * _HEAD, _HEAD):
                    deduplicator.process(_articles(first, f" {life}"))


def _articles(first: int, ending: str) -> list[Article]:
    """Some like others, in characters of one byte and of more, with and without a date."""
    return [
        Article(
            id=f"t{number}{ending}",
            text="“" + " ".join(f"The boat{number // 2}x{at} sank." for at in range(60)) + ending,
            published=1_000 * number if number % 5 else None,
        )
        for number in range(first, first + _HEAD - 3)
    ]


def _all_kinds() -> Iterator[Config]:
    """Settings that between them need every loop."""
    for scheme in (
        SchemeConfig(),
        SchemeConfig(name="shingles"),
        SchemeConfig(name="shingles", unit="char", bag=True),
    ):
        for match in (MatchConfig(), MatchConfig(verify="signature")):
            yield Config(scheme=scheme, match=match)


def main() -> None:
    """Compile what is not in the cache, and say what that was."""
    for config in _all_kinds():
        warm_up(config)
    names = compiled_here()
    print(f"compiled: {', '.join(names) or 'nothing, all loops are in the cache'}")
    if names and "--check" in sys.argv[1:]:
        sys.exit("error: the cache of compiled loops is not complete")


if __name__ == "__main__":
    main()
