"""How many crops of real articles are found: a contiguous part kept, the rest cut off.

    python benchmarks/crops.py ARTICLES.jsonl.gz [--words 550] [--crops 30] [--set KEY=VALUE]

Of every cluster the first article with enough words is remembered, cut to that many; articles that
are marked `whole_page` are left out.  Crops are judged one by one and not remembered, so none helps
another.
"""

from __future__ import annotations

import argparse
import gzip
import random

import msgspec

from streamdedup import Article, Deduplicator, Verdict
from streamdedup.config import load_config

SHARES = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4, "fifth": 1 / 5}


class Line(msgspec.Struct):
    """What is read of a line."""

    text: str
    cluster: str
    whole_page: bool = False


def originals(path: str, words: int) -> dict[str, list[str]]:
    """The words of one article of each cluster."""
    found: dict[str, list[str]] = {}
    open_ = gzip.open if path.endswith(".gz") else open
    decoder = msgspec.json.Decoder(Line)
    with open_(path, "rb") as file:
        for line in map(decoder.decode, file):
            text = line.text.split()
            if len(text) >= words and not line.whole_page:
                found.setdefault(line.cluster, text[:words])
    return found


def share_found(
    engine: Deduplicator, articles: dict[str, list[str]], kept: int, crops: int
) -> float:
    """Of so many crops of each article, those that are called copies of it."""
    random_ = random.Random(5)
    found = 0
    for cluster, words in articles.items():
        for _ in range(crops):
            start = random_.randrange(len(words) - kept + 1)
            crop = Article(id="crop", text=" ".join(words[start : start + kept]))
            [outcome] = engine.decide(engine.sketch([crop])).outcomes
            found += isinstance(outcome, Verdict) and outcome.duplicate_of == cluster
    return found / (len(articles) * crops)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("articles", help="JSON lines with text and cluster, plain or gzipped")
    parser.add_argument("--words", type=int, default=550, metavar="N")
    parser.add_argument("--crops", type=int, default=30, metavar="N", help="of each article")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    options = parser.parse_args()
    articles = originals(options.articles, options.words)
    if not articles:
        parser.error(f"no article in {options.articles} has {options.words} words")
    with Deduplicator.open(None, load_config(None, overrides=options.settings)) as engine:
        engine.process([Article(id=one, text=" ".join(text)) for one, text in articles.items()])
        print(f"{len(articles)} articles of {options.words} words, {options.crops} crops of each")
        for name, share in SHARES.items():
            kept = int(options.words * share)
            found = share_found(engine, articles, kept, options.crops)
            print(f"  a {name} kept ({kept} words): {found:.2%} found")


if __name__ == "__main__":
    main()
