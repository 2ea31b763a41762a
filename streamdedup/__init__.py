"""streamdedup: tells, in a live stream of articles, what is new and what has been said before.

The public names are loaded on first use, so that `streamdedup --help` does not pay for the
compiled kernels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamdedup.article import Article
    from streamdedup.config import Config, load_config
    from streamdedup.engine import Decision, Deduplicator
    from streamdedup.errors import StreamdedupError
    from streamdedup.verdict import Rejection, Verdict

__version__ = "0.1.0"
__all__ = [
    "Article",
    "Config",
    "Decision",
    "Deduplicator",
    "Rejection",
    "StreamdedupError",
    "Verdict",
    "load_config",
]

_HOMES = {
    "Article": "article",
    "Config": "config",
    "load_config": "config",
    "Decision": "engine",
    "Deduplicator": "engine",
    "StreamdedupError": "errors",
    "Rejection": "verdict",
    "Verdict": "verdict",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'streamdedup' has no attribute {name!r}")
    return getattr(import_module(f"streamdedup.{_HOMES[name]}"), name)
