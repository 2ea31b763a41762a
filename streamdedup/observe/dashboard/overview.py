"""The first row: whether somebody judges, how much, how far behind, and how quickly."""

from __future__ import annotations

from streamdedup.observe import catalogue as the
from streamdedup.observe.dashboard.panel import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Kind,
    Panel,
    Query,
    Unit,
)
from streamdedup.observe.dashboard.promql import HERE, each, quantile, rate, series, share, total
from streamdedup.observe.health import State

_COLORS = {
    State.OWNER: GREEN,
    State.STANDBY: BLUE,
    State.STARTING: GREY,
    State.RESTORING: "yellow",
    State.BLOCKED: ORANGE,
    State.STUCK: RED,
    State.STOPPED: GREY,
}
# Of the states of an instance exactly one is 1, so the sum is the number of that one.
_STATE = " + ".join(
    f"{number} * {each(the.STATE, state=state)}" for number, state in enumerate(_COLORS)
)
_LAG = total(series(the.LAG))
_COPIES = share(rate(the.ARTICLES, verdict="duplicate"), rate(the.ARTICLES))

OVERVIEW = (
    Panel(
        title="Owners",
        description="Instances that judge. None: nothing is judged (StreamdedupNoOwner). Two for "
        "longer than a moment: two groups share a job, or a target is scraped twice.",
        queries=[Query(total(series(the.STATE, state=State.OWNER)))],
        kind=Kind.FIGURE,
        unit=Unit.WHOLE,
        width=3,
        height=4,
        base=RED,
        steps=[(1, GREEN), (2, ORANGE)],
        empty="no instance",
    ),
    Panel(
        title="Standbys",
        description="Instances that would take over within seconds. None: take-over lasts as long "
        "as a restore (StreamdedupNoStandby).",
        queries=[Query(total(series(the.STATE, state=State.STANDBY)))],
        kind=Kind.FIGURE,
        unit=Unit.WHOLE,
        width=3,
        height=4,
        base=ORANGE,
        steps=[(1, GREEN)],
        empty="no instance",
    ),
    Panel(
        title="Not reached",
        description="Targets of the job that Prometheus cannot scrape at this moment. What they do "
        "is unknown; the other panels are silent about them.",
        queries=[Query(f"sum(1 - up{{{HERE}}})")],
        kind=Kind.FIGURE,
        unit=Unit.WHOLE,
        width=3,
        height=4,
        steps=[(1, RED)],
        empty="no target",
    ),
    Panel(
        title="Alerts firing",
        description="Of deploy/prometheus/rules.yml; docs/operations.md has a section for each. "
        "Also 0 where Prometheus has not loaded the rules.",
        # An alert on the absence of everything has no job.
        queries=[
            Query(
                'count(ALERTS{alertname=~"Streamdedup.+", alertstate="firing", job=~"$job|"}) '
                "or vector(0)"
            )
        ],
        kind=Kind.FIGURE,
        unit=Unit.WHOLE,
        width=3,
        height=4,
        steps=[(1, RED)],
    ),
    Panel(
        title="Records a second",
        description="Taken from the input, judged and committed, dead letters included.",
        queries=[Query(rate(the.RECORDS))],
        kind=Kind.FIGURE,
        unit=Unit.A_SECOND,
        width=3,
        height=4,
        base=BLUE,
    ),
    Panel(
        title="Duplicates",
        description="Share of the articles that are duplicates. A jump means that a feed is "
        "attached twice or full of a template (StreamdedupDuplicateShareJump).",
        queries=[Query(_COPIES)],
        kind=Kind.FIGURE,
        unit=Unit.SHARE,
        width=3,
        height=4,
        base=BLUE,
        empty="no articles",
    ),
    Panel(
        title="Behind",
        description="Input offsets that are not judged yet, over all partitions. Above 10,000 and "
        "growing is StreamdedupLagGrowing. Only an owner knows it.",
        queries=[Query(_LAG)],
        kind=Kind.FIGURE,
        unit=Unit.NUMBER,
        width=3,
        height=4,
        steps=[(10_000, ORANGE)],
        empty="no owner",
    ),
    Panel(
        title="Latency, 95 %",
        description="From a record's Kafka timestamp to its committed verdict, for 95 of 100. "
        "While a backlog is worked off, this is the age of the backlog.",
        queries=[Query(quantile(0.95, the.LATENCY))],
        kind=Kind.FIGURE,
        unit=Unit.SECONDS,
        width=3,
        height=4,
        steps=[(10, ORANGE), (300, RED)],
        empty="no articles",
    ),
    Panel(
        title="Health by instance",
        description="What /readyz says. Blocked: the disk is full or fails. Stuck: the loop stands "
        "still, and /healthz asks for a restart. A gap: not scraped.",
        queries=[Query(_STATE, "{{instance}}")],
        kind=Kind.STATES,
        unit=Unit.WHOLE,
        width=12,
        labels={
            number: (str(state), color) for number, (state, color) in enumerate(_COLORS.items())
        },
    ),
    Panel(
        title="Lag by partition",
        description="Offsets between what is committed and the partition's end. One line that "
        "grows alone: a hot partition. All grow: more comes in than is judged. Empty: no owner.",
        queries=[
            Query(f"max by (topic, partition) ({series(the.LAG)})", "{{topic}} {{partition}}")
        ],
        unit=Unit.NUMBER,
        width=12,
        steps=[(10_000, ORANGE)],
        empty="no owner",
    ),
    Panel(
        title="Articles by verdict",
        description="New articles and duplicates a second. Both at zero with a lag above zero is "
        "StreamdedupNoProgress.",
        queries=[Query(rate(the.ARTICLES, "verdict"), "{{verdict}}")],
        unit=Unit.A_SECOND,
        stacked=True,
    ),
    Panel(
        title="Input bytes",
        description="Keys and values of the records that were judged. Bytes that grow faster than "
        "records mean longer articles, which take longer.",
        queries=[Query(rate(the.INPUT_BYTES), "input")],
        unit=Unit.BYTES_A_SECOND,
    ),
    Panel(
        title="Share of duplicates",
        description="Duplicates among the articles. Absent while no article comes.",
        queries=[Query(_COPIES, "duplicates")],
        unit=Unit.SHARE,
        top=1,
        empty="no articles",
    ),
    Panel(
        title="Latency",
        description="From a record's Kafka timestamp to its committed verdict. Records that "
        "were sent with an old timestamp look slow.",
        queries=[
            Query(quantile(level, the.LATENCY), f"{100 * level:g} %") for level in (0.5, 0.95, 0.99)
        ],
        unit=Unit.SECONDS,
        empty="no articles",
    ),
    Panel(
        title="Time to work off the lag",
        description="The lag divided by the present throughput, as if nothing more came in. Absent "
        "while nothing is judged.",
        queries=[Query(share(_LAG, rate(the.RECORDS)), "at this rate")],
        unit=Unit.SECONDS,
        steps=[(900, ORANGE)],
        empty="nothing is judged",
    ),
    Panel(
        title="Since the last batch",
        description="Time since any instance committed one. It grows when the feed pauses, too: "
        "look at the lag.",
        queries=[Query(f"time() - max({series(the.LAST_BATCH)} > 0)", "last batch")],
        unit=Unit.SECONDS,
        steps=[(300, ORANGE)],
        empty="no batch yet",
    ),
)
