"""`streamdedup eval`: how good verdicts are, against articles whose clusters are known.

The arithmetic is in `streamdedup.quality`; this file gathers its input and prints its output.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamdedup.cli.options import config_options, load
from streamdedup.cli.terminal import printable

if TYPE_CHECKING:
    from streamdedup.article import Article
    from streamdedup.config import Config
    from streamdedup.quality import Figures, Judgement, Mistake
    from streamdedup.verdict import Verdict

BATCH_ARTICLES = 1_024
_input_file = click.Path(exists=True, dir_okay=False, allow_dash=True)


@click.command("eval")
@click.argument("truth_file", metavar="TRUTH", type=_input_file)
@click.argument("verdict_file", metavar="[VERDICTS]", type=_input_file, required=False)
@config_options
@click.option("--exhaustive", is_flag=True, help="Also compare every pair, to see what LSH loses.")
@click.option("--by", metavar="FIELD", help="Figures for each value of this field of TRUTH.")
@click.option("--errors", type=click.IntRange(0), default=0, metavar="N", help="List N mistakes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with the same figures.")
def evaluate(
    truth_file: str,
    verdict_file: str | None,
    config_file: Path | None,
    overrides: tuple[str, ...],
    exhaustive: bool,
    by: str | None,
    errors: int,
    as_json: bool,
) -> None:
    """Score verdicts against known clusters.

    TRUTH has one JSON object a line with `id` and `cluster`.  VERDICTS is what `scan` wrote, or -
    for standard input; without it TRUTH must hold the articles too, and they are judged in file
    order.  A duplicate is right if the article it names lies in the same cluster; one is owed if
    an earlier article of that cluster was seen.  Each id is scored at its first verdict only.
    """
    if truth_file == verdict_file == "-":
        raise click.UsageError("only one of TRUTH and VERDICTS can be standard input")
    config = load(config_file, overrides)
    from streamdedup.cli.truth import read_truth, read_verdicts
    from streamdedup.quality import figures, judge, mistakes

    truth = read_truth(truth_file, config.input, by, with_text=exhaustive or verdict_file is None)
    if verdict_file is not None:
        verdicts = list(read_verdicts(verdict_file))
    else:
        verdicts = _engine_verdicts(truth.articles or [], config)
    judgement = judge(verdicts, truth.clusters)
    report = Report(judgement, figures(judgement.scored))
    if by is not None:
        values = sorted(set(truth.values.values()))
        report.by = {
            f"{by}={value}": figures([j for j in judgement.scored if truth.values[j.id] == value])
            for value in values
        }
    if exhaustive:
        every_pair = _exhaustive_verdicts(truth.articles or [], config)
        report.exhaustive = figures(judge(every_pair, truth.clusters).scored)
        report.lost = _duplicates_lost(verdicts, every_pair)
    report.mistakes = mistakes(judgement.scored)[:errors]
    click.echo(report.as_json() if as_json else report.as_text())


class Report:
    """Everything one evaluation found out."""

    def __init__(self, judgement: Judgement, engine: Figures) -> None:
        self.judgement = judgement
        self.engine = engine
        self.by: dict[str, Figures] = {}
        self.exhaustive: Figures | None = None
        self.lost = 0
        self.mistakes: list[Mistake] = []

    def as_json(self) -> str:
        import msgspec

        tree: dict[str, Any] = msgspec.to_builtins(self.engine)
        tree["repeated"] = self.judgement.repeated
        tree["unknown"] = self.judgement.unknown
        tree["missing"] = self.judgement.missing
        if self.by:
            tree["by"] = msgspec.to_builtins(self.by)
        if self.exhaustive is not None:
            tree["exhaustive"] = msgspec.to_builtins(self.exhaustive)
            tree["recall_lost"] = self.exhaustive.recall - self.engine.recall
            tree["duplicates_lost"] = self.lost
        if self.mistakes:
            tree["errors"] = msgspec.to_builtins(self.mistakes)
        return msgspec.json.encode(tree).decode()

    def as_text(self) -> str:
        rows = {"verdicts": self.engine}
        if self.exhaustive is not None:
            rows["exhaustive"] = self.exhaustive
        rows |= self.by
        width = max(12, *(len(printable(name, 40)) for name in rows))
        lines = [f"{'':<{width}}  precision   recall       F1      ARI       tp       fp       fn"]
        lines += [f"{printable(name, 40):<{width}}  {_row(row)}" for name, row in rows.items()]
        if self.exhaustive is not None:
            lost = self.exhaustive.recall - self.engine.recall
            lines.append(f"recall lost against comparing every pair: {lost:.4f}")
            lines.append(f"duplicates that only comparing every pair found: {self.lost:,}")
        lines.append(_counts(self.judgement, self.engine))
        lines += [_mistake(mistake) for mistake in self.mistakes]
        return "\n".join(lines)


def _row(row: Figures) -> str:
    return (
        f"{row.precision:>9.4f} {row.recall:>8.4f} {row.f1:>8.4f} {row.ari:>8.4f}"
        f" {row.tp:>8,} {row.fp:>8,} {row.fn:>8,}"
    )


def _counts(judgement: Judgement, engine: Figures) -> str:
    text = f"{engine.articles:,} articles, {engine.clusters:,} clusters, {engine.stories:,} stories"
    left_out = {
        "repeated": judgement.repeated,
        "not in the truth": judgement.unknown,
        "without a verdict": judgement.missing,
    }
    told = ", ".join(f"{count:,} {what}" for what, count in left_out.items() if count)
    return f"{text}; left out: {told}" if told else text


def _mistake(mistake: Mistake) -> str:
    text = f"{mistake.kind:<6}  {printable(mistake.id)} (cluster {printable(mistake.cluster)})"
    if mistake.duplicate_of is not None:
        text += f" was called a copy of {printable(mistake.duplicate_of)}"
    if mistake.expected is not None:
        text += f"; {printable(mistake.expected)} was there to be found"
    return text


def _engine_verdicts(articles: Sequence[Article], config: Config) -> list[Verdict]:
    from streamdedup import Deduplicator
    from streamdedup.verdict import Verdict

    with (
        tempfile.TemporaryDirectory(prefix="streamdedup-", ignore_cleanup_errors=True) as name,
        Deduplicator.open(Path(name) / "state", config) as engine,
    ):
        return [
            outcome
            for batch in batches(articles)
            for outcome in engine.process(batch)
            if isinstance(outcome, Verdict)
        ]


def batches(articles: Sequence[Article]) -> Iterator[list[Article]]:
    """As many articles as are judged at a time; fewer where they are long."""
    from streamdedup.cli.intake import BATCH_BYTES

    batch: list[Article] = []
    characters = 0
    for article in articles:
        batch.append(article)
        characters += len(article.text)
        if len(batch) >= BATCH_ARTICLES or characters >= BATCH_BYTES:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _exhaustive_verdicts(articles: Sequence[Article], config: Config) -> list[Verdict]:
    from streamdedup.exhaustive import exhaustive_verdicts
    from streamdedup.verdict import Verdict

    outcomes = exhaustive_verdicts(articles, config)
    return [outcome for outcome in outcomes if isinstance(outcome, Verdict)]


def _duplicates_lost(verdicts: list[Verdict], every_pair: list[Verdict]) -> int:
    unique = {verdict.id for verdict in verdicts if verdict.verdict == "unique"}
    return sum(1 for v in every_pair if v.verdict == "duplicate" and v.id in unique)
