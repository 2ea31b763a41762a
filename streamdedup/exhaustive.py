"""The same verdicts without an index: every article against every earlier one.

Slow on purpose.  It says what the buckets miss: same shingles, same comparison, same choice of
the best match, but no candidate is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdedup.article import Article
from streamdedup.config import Config
from streamdedup.engine import Deduplicator
from streamdedup.schemes.contract import Keys, Payloads
from streamdedup.schemes.shingled import ShingledScheme
from streamdedup.store.memory import MemoryStore
from streamdedup.verdict import Rejection, Verdict


class OneBucketScheme(ShingledScheme):
    """The text scheme with a single bucket that every article with keys is in."""

    def keys(self, payloads: Payloads) -> Keys:
        """One and the same key for all."""
        has_key = np.diff(super().keys(payloads).starts) > 0
        starts = np.zeros(len(payloads) + 1, np.int64)
        np.cumsum(has_key, out=starts[1:])
        count = int(starts[-1])
        return Keys(np.zeros(count, np.uint64), np.zeros(count, np.uint8), starts)


def exhaustive_verdicts(articles: Sequence[Article], config: Config) -> list[Verdict | Rejection]:
    """Verdicts of an exhaustive exact search, in order."""
    scheme = OneBucketScheme(config.scheme, config.match)
    store = MemoryStore(bucket_entries=max(1, len(articles)))
    outcomes: list[Verdict | Rejection] = []
    with Deduplicator(scheme, store, config) as deduplicator:
        for first in range(0, len(articles), 64):
            outcomes.extend(deduplicator.process(articles[first : first + 64]))
    return outcomes
