"""The fourth row: what the verdicts say, and what could not be judged."""

from __future__ import annotations

from streamdedup.observe import catalogue as the
from streamdedup.observe.dashboard.panel import ORANGE, Kind, Panel, Query, Unit
from streamdedup.observe.dashboard.promql import quantile, rate, series, share

# As docs/operations.md and StreamdedupDuplicateShareJump see it.
_RECORDED = 'job:streamdedup_duplicates:share10m{job="$job"}'

QUALITY = (
    Panel(
        title="Similarity of duplicates",
        description="Duplicates by similarity to their best match. Most are near 1; a crowd just "
        "above the threshold is where wrong verdicts would be: look at a few.",
        queries=[
            Query(
                f"sum by (le) (increase({series(the.SIMILARITY, part='_bucket')}"
                "[$__rate_interval]))",
                "{{le}}",
            )
        ],
        kind=Kind.HEAT_MAP,
        unit=Unit.NUMBER,
        width=12,
        empty="no duplicates",
    ),
    Panel(
        title="Reasons",
        description="Why articles are unique or duplicates. redelivery or exact in plenty: a feed "
        "is replayed, or attached twice. revision: publishers correct their texts.",
        queries=[Query(rate(the.ARTICLES, "verdict, reason"), "{{verdict}}: {{reason}}")],
        unit=Unit.A_SECOND,
        stacked=True,
        width=12,
    ),
    Panel(
        title="Duplicates against the day before",
        description="The share over ten minutes, and its mean over the last day. 20 points above "
        "it is StreamdedupDuplicateShareJump.",
        queries=[
            Query(_RECORDED, "ten minutes"),
            Query(f"avg_over_time({_RECORDED}[1d])", "mean of a day"),
        ],
        unit=Unit.SHARE,
        top=1,
        empty="no articles",
    ),
    Panel(
        title="Stories begun",
        description="Unique articles a second: what readers have not seen before.",
        queries=[Query(rate(the.STORIES), "stories")],
        unit=Unit.A_SECOND,
    ),
    Panel(
        title="Articles a story",
        description="Articles for each story begun: how often the same is told. Near 1 where there "
        "should be copies: the feed or the window has changed.",
        queries=[Query(share(rate(the.ARTICLES), rate(the.STORIES)), "articles")],
        unit=Unit.NUMBER,
        empty="no story begun",
    ),
    Panel(
        title="Languages",
        description="Articles a second by the language of their stop words; related ones are one. "
        "Much none: a language without a list, tables, or markup instead of text.",
        queries=[Query(rate(the.LANGUAGES, "language"), "{{language}}")],
        unit=Unit.A_SECOND,
        stacked=True,
        empty="no articles",
    ),
    Panel(
        title="Shingles an article",
        description="The length of what is compared. A fall of the lowest line: the feed sends "
        "stubs and teasers.",
        queries=[
            Query(quantile(0.05, the.SHINGLES), "5 %"),
            Query(quantile(0.5, the.SHINGLES), "50 %"),
            Query(quantile(0.95, the.SHINGLES), "95 %"),
        ],
        unit=Unit.NUMBER,
        empty="no articles",
    ),
    Panel(
        title="Too short for near-duplicates",
        description="Share of articles with at most 15 shingles, of which by default only exact "
        "copies are found (scheme.min_shingles).",
        queries=[
            Query(
                share(
                    rate(the.SHINGLES, part="_bucket", le="~15(\\\\.0)?"),
                    rate(the.SHINGLES, part="_count"),
                ),
                "too short",
            )
        ],
        unit=Unit.SHARE,
        top=1,
        empty="no articles",
    ),
    Panel(
        title="Dead letters",
        description="Records a second that cannot be judged, by stage and reason. decode: the "
        "feed's format has changed. streamdedup dlq list shows where they came from.",
        queries=[Query(rate(the.DEAD_LETTERS, "stage, reason"), "{{stage}}: {{reason}}")],
        unit=Unit.A_SECOND,
        stacked=True,
        width=12,
    ),
    Panel(
        title="Share of dead letters",
        description="Of the records. Above 5 % for ten minutes, and more than five of them, is "
        "StreamdedupDeadLetters; above kafka.dead_letters_share the service stops by itself.",
        queries=[Query(share(rate(the.DEAD_LETTERS), rate(the.RECORDS)), "dead letters")],
        unit=Unit.SHARE,
        width=12,
        steps=[(0.05, ORANGE)],
        empty="no records",
    ),
)
