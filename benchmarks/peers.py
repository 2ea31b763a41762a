"""The same articles through streamdedup and two well-known libraries, in one run.

    python benchmarks/peers.py [--articles 20000] [--rounds 3] [--json] [--plot FILE]

streamdedup goes from text to a verdict on disk; datasketch and rensa keep their index in memory
and verify by signature.  Each contestant runs in a process of its own, one after the other, round
by round; figures are those of its round of median CPU time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from articles import samples
from contestants import BATCH_ARTICLES, CONTESTANTS, Measured

OURS = "streamdedup"
# How many times as fast we want to be.
TARGETS = {
    "end_to_end": {"datasketch": 20.0, "rensa": 5.0},
    "sketch": {"datasketch": 50.0, "rensa": 15.0},
}


def run(articles: int, rounds: int) -> dict[str, Any]:
    """Measure everybody and return all figures."""
    measured: dict[str, list[Measured]] = {name: [] for name in CONTESTANTS}
    with tempfile.TemporaryDirectory(prefix="streamdedup-") as folder:
        file = Path(folder) / "articles.json"
        made = list(samples(articles))
        file.write_bytes(msgspec.json.encode(made))
        for round_ in range(rounds):
            for name in CONTESTANTS:
                print(f"round {round_ + 1} of {rounds}: {name}", file=sys.stderr)
                measured[name].append(_measured(name, file))
    middle = {
        name: sorted(all_, key=lambda one: one.cpu_us)[len(all_) // 2]
        for name, all_ in measured.items()
    }
    # The sketch has a median of its own: it is another clock.
    for name, all_ in measured.items():
        costs = sorted(one.sketch_cpu_us for one in all_)
        middle[name].sketch_cpu_us = costs[len(costs) // 2]
    ours = middle[OURS]
    ratios = {
        "end_to_end": {name: one.cpu_us / ours.cpu_us for name, one in middle.items()},
        "sketch": {name: one.sketch_cpu_us / ours.sketch_cpu_us for name, one in middle.items()},
    }
    return {
        "articles": articles,
        "rounds": rounds,
        "words_per_article": sum(len(one.text.split()) for one in made) / articles,
        "bytes_per_article": sum(len(one.text.encode()) for one in made) / articles,
        "contestants": {name: asdict(one) for name, one in middle.items()},
        "all_rounds_cpu_us": {
            name: [one.cpu_us for one in all_] for name, all_ in measured.items()
        },
        "ratios": ratios,
        "targets": {
            what: {
                name: {
                    "least": least,
                    "measured": ratios[what][name],
                    "reached": ratios[what][name] >= least,
                }
                for name, least in targets.items()
            }
            for what, targets in TARGETS.items()
        },
    }


def _measured(name: str, file: Path) -> Measured:
    script = Path(__file__).with_name("contestants.py")
    done = subprocess.run(
        [sys.executable, str(script), name, str(file)], stdout=subprocess.PIPE, check=True
    )
    return msgspec.json.decode(done.stdout, type=Measured)


def text(figures: dict[str, Any]) -> Iterator[str]:
    """The figures for a person."""
    yield (
        f"{figures['articles']:,} articles of {figures['words_per_article']:.0f} words "
        f"({figures['bytes_per_article']:,.0f} bytes), median of {figures['rounds']} rounds"
    )
    yield (
        f"streamdedup: batches of {BATCH_ARTICLES:,}, on disk, exact check; the others: in memory, "
        "signature check"
    )
    yield "compiling and first-use set-up happen before the clock starts"
    yield ""
    yield "end to end    CPU µs   wall µs   CPU ratio   found    owed   precision   recall"
    for name, one in figures["contestants"].items():
        yield (
            f"{name:<12} {one['cpu_us']:>7.1f} {one['wall_us']:>9.1f}"
            f" {figures['ratios']['end_to_end'][name]:>10.1f}x {one['found']:>7,}"
            f" {one['owed']:>7,} {one['precision']:>11.4f} {one['recall']:>8.4f}"
        )
    yield ""
    yield "sketch only   CPU µs   CPU ratio"
    for name, one in figures["contestants"].items():
        ratio = figures["ratios"]["sketch"][name]
        yield f"{name:<12} {one['sketch_cpu_us']:>7.1f} {ratio:>10.1f}x"
    yield ""
    details = figures["contestants"][OURS]["details"]
    yield "where streamdedup's CPU time goes, µs an article"
    for stage, cpu_us in details["stages_cpu_us"].items():
        yield f"  {stage:<20} {cpu_us:>6.2f}"
    yield f"candidates compared: {details['candidates_per_article']:.2f} an article"
    yield ""
    for what, targets in figures["targets"].items():
        for name, target in targets.items():
            state = "reached" if target["reached"] else "MISSED"
            label = f"{what.replace('_', ' ')} against {name}"
            yield (
                f"{label:<32}{target['measured']:>7.1f}x   target ≥ {target['least']:.0f}x: {state}"
            )


def plot(figures: dict[str, Any], file: Path) -> None:
    """Two bar charts: end to end, and the sketch alone."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(figures["contestants"])
    panels = (("text to verdict", "cpu_us", "end_to_end"),
              ("text to sketch", "sketch_cpu_us", "sketch"))  # fmt: skip
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for axis, (title, field, ratio) in zip(axes, panels, strict=True):
        costs = [figures["contestants"][name][field] for name in names]
        bars = axis.barh(names, costs, color=["#1f4e79", "#b8b8b8", "#b8b8b8"])
        labels = [
            f"{cost:.0f}"
            if name == OURS
            else f"{cost:.0f}  ({figures['ratios'][ratio][name]:.0f}×)"
            for name, cost in zip(names, costs, strict=True)
        ]
        axis.bar_label(bars, labels, padding=4)
        axis.set(title=title, xlabel="CPU µs an article", xlim=(0, 1.3 * max(costs)))
        axis.invert_yaxis()
        axis.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--articles", type=int, default=20_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures")
    options = parser.parse_args()
    figures = run(options.articles, options.rounds)
    if options.plot is not None:
        plot(figures, options.plot)
    print(json.dumps(figures) if options.json else "\n".join(text(figures)))


if __name__ == "__main__":
    main()
