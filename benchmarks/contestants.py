"""The contestants of `peers.py`, each run in a process of its own.

Every one gets the same articles and gives the same answer: for each article the earlier one that
it copies, or None.  The other libraries are used as their own examples use them.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Protocol

import msgspec
from articles import Sample

from streamdedup.quality import figures, judge
from streamdedup.verdict import Verdict

BATCH_ARTICLES = 1_000
PERMUTATIONS = 128
THRESHOLD = 0.5
RENSA_BANDS = 32  # of 4 rows: the number of bands that divides 128 and suits the threshold best

Answers = list[str | None]


class Contestant(Protocol):
    """What is measured."""

    def warm_up(self, samples: Sequence[Sample]) -> None:
        """Whatever is paid once a process."""

    def sketch(self, samples: Sequence[Sample]) -> None:
        """From texts to signatures or keys, nothing else."""

    def judge(self, samples: Sequence[Sample]) -> Answers:
        """All of it."""

    def details(self) -> dict[str, object]:
        """What else it has to say of itself, after `judge`."""


@dataclass
class Measured:
    """Microseconds an article, and how good the answers were."""

    name: str
    articles: int
    cpu_us: float
    wall_us: float
    sketch_cpu_us: float
    precision: float
    recall: float
    found: int
    owed: int
    details: dict[str, object] = field(default_factory=dict)


def measure(name: str, samples: Sequence[Sample]) -> Measured:
    """Run one contestant over the articles, here and now."""
    contestant = CONTESTANTS[name]()
    contestant.warm_up(samples[:200])
    # CPU time of the whole process: what libraries do in threads of their own counts.
    cpu = process_time()
    contestant.sketch(samples)
    sketch_cpu = process_time() - cpu
    wall, cpu = perf_counter(), process_time()
    answers = contestant.judge(samples)
    cpu, wall = process_time() - cpu, perf_counter() - wall
    count = len(samples)
    verdicts = [
        Verdict(id=sample.id, verdict="unique", story=sample.id)
        if answer is None
        else Verdict(id=sample.id, verdict="duplicate", story=answer, duplicate_of=answer)
        for sample, answer in zip(samples, answers, strict=True)
    ]
    quality = figures(judge(verdicts, {sample.id: sample.cluster for sample in samples}).scored)
    return Measured(
        name=name,
        articles=count,
        cpu_us=1e6 * cpu / count,
        wall_us=1e6 * wall / count,
        sketch_cpu_us=1e6 * sketch_cpu / count,
        precision=quality.precision,
        recall=quality.recall,
        found=quality.tp + quality.fp,
        owed=quality.tp + quality.fn,
        details=contestant.details(),
    )


def _batches(samples: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
    for first in range(0, len(samples), BATCH_ARTICLES):
        yield samples[first : first + BATCH_ARTICLES]


class Ours:
    """streamdedup on RocksDB, until the index is closed on disk."""

    def __init__(self) -> None:
        from streamdedup import Config
        from streamdedup.schemes.shingled import ShingledScheme

        self._config = Config()
        self._scheme = ShingledScheme(self._config.scheme, self._config.match)
        self._details: dict[str, object] = {}

    def warm_up(self, samples: Sequence[Sample]) -> None:
        """Compile (or load) the kernels."""
        from streamdedup.warm import warm_up

        warm_up(self._config)
        self.judge(samples)

    def sketch(self, samples: Sequence[Sample]) -> None:
        """Texts to bucket keys."""
        from streamdedup import Article

        for batch in _batches(samples):
            articles = [Article(id=sample.id, text=sample.text) for sample in batch]
            self._scheme.keys(self._scheme.payloads(articles))

    def judge(self, samples: Sequence[Sample]) -> Answers:
        """Texts to verdicts that are on disk."""
        from streamdedup import Article, Deduplicator
        from streamdedup.bench.stages import Stages

        answers: Answers = []
        stages = Stages()
        with tempfile.TemporaryDirectory(prefix="streamdedup-") as name:
            process_start, thread_start = process_time(), thread_time()
            deduplicator = Deduplicator.open(Path(name) / "state", self._config)
            stages.watch(deduplicator)
            for batch in _batches(samples):
                articles = [Article(id=sample.id, text=sample.text) for sample in batch]
                for outcome in deduplicator.process(articles):
                    assert isinstance(outcome, Verdict)
                    answers.append(outcome.duplicate_of)
            stages.stop()
            candidates = deduplicator.stats().candidates
            deduplicator.close()
            own = thread_time() - thread_start
            all_threads = process_time() - process_start
        split = {stage: 1e6 * cpu / len(samples) for stage, cpu in stages.cpu_s.items()}
        split["open, close, loop"] = 1e6 * own / len(samples) - sum(split.values())
        split["background threads"] = 1e6 * (all_threads - own) / len(samples)
        self._details = {
            "stages_cpu_us": split,
            "candidates_per_article": candidates / len(samples),
        }
        return answers

    def details(self) -> dict[str, object]:
        """Where the time goes."""
        return self._details


def word_shingles(text: str) -> set[str]:
    """Word 3-shingles, as users of min-hash libraries write them."""
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[at : at + 3]) for at in range(len(words) - 2)}


class Datasketch:
    """datasketch's MinHashLSH in memory."""

    def warm_up(self, samples: Sequence[Sample]) -> None:
        """Its permutations are made on the first use."""
        self.judge(samples)

    def sketch(self, samples: Sequence[Sample]) -> None:
        """Texts to signatures."""
        for sample in samples:
            self._minhash(sample.text)

    def judge(self, samples: Sequence[Sample]) -> Answers:
        """Query, verify by signature, insert."""
        from datasketch import MinHash, MinHashLSH

        index = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
        signatures: dict[str, MinHash] = {}
        answers: Answers = []
        for sample in samples:
            minhash = self._minhash(sample.text)
            best, answer = THRESHOLD, None
            for other in index.query(minhash):
                similarity = minhash.jaccard(signatures[other])
                if similarity >= best:
                    best, answer = similarity, other
            answers.append(answer)
            index.insert(sample.id, minhash)
            signatures[sample.id] = minhash
        return answers

    def details(self) -> dict[str, object]:
        """Nothing more."""
        return {}

    def _minhash(self, text: str):  # type: ignore[no-untyped-def]
        from datasketch import MinHash

        minhash = MinHash(num_perm=PERMUTATIONS)
        minhash.update_batch([shingle.encode() for shingle in word_shingles(text)])
        return minhash


class Rensa:
    """rensa's RMinHashLSH in memory."""

    def warm_up(self, samples: Sequence[Sample]) -> None:
        """A few articles."""
        self.judge(samples)

    def sketch(self, samples: Sequence[Sample]) -> None:
        """Texts to signatures."""
        for sample in samples:
            self._minhash(sample.text)

    def judge(self, samples: Sequence[Sample]) -> Answers:
        """Query, verify by signature, insert."""
        from rensa import RMinHashLSH

        index = RMinHashLSH(THRESHOLD, PERMUTATIONS, RENSA_BANDS)
        signatures = []
        answers: Answers = []
        for number, sample in enumerate(samples):
            minhash = self._minhash(sample.text)
            best, answer = THRESHOLD, None
            for other in index.query(minhash):
                similarity = minhash.jaccard(signatures[other])
                if similarity >= best:
                    best, answer = similarity, samples[other].id
            answers.append(answer)
            index.insert(number, minhash)
            signatures.append(minhash)
        return answers

    def details(self) -> dict[str, object]:
        """Nothing more."""
        return {}

    def _minhash(self, text: str):  # type: ignore[no-untyped-def]
        from rensa import RMinHash

        minhash = RMinHash(PERMUTATIONS, 42)
        minhash.update(list(word_shingles(text)))
        return minhash


CONTESTANTS: dict[str, type[Contestant]] = {
    "streamdedup": Ours,
    "datasketch": Datasketch,
    "rensa": Rensa,
}


def main() -> None:
    """`contestants.py NAME FILE`: measure one on the articles in FILE, print JSON."""
    name, file = sys.argv[1:]
    samples = msgspec.json.decode(Path(file).read_bytes(), type=list[Sample])
    print(msgspec.json.encode(asdict(measure(name, samples))).decode())


if __name__ == "__main__":
    main()
