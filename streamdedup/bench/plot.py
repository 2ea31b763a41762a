"""The picture of a growth run.  matplotlib is needed for this only, and only when asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from streamdedup.bench.growth import Growth
from streamdedup.errors import ConfigError

_POINTS = 300


def plot_growth(growth: Growth, file: Path) -> None:
    """Cost of an article against the size of the index, and the segments that were live."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise ConfigError("--plot needs matplotlib: pip install 'streamdedup[bench]'") from None
    batch_us = 1e3 * np.array(growth.batch_ms) / growth.batch
    width = max(1, len(batch_us) // _POINTS)
    groups = batch_us[: len(batch_us) // width * width].reshape(-1, width)
    size = (np.arange(len(groups)) + 1) * width * growth.batch / 1e6
    figure, cost = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    cost.plot(size, groups.max(axis=1), ".", ms=3, color="#c9a227", label="slowest batch")
    cost.plot(size, groups.mean(axis=1), color="#1f4e79", label="mean")
    cost.set(xlabel="articles in the index, millions", ylabel="µs an article (wall)")
    cost.set_ylim(bottom=0)
    cost.set_xlim(left=0)
    live = cost.twinx()
    live.step(
        [0.0, *(tenth.articles / 1e6 for tenth in growth.tenths)],
        [0, *(tenth.segments for tenth in growth.tenths)],
        where="pre",
        color="#999999",
        lw=1,
        label="live segments (right)",
    )
    live.set_ylim(0, 2 * max(1, *(tenth.segments for tenth in growth.tenths)))
    handles = [*cost.get_legend_handles_labels()[0], *live.get_legend_handles_labels()[0]]
    cost.legend(handles=handles, loc="upper left", frameon=False)
    cost.spines[["top"]].set_visible(False)
    live.spines[["top"]].set_visible(False)
    figure.savefig(file, dpi=130)
    pyplot.close(figure)
