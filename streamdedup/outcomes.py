"""What is said of a batch and what is kept of it: verdicts, stories and records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from streamdedup.admission import Admission
from streamdedup.matching import EXACT_RANK, Matches
from streamdedup.schemes.contract import Item
from streamdedup.sketched import Sketch
from streamdedup.store.records import RecordBatch, Records, encode_record
from streamdedup.verdict import Rejection, Verdict

Measure = Literal["jaccard", "containment", "exact", "signature"]


def outcomes_of(
    sketch: Sketch,
    admission: Admission,
    records: Records,
    matches: Matches,
    measures: Sequence[str],
) -> tuple[list[Verdict | Rejection], list[bytes]]:
    """The verdicts in order, and the story of each article."""
    outcomes: list[Verdict | Rejection] = []
    stories: list[bytes] = []
    best, sources = matches.best.tolist(), matches.source.tolist()
    judged = admission.judged.tolist()
    for article, item in enumerate(sketch.items):
        pair = best[article]
        if pair >= 0:
            source = sources[pair]
            if source < 0:
                story, matched = stories[-1 - source], sketch.ids[-1 - source]
            else:
                story, matched = records.story(source), records.id(source)
            outcome: Verdict | Rejection = _duplicate(
                item, story, matched, matches, pair, bool(admission.revises[article]), measures
            )
        elif judged[article]:
            story = sketch.ids[article]
            outcome = Verdict(
                id=item.id,
                verdict="unique",
                story=item.id,
                reason="revision" if admission.revises[article] else "new",
                published=item.published,
            )
        elif article in admission.redelivered:
            earlier = admission.redelivered[article]
            story = stories[earlier.batch] if earlier.batch >= 0 else earlier.story
            outcome = _redelivery(item, story)
        else:
            story = b""
            outcome = sketch.refused.get(article) or Rejection(
                id=item.id, reason="empty", detail="the text has no word in it"
            )
        stories.append(story)
        outcomes.append(outcome)
    return outcomes, stories


def _duplicate(
    item: Item,
    story: bytes,
    matched: bytes,
    matches: Matches,
    pair: int,
    revises: bool,
    measures: Sequence[str],
) -> Verdict:
    exact = matches.rank[pair] == EXACT_RANK
    measure = "exact" if exact else measures[matches.rank[pair]]
    return Verdict(
        id=item.id,
        verdict="duplicate",
        story=story.decode(),
        duplicate_of=matched.decode(),
        similarity=float(matches.similarity[pair]),
        measure=cast("Measure", measure),
        reason="revision" if revises else "exact" if exact else "near",
        published=item.published,
    )


def _redelivery(item: Item, story: bytes) -> Verdict:
    return Verdict(
        id=item.id,
        verdict="duplicate",
        story=story.decode(),
        duplicate_of=item.id,
        similarity=1.0,
        measure="exact",
        reason="redelivery",
        published=item.published,
    )


def record_batch(
    sketch: Sketch,
    admission: Admission,
    entering: NDArray[np.int64],
    stories: list[bytes],
) -> RecordBatch:
    """The records of the articles that enter, and their keys."""
    payloads, keys = sketch.payloads, sketch.keys
    data = payloads.data.tobytes()
    starts, ends = payloads.starts.tolist(), payloads.ends.tolist()
    events_ms, seen_ms = admission.events_ms.tolist(), admission.seen_ms.tolist()
    digests = payloads.digests.tolist()
    records = []
    for article in entering.tolist():
        own, story = sketch.ids[article], stories[article]
        root = b"" if story == own else story
        payload = data[starts[article] : ends[article]]
        records.append(
            encode_record(
                events_ms[article], seen_ms[article], digests[article], own, root, payload
            )
        )
    clock = admission.clock.encoded()
    if len(entering) == len(sketch.items):
        return RecordBatch(records, admission.seen_ms, keys.values, keys.starts, clock)
    lengths = np.diff(keys.starts)
    key_starts = np.zeros(len(entering) + 1, np.int64)
    np.cumsum(lengths[entering], out=key_starts[1:])
    kept = np.repeat(admission.enters, lengths)
    return RecordBatch(records, admission.seen_ms[entering], keys.values[kept], key_starts, clock)
