"""The second row: what a batch passes through, and what Kafka and the processor do meanwhile."""

from __future__ import annotations

from streamdedup.observe import catalogue as the
from streamdedup.observe.dashboard.panel import ORANGE, RED, Panel, Query, Unit
from streamdedup.observe.dashboard.promql import each, mean, quantile, rate, series, share

PIPELINE = (
    Panel(
        title="Time by stage",
        description="Seconds a second that each stage takes; waiting for input is not counted. "
        "gather, decode, sketch and foresee run beside the batch before; when these or the others "
        "together come near 1, the loop is full.",
        queries=[Query(rate(the.STAGE, "stage", part="_sum"), "{{stage}}")],
        unit=Unit.SHARE,
        stacked=True,
        width=12,
    ),
    Panel(
        title="Time a batch by stage, 95 %",
        description="What a slow batch takes in each stage. Much commit: the broker is slow. Much "
        "foresee or probe: many segments, or pages that are not in memory. Much apply: the disk.",
        queries=[Query(quantile(0.95, the.STAGE, "stage"), "{{stage}}")],
        unit=Unit.SECONDS,
        width=12,
    ),
    Panel(
        title="Batch size",
        description="Records in a transaction: small when the feed is quiet, large when there is a "
        "backlog. Small with a backlog: the consumer gets too little at a time.",
        queries=[
            Query(quantile(0.5, the.BATCH_RECORDS), "50 %"),
            Query(quantile(0.95, the.BATCH_RECORDS), "95 %"),
            Query(mean(the.BATCH_RECORDS), "mean"),
        ],
        unit=Unit.NUMBER,
        empty="no batch",
    ),
    Panel(
        title="Candidates an article",
        description="Earlier articles that were compared with each. Some are normal; hundreds mean "
        "that a template makes everything a candidate of everything.",
        queries=[
            Query(mean(the.CANDIDATES), "mean"),
            Query(quantile(0.95, the.CANDIDATES), "95 %"),
            Query(quantile(0.99, the.CANDIDATES), "99 %"),
        ],
        unit=Unit.NUMBER,
        empty="no articles",
    ),
    Panel(
        title="Share of candidates that verify",
        description="How many of the compared pairs are similar enough: the index's precision. A "
        "fall means work for nothing, not wrong verdicts.",
        queries=[Query(share(rate(the.VERIFIED), rate(the.PROPOSED)), "verified")],
        unit=Unit.SHARE,
        top=1,
        empty="no candidates",
    ),
    Panel(
        title="Bucket overflow",
        description="Entries a second that full buckets let go of. Texts that share their words: "
        "boilerplate, which hides older copies of the same template.",
        queries=[Query(rate(the.OVERFLOW), "entries")],
        unit=Unit.A_SECOND,
    ),
    Panel(
        title="Pages read an article",
        description="Pages of segments that were read for each article: what a probe costs beyond "
        "the filters.",
        queries=[Query(share(rate(the.PAGES_READ), rate(the.ARTICLES)), "pages")],
        unit=Unit.NUMBER,
        empty="no articles",
    ),
    Panel(
        title="Progress by partition",
        description="Input offsets a second. A partition at zero that has a lag stands still; "
        "one without a lag has nothing to read.",
        queries=[
            Query(
                f"max by (topic, partition) (deriv({series(the.POSITION)}[$__rate_interval]))",
                "{{topic}} {{partition}}",
            )
        ],
        unit=Unit.A_SECOND,
        empty="no owner",
    ),
    Panel(
        title="Transactions",
        description="By how they ended. failed: Kafka refused it, and what is true is read from "
        "the changelog. fenced: another instance owns the index now.",
        queries=[Query(rate(the.TRANSACTIONS, "result"), "{{result}}")],
        unit=Unit.A_SECOND,
    ),
    Panel(
        title="Rebalances and troubles",
        description="Within the interval. lost: the group went on without an instance that was too "
        "slow. Troubles stand in the log; broken connections mend themselves.",
        queries=[
            Query(
                f"sum by (kind) (increase({series(the.REBALANCES)}[$__rate_interval]))", "{{kind}}"
            ),
            Query(f"sum(increase({series(the.TROUBLES)}[$__rate_interval]))", "troubles"),
            Query(
                f"sum(increase({series(the.CONNECTION_ERRORS)}[$__rate_interval]))",
                "connection errors",
            ),
        ],
        unit=Unit.NUMBER,
    ),
    Panel(
        title="Age of the loop's last round",
        description="Above http.stuck_seconds (120 by default) /healthz says no and the log gets "
        "the stacks of all threads (StreamdedupStuck).",
        queries=[Query(each(the.TICK_AGE), "{{instance}}")],
        unit=Unit.SECONDS,
        steps=[(60, ORANGE), (120, RED)],
    ),
    Panel(
        title="Processor",
        description="Cores in use, all threads. One loop judges: an owner near 1 is at its limit, "
        "and a second instance does not help.",
        queries=[
            Query(f"sum by (instance) (rate({series(the.CPU)}[$__rate_interval]))", "{{instance}}")
        ],
        unit=Unit.NUMBER,
    ),
    Panel(
        title="Memory (RSS)",
        description="Of each process. It follows the segments' filters and RocksDB's cache; steady "
        "growth beside these is a leak.",
        queries=[
            Query(each(the.RESIDENT), "{{instance}}"),
            Query(each(the.FILTER_BYTES), "{{instance}} filters"),
        ],
        unit=Unit.BYTES,
    ),
    Panel(
        title="Garbage collection and threads",
        description="Collections a second by generation, and Python's threads. Generation 2 more "
        "than now and then: something makes much garbage.",
        queries=[
            Query(rate(the.GC_RUNS, "generation"), "generation {{generation}}"),
            Query(each(the.THREADS), "{{instance}} threads"),
        ],
        unit=Unit.NUMBER,
    ),
)
