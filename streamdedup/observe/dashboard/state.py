"""The third row: the index of every instance, the disk below it, and how it is made again."""

from __future__ import annotations

from streamdedup.observe import catalogue as the
from streamdedup.observe.dashboard.panel import ORANGE, RED, Kind, Panel, Query, Unit
from streamdedup.observe.dashboard.promql import each, series, share
from streamdedup.observe.metric import Metric

_INSTANCE = "{{instance}}"


def _rate_of_each(metric: Metric) -> str:
    return f"sum by (instance) (rate({series(metric)}[$__rate_interval]))"


STATE = (
    Panel(
        title="Articles in the index",
        description="What each instance remembers. Owner and standbys agree but for seconds; one "
        "that is far below the others restores.",
        queries=[Query(each(the.INDEXED), _INSTANCE)],
        unit=Unit.NUMBER,
    ),
    Panel(
        title="Segments",
        description="Live segments; each costs a filter test a key. Far above 16: merges do not "
        "keep pace.",
        queries=[Query(each(the.SEGMENTS), _INSTANCE)],
        unit=Unit.NUMBER,
        steps=[(32, ORANGE)],
    ),
    Panel(
        title="Behind the changelog",
        description="Offsets of the changelog that an instance has not applied. Growing at a "
        "standby: it would have to catch up before it takes over.",
        queries=[Query(f"{each(the.CHANGELOG_END)} - {each(the.CHANGELOG_POSITION)}", _INSTANCE)],
        unit=Unit.NUMBER,
    ),
    Panel(
        title="Restore progress",
        description="How much of the changelog the index holds. After a quarter of an hour, "
        "with another one ahead at its pace, it is StreamdedupRestoreSlow.",
        queries=[Query(each(the.RESTORE), _INSTANCE)],
        unit=Unit.SHARE,
        top=1,
    ),
    Panel(
        title="Restored articles",
        description="Articles a second that are read back from the changelog: the pace of a "
        "restore. What a standby follows afterwards is not counted.",
        queries=[Query(_rate_of_each(the.RESTORED), _INSTANCE)],
        unit=Unit.A_SECOND,
    ),
    Panel(
        title="Length of the restore",
        description="What the present or last restore has taken so far: how long a take-over by a "
        "cold instance would last.",
        queries=[Query(each(the.RESTORE_SECONDS), _INSTANCE)],
        unit=Unit.SECONDS,
        steps=[(900, ORANGE)],
    ),
    Panel(
        title="RocksDB on disk and in memory",
        description="Tables on disk, memtables and block cache. Tables grow until the window is "
        "full, then stay.",
        queries=[
            Query(each(the.TABLE_BYTES), f"{_INSTANCE} tables"),
            Query(each(the.MEMTABLE_BYTES), f"{_INSTANCE} memtables"),
            Query(each(the.CACHE_BYTES), f"{_INSTANCE} cache"),
        ],
        unit=Unit.BYTES,
    ),
    Panel(
        title="Pending compaction",
        description="What compaction still has to rewrite. Growing without end: the disk is too "
        "slow for the feed, and a write stall follows.",
        queries=[Query(each(the.PENDING_COMPACTION), _INSTANCE)],
        unit=Unit.BYTES,
    ),
    Panel(
        title="Compactions and stalls",
        description="Compactions that run; the share of the time for which RocksDB held writes "
        "back (StreamdedupWriteStall); flushes and compactions that failed.",
        queries=[
            Query(each(the.COMPACTIONS), f"{_INSTANCE} compactions"),
            Query(_rate_of_each(the.WRITE_STALLED), f"{_INSTANCE} held back"),
            Query(each(the.BACKGROUND_ERRORS), f"{_INSTANCE} errors"),
        ],
        unit=Unit.NUMBER,
    ),
    Panel(
        title="Cache hits",
        description="Blocks found in RocksDB's cache. A low share with much time in probe: a "
        "larger state.cache_mib helps.",
        queries=[
            Query(
                share(
                    _rate_of_each(the.CACHE_HITS),
                    f"({_rate_of_each(the.CACHE_HITS)} + {_rate_of_each(the.CACHE_MISSES)})",
                ),
                _INSTANCE,
            )
        ],
        unit=Unit.SHARE,
        top=1,
        empty="nothing is read",
    ),
    Panel(
        title="Free disk",
        description="Share of the state's file system. Below 10 %, or gone within a day at this "
        "pace, is StreamdedupDiskFilling. At zero judging stops, and nothing is lost.",
        queries=[Query(f"{each(the.DISK_FREE)} / {each(the.DISK_SIZE)}", _INSTANCE)],
        unit=Unit.SHARE,
        top=1,
        base=RED,
        steps=[(0.1, ORANGE), (0.4, "green")],
    ),
    Panel(
        title="Window",
        description="Event time from the low-water mark to the stream's clock: what is remembered. "
        "Absent before the first dated article, and where window.seconds is 0.",
        queries=[
            Query(f"{each(the.CLOCK)} - ({each(the.WINDOW_START)} != 0)", f"{_INSTANCE} window"),
        ],
        unit=Unit.SECONDS,
        empty="no window",
    ),
    Panel(
        title="Stream's clock behind the wall's",
        description="The median event time of the latest articles against now. A jump down: a "
        "feed sends articles from the future; steady growth: an old archive is read.",
        queries=[Query(f"time() - ({each(the.CLOCK)} > 0)", _INSTANCE)],
        unit=Unit.SECONDS,
        empty="no dated article",
    ),
    Panel(
        title="Uptime",
        description="Since each process began. A saw: it is restarted again and again; its log has "
        "the exit code.",
        queries=[Query(f"time() - {each(the.STARTED)}", _INSTANCE)],
        unit=Unit.SECONDS,
    ),
    Panel(
        title="What runs",
        description="Versions and the fingerprint of the scheme. Instances of one group must have "
        "one fingerprint; versions differ only during an upgrade.",
        queries=[
            Query(
                f"max by (instance, version, python, librdkafka) ({series(the.BUILD)}) "
                "* on (instance) group_right (version, python, librdkafka) "
                f"max by (instance, name, fingerprint) ({series(the.SCHEME)})"
            )
        ],
        kind=Kind.TABLE,
        unit=Unit.WHOLE,
        width=16,
        height=6,
    ),
)
