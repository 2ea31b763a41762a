"""Every metric there is, with one line of meaning; `docs/metrics.md` is made from this list.

    python -m streamdedup.observe.catalogue

writes the page.  Where the values come from is `metrics`' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from streamdedup.kafka.report import CommitFailure, Rebalance, Role
from streamdedup.observe.health import State
from streamdedup.observe.metric import Kind, Metric, counter, gauge, histogram

PAGE = Path(__file__).parent.parent.parent / "docs" / "metrics.md"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LATENCY = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 21_600)
_POWERS = tuple(float(2**power) for power in range(17))
_SIMILARITY = tuple(round(0.5 + 0.05 * step, 2) for step in range(11))
_COUNTS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000)
_SHINGLES = (0, 15, 30, 60, 120, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000)

STAGES = (
    "gather",
    "decode",
    "sketch",
    "foresee",
    "probe",
    "verify",
    "decide",
    "produce",
    "commit",
    "apply",
)
_VERDICTS = (
    ("unique", "new"),
    ("unique", "revision"),
    ("duplicate", "near"),
    ("duplicate", "exact"),
    ("duplicate", "redelivery"),
    ("duplicate", "revision"),
)
_DEAD_LETTERS = (
    ("decode", "no_value"),
    ("decode", "bad_json"),
    ("decode", "too_deep"),
    ("decode", "too_large"),
    ("decode", "bad_field"),
    ("decode", "bad_id"),
    ("decode", "bad_published"),
    ("judge", "empty"),
)

# -- what goes through -----------------------------------------------------------------------

RECORDS = counter(
    "records", "Records taken from the input, dead letters included; its rate is the throughput."
)
INPUT_BYTES = counter(
    "input_bytes", "What those records had in bytes: key and value.", unit="bytes"
)
ARTICLES = counter(
    "articles",
    "Articles that got a verdict, once it is committed.",
    labels={"verdict": (), "reason": ()},
    known=_VERDICTS,
)
DEAD_LETTERS = counter(
    "dead_letters",
    "Records that cannot be judged, once they are in the dead letter topic.",
    labels={"stage": (), "reason": ()},
    known=_DEAD_LETTERS,
)
STORIES = counter("stories", "Stories begun: articles that are unique.")
BATCH_RECORDS = histogram("batch_records", "Records in a batch, that is in a transaction.", _POWERS)
LATENCY = histogram(
    "latency_seconds",
    "From a record's Kafka timestamp to its committed verdict.",
    _LATENCY,
    unit="seconds",
)
STAGE = histogram(
    "stage_seconds",
    "What a batch took in each stage, waiting for its first record not counted; those up to "
    "foresee run beside the batch before.",
    _SECONDS,
    unit="seconds",
    labels={"stage": STAGES},
)
LAST_BATCH = gauge(
    "last_batch_timestamp_seconds",
    "When the last batch was committed; 0 before the first.",
    unit="seconds",
)

# -- input ------------------------------------------------------------------------------------

LAG = gauge(
    "input_lag_records",
    "Offsets between what is committed and the partition's end; only the owner has it.",
    labels={"topic": (), "partition": ()},
)
POSITION = gauge(
    "input_position",
    "The next input offset to be judged; only the owner has it.",
    labels={"topic": (), "partition": ()},
)

# -- what is found ----------------------------------------------------------------------------

CANDIDATES = histogram(
    "candidates_per_article", "Earlier articles that the index proposed for an article.", _COUNTS
)
PROPOSED = counter("candidates", "Candidates that were compared.")
VERIFIED = counter(
    "candidates_verified",
    "Candidates that were similar enough; its share is the index's precision.",
)
SIMILARITY = histogram(
    "similarity_ratio",
    "Similarity of a duplicate to its best match: shingles in common, from 0 to 1.",
    _SIMILARITY,
    unit="ratio",
)
OVERFLOW = counter(
    "bucket_overflow", "Times that a full bucket let go of its oldest entry: boilerplate."
)
SHINGLES = histogram(
    "shingles_per_article",
    "Shingles of an article; below scheme.min_shingles only exact copies match.",
    _SHINGLES,
)
LANGUAGES = counter(
    "articles_language",
    "Articles by the language of their stop words; related languages are one, `none` has none.",
    labels={"language": ()},
)

# -- Kafka ------------------------------------------------------------------------------------

TRANSACTIONS = counter(
    "transactions",
    "Transactions by how they ended; `failed` may or may not be out, the changelog tells.",
    labels={"result": ("committed", *CommitFailure)},
)
REBALANCES = counter(
    "rebalances", "What the group told this instance.", labels={"kind": tuple(Rebalance)}
)
CONNECTION_ERRORS = counter(
    "connection_errors",
    "Times that librdkafka lost a connection or could not make one; each attempt counts.",
)
TROUBLES = counter("troubles", "Warnings, counted also where the log leaves repetitions out.")
CHANGELOG_POSITION = gauge(
    "changelog_position", "The changelog offset up to which the index on disk holds everything."
)
CHANGELOG_END = gauge("changelog_end", "The changelog's end as this instance last saw it.")

# -- what the instance is doing -----------------------------------------------------------------

ROLE = gauge(
    "role", "1 for what the instance is doing, 0 for the rest.", labels={"role": tuple(Role)}
)
STATE = gauge(
    "health_state",
    "1 for the state that /readyz tells, 0 for the rest.",
    labels={"state": tuple(State)},
)
READY = gauge("ready", "1 if /readyz says yes.")
TICK_AGE = gauge(
    "loop_tick_age_seconds",
    "Since the loop last went round; above http.stuck_seconds /healthz says no.",
    unit="seconds",
)
RESTORED = counter("restored_articles", "Articles read back from the changelog.")
RESTORE = gauge(
    "restore_progress_ratio",
    "How much of the changelog the index holds, from 0 to 1.",
    unit="ratio",
)
RESTORE_SECONDS = gauge(
    "restore_seconds", "What the present or last restore has taken so far.", unit="seconds"
)

# -- the index ---------------------------------------------------------------------------------

INDEXED = gauge("index_articles", "Articles that the index remembers.")
SEGMENTS = gauge("index_segments", "Live segments; each costs a filter test a key.")
FILTER_BYTES = gauge("index_filter_bytes", "Memory that the segments' filters take.", unit="bytes")
PAGES_READ = counter("index_pages_read", "Pages of segments that were read.")
CLOCK = gauge(
    "stream_clock_timestamp_seconds",
    "The stream's clock: the median event time of the latest articles; 0 before the first.",
    unit="seconds",
)
WINDOW_START = gauge(
    "window_start_timestamp_seconds",
    "The window's low-water mark: what happened before it is forgotten; 0 for never.",
    unit="seconds",
)
TABLE_BYTES = gauge("rocksdb_table_bytes", "RocksDB's tables on disk.", unit="bytes")
MEMTABLE_BYTES = gauge("rocksdb_memtable_bytes", "RocksDB's memtables.", unit="bytes")
PENDING_COMPACTION = gauge(
    "rocksdb_pending_compaction_bytes", "What compaction still has to rewrite.", unit="bytes"
)
COMPACTIONS = gauge("rocksdb_running_compactions", "Compactions that run.")
WRITE_STALLED = counter(
    "rocksdb_write_stall_seconds",
    "Time for which RocksDB held writes back since the index was opened, told when they go on.",
    unit="seconds",
)
BACKGROUND_ERRORS = gauge(
    "rocksdb_background_errors", "Flushes and compactions that failed since the index was opened."
)
CACHE_BYTES = gauge("rocksdb_cache_bytes", "The block cache, memtables not counted.", unit="bytes")
CACHE_HITS = counter("rocksdb_cache_hits", "Blocks that were found in the block cache.")
CACHE_MISSES = counter("rocksdb_cache_misses", "Blocks that had to be read.")
DISK_FREE = gauge("disk_free_bytes", "Free space where the state directory is.", unit="bytes")
DISK_SIZE = gauge("disk_size_bytes", "The size of that file system.", unit="bytes")

# -- the process -------------------------------------------------------------------------------

RESIDENT = gauge("process_resident_memory_bytes", "Memory of the process (RSS).", unit="bytes")
CPU = counter("process_cpu_seconds", "Processor time of the process, all threads.", unit="seconds")
THREADS = gauge("process_threads", "Python's threads.")
STARTED = gauge(
    "process_start_timestamp_seconds", "When the process started to observe.", unit="seconds"
)
GC_RUNS = counter(
    "gc_collections", "Runs of Python's garbage collector.", labels={"generation": ("0", "1", "2")}
)
BUILD = gauge(
    "build_info",
    "1, with the versions of streamdedup, Python and librdkafka.",
    labels={"version": (), "python": (), "librdkafka": ()},
)
SCHEME = gauge(
    "scheme_info",
    "1, with the fingerprint of all that keys and payloads depend on, and the name.",
    labels={"fingerprint": (), "name": ()},
)

CATALOGUE: tuple[Metric, ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Metric)
)


def page() -> str:
    """`docs/metrics.md`."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield "Made by `python -m streamdedup.observe.catalogue`; do not edit."
    yield ""
    yield (
        "`streamdedup run` and `demo` serve these at `/metrics` on `http.host` and `http.port`. "
        "They are counted for whole batches, once these are committed and applied. A metric whose "
        "labels have no values listed here appears with the first of them."
    )
    yield ""
    yield "| metric | type | labels | unit | meaning |"
    yield "|---|---|---|---|---|"
    for metric in CATALOGUE:
        labels = "; ".join(
            f"`{name}`" + (f" ({', '.join(values)})" if values else "")
            for name, values in metric.labels.items()
        )
        if metric.known:
            labels += f" ({', '.join(' '.join(values) for values in metric.known)})"
        yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.unit} | {metric.meaning} |"
    yield ""
    yield "## Buckets"
    yield ""
    yield "| histogram | upper bounds |"
    yield "|---|---|"
    for metric in CATALOGUE:
        if metric.kind is Kind.HISTOGRAM:
            bounds = ", ".join(f"{bound:g}" for bound in metric.buckets)
            yield f"| `{metric.name}` | {bounds} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
