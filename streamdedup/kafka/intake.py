"""From Kafka records to a sketched batch: everything that can be done before its turn.

It changes nothing but the place in the input, so it runs beside the batch before.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from streamdedup.article import Article, ArticleDecoder
from streamdedup.config import InputConfig
from streamdedup.engine import Deduplicator
from streamdedup.errors import InputError
from streamdedup.kafka.arrivals import Arrivals, arrivals
from streamdedup.kafka.dead_letters import STAGE_DECODE, DeadLetter
from streamdedup.kafka.source import Source
from streamdedup.sketched import Sketch

_MOST_HITS = 1_000_000
_LEAST_RECORDS = 250
_YEAR_10000_MS = 253_402_300_800_000


@dataclass(frozen=True)
class Prepared:
    """A batch of records; `places` tells for each article which record it came in."""

    arrivals: Arrivals
    places: list[int]
    dead: list[DeadLetter]
    sketch: Sketch
    gather_seconds: float
    decode_seconds: float
    sketch_seconds: float
    foresee_seconds: float


class Intake:
    """Gathers, decodes and sketches one batch at a time."""

    def __init__(
        self, source: Source, config: InputConfig, engine: Deduplicator, most_records: int
    ) -> None:
        self._source = source
        self._decode = ArticleDecoder(config).decode
        self._engine = engine
        self._most_records = self._now_records = most_records

    def next_batch(self, timeout_seconds: float) -> Prepared | None:
        """The next records, or None if none came in time."""
        records, began = self._source.gather(self._now_records, timeout_seconds)
        if not records:
            return None
        arrived = arrivals(records)
        gathered = perf_counter()
        articles: list[Article] = []
        places: list[int] = []
        dead: list[DeadLetter] = []
        for place, record in enumerate(records):
            try:
                articles.append(self._article(record))
                places.append(place)
            except InputError as error:
                dead.append(DeadLetter(place, STAGE_DECODE, error.reason, error.detail))
        decoded = perf_counter()
        sketch = self._engine.sketch(articles)
        sketched = perf_counter()
        sketch = self._engine.foresee(sketch)
        foreseen = perf_counter()
        self._adapt(len(records), sketch)
        return Prepared(
            arrived,
            places,
            dead,
            sketch,
            gather_seconds=gathered - began,
            decode_seconds=decoded - gathered,
            sketch_seconds=sketched - decoded,
            foresee_seconds=foreseen - sketched,
        )

    def _adapt(self, records: int, sketch: Sketch) -> None:
        """Smaller batches where the index proposes very much: all of it is in memory at once."""
        hits = 0 if sketch.foreseen is None else len(sketch.foreseen.hits.numbers)
        bearable = _MOST_HITS * records // hits if hits else self._most_records
        self._now_records = min(self._most_records, max(_LEAST_RECORDS, bearable))

    def _article(self, record: Message) -> Article:
        value = record.value()
        if value is None:
            raise InputError("no_value", "the record has no value (a tombstone)")
        article = self._decode(value)
        if article.published is not None:
            return article
        kind, timestamp_ms = record.timestamp()
        # A producer can write any number; one that is no date is as good as none.
        if kind == TIMESTAMP_NOT_AVAILABLE or not 0 <= timestamp_ms < _YEAR_10000_MS:
            return article
        return Article(id=article.id, text=article.text, published=timestamp_ms)
