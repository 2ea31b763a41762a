"""Records of the input and where they came from: each is asked once, beside the batch before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from confluent_kafka import Message
from numpy.typing import NDArray

from streamdedup.kafka.report import Place
from streamdedup.verdict import Source


@dataclass(frozen=True)
class Arrivals:
    """What was gathered for a batch, in the order in which it came."""

    records: list[Message]
    sources: list[Source]
    positions: dict[Place, int]  # by input partition, the offset to go on from
    timestamps_ms: NDArray[np.int64]  # Kafka's; -1 where there is none
    bytes: int  # keys and values


def arrivals(records: list[Message]) -> Arrivals:
    """Ask every record."""
    sources = [
        Source(
            topic=record.topic() or "",
            partition=record.partition() or 0,
            offset=record.offset() or 0,
        )
        for record in records
    ]
    return Arrivals(
        records,
        sources,
        positions={(one.topic, one.partition): one.offset + 1 for one in sources},
        timestamps_ms=np.fromiter(
            (record.timestamp()[1] for record in records), np.int64, len(records)
        ),
        bytes=sum(map(len, records)),
    )
