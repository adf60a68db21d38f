"""Overhead by part, as in the CPR paper, of a run or of many systems; and by percentile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
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
from cprsim.results.metrics import FINISHED, OVERHEAD, parts_among, share_of
from cprsim.results.words import count, hours, percent, saves

if TYPE_CHECKING:
    import pandas as pd

    from cprsim.job.policy import Policy
    from cprsim.results.run import Result

WIDTH_IN = 8.0
ROW_IN, BAR_WIDTH, NAME_WIDTH = 0.3, 0.62, 44  # of a bar; characters of a line of its name
ERRORS = "error bars: 95 % interval of the mean"
LEGEND_COLUMNS, FAINT_ALPHA = 5, 0.45
UNKNOWN = Estimate(nan)
READ_AT = 95  # the percentile by which the scale of all is chosen


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of a strategy or system: its name, its label, its quantities, its error bar."""

    name: str
    total: str
    spreads: Mapping[str, Estimate]
    half_width: float  # of the error bar
    is_faint: bool = False


def overhead_figure(
    result: Result, today: Result | None = None, width_in: float = WIDTH_IN
) -> Figure:
    """A bar per strategy, in the order of the scenario; below each a faint one of `today`."""
    bars = {policy.name: [_bar(policy, result)] for policy in result.policies}
    if today is not None:
        for policy in today.policies:
            bar = _bar(policy, today)
            faint = replace(bar, name=f"today: {bar.name}", is_faint=True)
            bars.setdefault(policy.name, []).append(faint)
    listed = [bar for pair in bars.values() for bar in pair]
    return bars_figure(result, result.name, "strategy", listed, width_in=width_in)


def _bar(policy: Policy, result: Result) -> Bar:
    name = f"{policy.name}, {saves(policy, result.useful_h)}"
    spreads = result.summary[policy.name]
    return Bar(name, _total(policy, result), spreads, spreads[OVERHEAD].half_width)


def _total(policy: Policy, result: Result) -> str:
    """The overhead in percent, or the finished share, and its cost where there is a price."""
    spreads = result.summary[policy.name]
    overhead = spreads[OVERHEAD].mean
    if isnan(overhead):
        share = spreads[FINISHED].mean
        return f"only {percent(share)} finished" if share else "no replication finished"
    if result.price is None:
        return percent(overhead)
    return f"{percent(overhead)}, {result.price.amount(spreads['overhead_node_h'].mean)}"


def bars_figure(
    result: Result, name: str, of: str, bars: Sequence[Bar], about: str = "", errors: str = ERRORS,
    width_in: float = WIDTH_IN,
) -> Figure:  # fmt: skip
    """Stacked bars of mean overhead in percent of useful time, with 95 % intervals.

    Those with replications that did not finish have no bar.
    """
    finishing = [bar for bar in bars if bar.spreads[FINISHED].mean == 1]
    parts = [
        part
        for part in stacked(parts_among(part for bar in bars for part in bar.spreads))
        if any(bar.spreads.get(share_of(part), UNKNOWN).mean > 0 for bar in finishing)
    ]
    ends = [bar.spreads[OVERHEAD].mean + np.nan_to_num(bar.half_width) for bar in finishing]
    edge = axis_top(ends)
    name_width, n_columns = (int(of * width_in / WIDTH_IN) for of in (NAME_WIDTH, LEGEND_COLUMNS))
    with style():
        figure = Figure(figsize=(width_in, 1.9 + ROW_IN * len(bars)), layout="constrained")
        axes = figure.add_subplot()
        for y, bar in enumerate(bars):
            left = 0.0
            for part in parts if bar in finishing else ():
                of_part = bar.spreads.get(share_of(part), UNKNOWN).mean
                width = float(np.nan_to_num(of_part))  # NaN: a part that only others have
                look = look_of(part) | ({"alpha": FAINT_ALPHA} if bar.is_faint else {})
                axes.barh(y, width, BAR_WIDTH, left, **look)
                left += width
            if bar.half_width > 0 and left < edge:
                axes.errorbar(left, y, xerr=bar.half_width, color=INK, capsize=3, lw=1.1)
            total = f" {bar.total}{' →' if left > edge else ''}"
            axes.text(1, y, total, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
        axes.set_xlim(0, edge)
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.set_yticks(range(len(bars)), [fold(bar.name, name_width) for bar in bars])
        axes.tick_params(axis="y", length=0)
        percent_axis(axes.xaxis)
        axes.xaxis.grid(True)
        axes.set_xlabel(OVERHEAD_LABEL)
        handles = [Patch(**look_of(part)) for part in parts]
        figure.legend(handles=handles, loc="outside lower left", ncols=n_columns, fontsize=8)
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
