"""A stream that is killed again and again: every life forks, goes on from the store and dies.

Run as `python crash_child.py DIR PLAN`; the last life reaches the end and the process exits with 0.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from random import Random
from typing import Any

from streamdedup import Article, Deduplicator
from streamdedup.config import Config, StateConfig, WindowConfig
from streamdedup.store import pieces
from streamdedup.store.build import Build, FullHead
from streamdedup.store.database import Database
from streamdedup.store.index import Index
from streamdedup.verdict import encode_verdict

CONFIG = Config(
    state=StateConfig(head_articles=16, fan_in=2, bucket_entries=8, cache_mib=8),
    # Enough for two tiers of merges, which stop at an eighth of the window.
    window=WindowConfig(seconds=600),
)
BATCH = 6
RANDOM_KILLS = 12
BYTES_A_VERDICT = 180
MOST_A_LIFE = 70  # twelve lives do not reach the end, however slow the hand that kills them


def news(count: int, seed: int = 1) -> list[Article]:
    """An article a second; two in five are earlier ones with a few words changed."""
    random = Random(seed)
    words = ["".join(random.choices("abcdefghijklmnoprstuvw", k=6)) for _ in range(3_000)]
    texts: list[list[str]] = []
    for _ in range(count):
        if texts and random.random() < 0.4:
            text = list(texts[-random.randint(1, min(len(texts), 600))])
            text[random.randrange(len(text))] = random.choice(words)
        else:
            text = random.choices(words, k=40)
        texts.append(text)
    return [
        Article(id=f"n{number}", text=" ".join(text), published=1_000 * number)
        for number, text in enumerate(texts)
    ]


ARTICLES = news(900)


def stream(directory: Path, most: int = 2 * len(ARTICLES)) -> None:
    """Judge what the store has not seen; a verdict is out before its article is stored.

    A life that has judged `most` articles waits for its end.
    """
    judged = 0
    with (
        Deduplicator.open(directory / "state", CONFIG) as engine,
        (directory / "verdicts").open("ab", buffering=0) as out,
    ):
        while (first := engine.store.next_number) < len(ARTICLES):
            decision = engine.decide(engine.sketch(ARTICLES[first : first + BATCH]))
            out.write(b"".join(encode_verdict(verdict) + b"\n" for verdict in decision.outcomes))
            engine.apply(decision)
            judged += len(decision.outcomes)
            if judged >= most:
                signal.pause()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_write(kind: str, when: str, count: int) -> None:
    """SIGKILL before or after the count-th write of a kind, whoever makes it."""
    doing = ["records"]
    seen = 0

    def within(name: Callable[[Any], str], method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def wrapped(self: Any, *rest: Any) -> Any:
            doing.append(name(self))
            try:
                return method(self, *rest)
            finally:
                doing.pop()

        return wrapped

    def build_kind(build: Any) -> str:
        return "freeze" if isinstance(build.material, FullHead) else "merge"

    write = Database.write

    def counted(self: Database, batch: Any) -> None:
        nonlocal seen
        seen += doing[-1] == kind
        now = doing[-1] == kind and seen == count
        if now and when == "before":
            die()
        write(self, batch)
        if now:
            die()

    patched: Any = Build
    patched.advance = within(build_kind, Build.advance)
    patched = Index
    patched._swap_in = within(lambda _: "swap", Index._swap_in)
    patched.expire = within(lambda _: "expiry", Index.expire)
    patched._discard_unfinished = within(lambda _: "open", Index._discard_unfinished)
    patched = Database
    patched.write = counted


def tear(directory: Path, bytes_off: int) -> None:
    """Cut the newest log as a kill in the middle of its last write would."""
    log = max((directory / "state").glob("*.log"))
    os.truncate(log, log.stat().st_size - bytes_off)


def wait_for_growth(file: Path, wanted: int) -> None:
    """However fast the machine, a life gets so far and no further."""
    before = file.stat().st_size if file.exists() else 0
    until = time.monotonic() + 5
    while time.monotonic() < until:
        if file.exists() and file.stat().st_size >= before + wanted:
            return
        time.sleep(0.0005)


def lives(directory: Path, plan: str) -> Iterator[int]:
    """Fork, let the life end, give its wait status; ends when one reached the end."""
    pieces.PIECE_BLOCKS = 4  # so small a filter would be one piece
    random = Random(plan)
    # Compiled code is loaded once here; RocksDB has threads and is opened only behind a fork.
    with Deduplicator.open(None, CONFIG) as engine:
        engine.process(ARTICLES[:60])
    for life in range(1, 1_000):
        child = os.fork()
        if child == 0:
            if plan not in ("random", "none"):
                kind, when = plan.split("-")
                die_at_write(kind, when, life)
            doomed = plan == "random" and life <= RANDOM_KILLS
            stream(directory, MOST_A_LIFE if doomed else 2 * len(ARTICLES))
            os._exit(0)
        if plan == "random" and life <= RANDOM_KILLS:
            wait_for_growth(directory / "verdicts", random.randint(0, 40 * BYTES_A_VERDICT))
            time.sleep(random.uniform(0, 0.002))
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        yield status
        if status == 0:
            return
        if plan.endswith("-torn"):
            tear(directory, random.randint(1, 600))


if __name__ == "__main__":
    ends = list(lives(Path(sys.argv[1]), sys.argv[2]))
    print(json.dumps(ends))
