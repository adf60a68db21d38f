"""Accuracy loss over weighted PLS: every measured trial, and the line of each strategy."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.plots.axes import title_figure
from cprsim.plots.style import INK, series_line, style
from cprsim.staleness import Metric

if TYPE_CHECKING:
    from cprsim.measuring.measure import Measured

PANELS = (("equal bytes", ""), ("small tables with every sub-save: more bytes", "+"))
BELOW_ZERO = (
    "A point is one trial: below 0 the noise of training is larger than what its failures cost."
)
RECALLED = "paper: correlation about 0.88 (recalled)"


def staleness_figure(measured: Measured, name: str, metric: Metric = Metric.AUC) -> Figure:
    """Loss over weighted PLS, left at equal bytes, right with the small tables saved more often.

    Each point is a trial that was fitted; a line is a strategy's, its band the 95 % interval of its
    slope (of plain partial recovery alone, for clarity).
    """
    correlation = measured.checks(metric).correlation
    with style():
        figure = Figure(figsize=(7.6, 4.2), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for one, (title, suffix) in zip(axes, PANELS, strict=True):
            keys = [k for k in measured.seen.strategies if k == "partial" or _of(k, suffix)]
            for number, key in enumerate(keys):
                _strategy(one, measured, metric, key, number)
            one.set_title(fill(title, 34), loc="left", fontsize=9)
            one.set_xlabel("weighted PLS [portion of samples]")
            one.yaxis.grid(True)
            one.legend(loc="upper left")
        axes[0].set_ylabel(
            "added log-loss [nats]" if metric == Metric.LOG_LOSS else f"loss of {metric.label}"
        )
        what = (
            f"{len(measured.seen.seeds)} seeds; correlation of loss and PLS, partial: "
            f"{correlation.mean:.2f} ± {correlation.standard_error:.2f}; {RECALLED}. {BELOW_ZERO}"
        )
        title_figure(figure, f"Loss over PLS: {name}", what)
    return figure


def _of(strategy: str, suffix: str) -> bool:
    return strategy != "partial" and strategy.endswith("+") == bool(suffix)


def _strategy(axes: Axes, measured: Measured, metric: Metric, key: str, number: int) -> None:
    """Draw one strategy."""
    lost, loss = measured.points(metric, key)
    slopes, level = measured.fitted[metric].slopes, measured.fitted[metric].parts[key].intercept
    _, marker, dashes = series_line(number)
    colour = INK if number == 0 else series_line(number - 1).colour  # plain partial recovery: black
    axes.plot(lost, loss, marker, ms=3, mfc="none", mew=0.6, color=colour, alpha=0.7)
    end = np.array([0.0, float(lost.max(initial=0.0))])
    axes.plot(end, level + slopes.mean(key) * end, ls=dashes, lw=1.3, color=colour, label=key)
    if key == "partial":
        half = slopes.half_width(slopes.standard_error(key))
        low, high = (slopes.mean(key) + sign * half for sign in (-1, 1))
        axes.fill_between(end, level + low * end, level + high * end, color=INK, alpha=0.12, lw=0)
