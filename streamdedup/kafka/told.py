"""A batch's report, made once it is out: counts, times and a few examples, never a text.

Everything here is counted for the whole batch; nothing is looked at article by article but what
the outputs have brought along.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from time import perf_counter

from streamdedup.kafka.commit import Committed
from streamdedup.kafka.dead_letters import STAGE_JUDGE
from streamdedup.kafka.intake import Prepared
from streamdedup.kafka.outputs import JudgedBatch
from streamdedup.kafka.report import BatchReport, Refused, StageSeconds

_EXAMPLES = 5


class StopWatch:
    """Sums up the time that each step took."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._at = 0.0

    def start(self) -> None:
        """The first step begins."""
        self.seconds.clear()
        self._at = perf_counter()

    def lap(self, step: str) -> None:
        """A step has ended, and the next begins."""
        now = perf_counter()
        self.seconds[step] += now - self._at
        self._at = now


def batch_report(
    batch: JudgedBatch, watch: StopWatch, committed: Committed, apply_seconds: float
) -> BatchReport:
    """What is told of a batch that is committed and applied."""
    prepared, decision = batch.prepared, batch.decision
    arrivals = prepared.arrivals
    return BatchReport(
        records=len(arrivals.records),
        input_bytes=arrivals.bytes,
        verdicts=batch.verdicts,
        dead_letters=Counter((letter.stage, letter.reason) for letter in batch.dead),
        refused=_examples(batch),
        found=decision.found,
        traits=prepared.sketch.payloads.traits,
        timestamps_ms=arrivals.timestamps_ms,
        positions=arrivals.positions,
        seconds=StageSeconds(
            gather=prepared.gather_seconds,
            decode=prepared.decode_seconds,
            sketch=prepared.sketch_seconds,
            foresee=prepared.foresee_seconds,
            probe=watch.seconds["probe"],
            verify=watch.seconds["verify"],
            decide=watch.seconds["decide"],
            produce=committed.produce_seconds,
            commit=committed.commit_seconds,
            apply=apply_seconds,
        ),
    )


def _examples(batch: JudgedBatch) -> list[Refused]:
    examples = []
    for letter in islice(batch.dead, _EXAMPLES):
        source = batch.prepared.arrivals.sources[letter.place]
        judged = letter.stage == STAGE_JUDGE
        examples.append(
            Refused(
                topic=source.topic,
                partition=source.partition,
                offset=source.offset,
                stage=letter.stage,
                reason=letter.reason,
                id=_id(batch.prepared, letter.place) if judged else "",
            )
        )
    return examples


def _id(prepared: Prepared, place: int) -> str:
    return prepared.sketch.items[prepared.places.index(place)].id
