"""`streamdedup bench`: what an article costs while the index grows, on this machine."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamdedup.cli.options import config_options, load

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command()
@click.option(
    "--articles",
    type=click.IntRange(10),
    default=3_000_000,
    show_default=True,
    metavar="N",
    help="Synthetic articles to put into the index.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 65_536),
    default=1_000,
    show_default=True,
    metavar="N",
    help="Articles judged at a time.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Build the index here and keep it; DIR must be new or empty.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw cost against index size (needs matplotlib).",
)
@config_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object with the same figures.")
def bench(
    articles: int,
    batch: int,
    state: Path | None,
    plot: Path | None,
    config_file: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure what an article costs while the index grows.

    Synthetic articles (about 220 shingles, a quarter near-duplicates of earlier ones) go through
    min-hash, probe, verification and the write to disk.  Making them and compiling the kernels
    is not timed.
    """
    config = load(config_file, overrides)
    if articles < 2 * batch:
        raise click.UsageError("--articles must be at least two batches")
    if state is not None and state.is_dir() and any(state.iterdir()):
        raise click.UsageError(f"--state {state} is not empty")
    from streamdedup.bench.growth import grow

    with _directory(state) as directory, _progress(articles) as on_batch:
        growth = grow(directory, config, articles, batch, on_batch)
    if plot is not None:
        from streamdedup.bench.plot import plot_growth

        plot_growth(growth, plot)
    figures = growth.figures()
    click.echo(json.dumps(figures) if as_json else "\n".join(_text(figures)))


@contextmanager
def _directory(state: Path | None) -> Iterator[Path]:
    if state is not None:
        yield state
        return
    with tempfile.TemporaryDirectory(prefix="streamdedup-", ignore_cleanup_errors=True) as name:
        yield Path(name) / "state"


@contextmanager
def _progress(articles: int) -> Iterator[Callable[[int], None]]:
    from streamdedup.cli.display import ProgressBar

    with ProgressBar(articles, shown=sys.stderr.isatty()) as bar:
        yield lambda done: bar.advance(done, done)


def _text(figures: dict[str, Any]) -> Iterator[str]:
    yield f"{figures['articles']:,} articles in batches of {figures['batch']:,}"
    yield ""
    yield "      articles   wall µs    CPU µs   segments   disk bytes"
    for tenth in figures["tenths"]:
        yield (
            f"{tenth['articles']:>14,} {tenth['wall_us']:>9.1f} {tenth['cpu_us']:>9.1f}"
            f" {tenth['segments']:>10} {tenth['disk_bytes'] / tenth['articles']:>12,.0f}"
        )
    yield "(µs and disk bytes are those of one article)"
    yield ""
    stages = ", ".join(f"{name} {us:.1f}" for name, us in figures["stages_us"].items())
    yield f"wall µs by stage     {stages}"
    yield (
        f"an article           {figures['wall_us_per_article']:.1f} µs wall, "
        f"{figures['cpu_us_per_article']:.1f} µs CPU with background threads"
    )
    yield (
        f"a batch              median {figures['median_batch_ms']:.1f} ms, "
        f"slowest {figures['slowest_batch_ms']:.1f} ms"
    )
    yield (
        f"duplicates           {figures['found_share']:.2%} found, {figures['planted_share']:.2%} "
        f"planted, {figures['wrong']:,} wrong, recall {figures['recall']:.4f}"
    )
    yield f"candidates           {figures['candidates_per_article']:.2f} an article"
    yield f"live segments        {figures['segments']}"
    yield ""
    for name, target in figures["targets"].items():
        label, shown = _TARGET_TEXT[name]
        measured, most = shown(target["measured"]), shown(target["most"])
        yield f"{label:<32}{measured:>10}   target ≤ {most}: {_JUDGEMENT[target['reached']]}"


_JUDGEMENT = {True: "reached", False: "MISSED", None: "not judged below a million articles"}
_TARGET_TEXT: dict[str, tuple[str, Callable[[float], str]]] = {
    "last_to_second_tenth": ("last tenth / second tenth", "{:.2f}".format),
    "slowest_to_median_batch": ("slowest batch / median batch", "{:.1f}".format),
    "peak_rss_bytes": ("peak memory, MB", lambda value: f"{value / 1e6:,.0f}"),
    "disk_bytes_per_article": ("disk bytes an article", "{:,.0f}".format),
}
