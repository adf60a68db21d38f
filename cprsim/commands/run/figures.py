"""Overhead by part, as in the CPR paper, of a run or of many systems; and by percentile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cprsim.job.records import Estimate
from cprsim.pages.axes import (
    INK,
    OVERHEAD_LABEL,
    axis_top,
    fold,
    look_of,
    percent_axis,
    stacked,
    style,
    title_figure,
)
from cprsim.pages.chart import Chart, Panel, Series, floats
from cprsim.pages.draw_chart import chart_figure
from cprsim.results.metrics import FINISHED, OVERHEAD
from cprsim.results.words import count, hours, percent, saves

if TYPE_CHECKING:
    import pandas as pd

    from cprsim.job.policy import Policy
    from cprsim.results.run import Result

ROW_IN, BAR_WIDTH, NAME_WIDTH = 0.3, 0.62, 44  # of a bar; characters of a line of its name
ERRORS = "error bars: 95 % interval of the mean"
READ_AT = 95  # the percentile by which the scale of all is chosen


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of a strategy or system: its name, its label, its quantities, its error bar."""

    name: str
    total: str
    spreads: Mapping[str, Estimate]
    half_width: float  # of the error bar


def overhead_figure(result: Result) -> Figure:
    """A bar per strategy, in the order of the scenario."""
    spreads = result.spreads()
    return bars_figure(result, result.name, "strategy", [
        Bar(f"{policy.name}, {saves(policy, result.useful_h)}", _total(policy, result),
            spreads[policy.name], spreads[policy.name][OVERHEAD].half_width)
        for policy in result.policies
    ])  # fmt: skip


def _total(policy: Policy, result: Result) -> str:
    """The overhead in percent, or the finished share, and its cost where there is a price."""
    spreads = result.spreads()[policy.name]
    overhead = spreads[OVERHEAD].mean
    if isnan(overhead):
        share = spreads[FINISHED].mean
        return f"only {percent(share)} finished" if share else "no replication finished"
    if result.price is None:
        return percent(overhead)
    return f"{percent(overhead)}, {result.price.amount(spreads['overhead_node_h'].mean)}"


def bars_figure(
    result: Result, name: str, of: str, bars: Sequence[Bar], about: str = "", errors: str = ERRORS
) -> Figure:
    """Stacked bars of mean overhead in percent of useful time, with 95 % intervals.

    Those with replications that did not finish have no bar.
    """
    finishing = [bar for bar in bars if bar.spreads[FINISHED].mean == 1]
    parts = [
        part
        for part in stacked(result.parts)
        if any(bar.spreads[part].mean > 0 for bar in finishing)
    ]
    ends = [bar.spreads[OVERHEAD].mean + np.nan_to_num(bar.half_width) for bar in finishing]
    edge = axis_top(ends)
    with style():
        figure = Figure(figsize=(8.0, 1.9 + ROW_IN * len(bars)), layout="constrained")
        axes = figure.add_subplot()
        for y, bar in enumerate(bars):
            left = 0.0
            for part in parts if bar in finishing else ():
                width = float(
                    np.nan_to_num(bar.spreads[part].mean)
                )  # NaN: a part that only others have
                axes.barh(y, width, BAR_WIDTH, left, **look_of(part))
                left += width
            if bar.half_width > 0 and left < edge:
                axes.errorbar(left, y, xerr=bar.half_width, color=INK, capsize=3, lw=1.1)
            total = f" {bar.total}{' →' if left > edge else ''}"
            axes.text(1, y, total, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
        axes.set_xlim(0, edge)
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.set_yticks(range(len(bars)), [fold(bar.name, NAME_WIDTH) for bar in bars])
        axes.tick_params(axis="y", length=0)
        percent_axis(axes.xaxis)
        axes.xaxis.grid(True)
        axes.set_xlabel(OVERHEAD_LABEL)
        handles = [Patch(**look_of(part)) for part in parts]
        figure.legend(handles=handles, loc="outside lower left", ncols=5, fontsize=8)
        n = count(max(bar.spreads[FINISHED].n for bar in bars), "replication")
        caption = (
            f"{hours(result.useful_h)} of useful work on {result.n_nodes} nodes{about}; mean of "
            f"{n}; {errors}"
        )
        title_figure(figure, f"Overhead by {of}: {name}", caption)
    return figure


def percentiles_figure(overheads: Mapping[str, pd.DataFrame], *, run_name: str) -> Figure:
    """A line per strategy with the band of its 95 % intervals, by overhead as a share."""
    lines = tuple(
        Series(
            name, floats(frame.index), floats(100 * frame["value"]), floats(100 * frame["low"]),
            floats(100 * frame["high"]),
        )
        for name, frame in overheads.items()
    )  # fmt: skip
    at = [float(frame["value"][READ_AT]) for frame in overheads.values()]
    x_label = "percentile of the replications [%]"
    panel = Panel("", x_label, OVERHEAD_LABEL, lines, y_log=axis_top(at) < max(at))
    title = f"Percentiles of the overhead: {run_name}"
    return chart_figure(
        Chart(title, "share of replications with at most this overhead; bands: 95 %", (panel,))
    )
