"""Training loss over the samples of each strategy's run, with the failures marked."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.plots.axes import title_axes
from cprsim.plots.style import CAPTION, FAINT, INK, series_line, style

if TYPE_CHECKING:
    from cprsim.experiments.accuracy import StrategyAccuracy, TrainingOutcome

LEGEND_ROOM = 0.3  # of the height of the values: free for the legend above them


def loss_figure(measured: TrainingOutcome, name: str) -> Figure:
    """Loss over samples above, and below what each strategy adds to it, which is far smaller.

    A marker stands where shards went back to their last save.
    """
    anew = [one for one in measured.strategies if one.bytes_written is not None]
    with style():
        figure = Figure(figsize=(7.6, 5.4), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        whole = measured.whole.curve
        above.plot(whole.position / 1e3, whole.loss, color=INK, lw=1.0, label=_same(measured))
        below.axhline(0, color=INK, lw=1.0)
        for number, one in enumerate(anew):
            _strategy(above, below, measured, one, number)
        above.set_ylabel("training loss [nats]")
        below.set_ylabel("added by failures [nats]")
        below.set_xlabel("thousand samples")
        _not_drawn(below, measured)
        for axes in (above, below):
            axes.yaxis.grid(True)
        marks = "; marks: failed shards go back" if any(len(o.reverted_at) for o in anew) else ""
        caption = f"replication {measured.replication}{marks}; stand-in: {measured.stand_in}"
        title_axes(above, f"Loss with failures: {name}", fill(caption, 100))
        low, high = above.get_ylim()
        above.set_ylim(low, high + LEGEND_ROOM * (high - low))
        above.legend(loc="upper right", ncols=3)
        if not anew:
            _nothing_to_see(below)
    return figure


def _same(measured: TrainingOutcome) -> str:
    """Label of the run without failures, and of the strategies that train the same model."""
    same = [one.policy.name for one in measured.strategies if one.trained is measured.whole]
    return fill(", ".join(["no failures", *same]), 40)


def _not_drawn(axes: Axes, measured: TrainingOutcome) -> None:
    """Name the strategies without a line: their job did not finish."""
    names = [one.policy.name for one in measured.strategies if one.trained is None]
    if names:
        axes.annotate(
            f"not drawn, did not finish: {', '.join(names)}", (0.99, 0.02),
            xycoords="axes fraction", ha="right", fontsize=7, color=CAPTION,
        )  # fmt: skip


def _strategy(
    above: Axes, below: Axes, measured: TrainingOutcome, one: StrategyAccuracy, number: int
) -> None:
    assert one.trained is not None, "it was trained anew"
    colour, marker, dashes = series_line(number)
    curve, whole = one.trained.curve, measured.whole.curve
    x = curve.position / 1e3
    lost_at = one.reverted_at * whole.position[-1] / 1e3
    for axes, y in ((above, curve.loss), (below, curve.loss - whole.loss)):
        axes.plot(x, y, color=colour, ls=dashes, lw=1.0, label=fill(one.policy.name, 24))
        if len(lost_at):
            axes.plot(lost_at, np.interp(lost_at, x, y), marker, color=colour, ms=5, ls="none")


def _nothing_to_see(axes: Axes) -> None:
    axes.text(
        0.5, 0.5, "every strategy rolls everybody back: no model changes",
        transform=axes.transAxes, ha="center", va="bottom", color=FAINT, style="italic",
    )  # fmt: skip
