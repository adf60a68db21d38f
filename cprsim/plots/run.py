"""Overhead by part, as in the CPR paper, of a run or of many systems; and by percentile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cprsim.errors import printable
from cprsim.plots.axes import (
    FAINT,
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
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.plots.draw_chart import chart_figure
from cprsim.records import Estimate
from cprsim.results.metrics import FINISHED
from cprsim.results.words import count, hours, percent, saves

if TYPE_CHECKING:
    import pandas as pd

    from cprsim.recovery.policy import Policy
    from cprsim.results.run import Result
    from cprsim.systems_compared.comparison import Comparison

BAR_WIDTH = 0.58
ROW_IN, SYSTEM_BAR = 0.3, 0.62  # of a figure with a row per system
NOTE = {"boxstyle": "round,pad=0.18", "facecolor": "white", "edgecolor": "none", "alpha": 0.92}
READ_AT = 95  # the percentile by which the scale of all is chosen
LEAST_WIDTH_IN = 4.6  # that the texts need however few bars there are


def overhead_figure(result: Result) -> Figure:
    """Stacked bars of mean overhead in percent of useful time, with 95 % intervals of the totals.

    Strategies with replications that did not finish have no bar but the share that finished.
    """
    spreads = [result.spreads()[policy.name] for policy in result.policies]
    totals = [quantities["overhead_fraction"].mean for quantities in spreads]
    parts = [
        part
        for part in stacked(result.parts)
        if any(quantities[part].mean > 0 for quantities in spreads)
    ]
    top = axis_top(totals)
    with style():
        width_in = max(LEAST_WIDTH_IN, 1.15 * len(spreads)) + 2.4
        figure = Figure(figsize=(width_in, 4.6), layout="constrained")
        axes = figure.add_subplot()
        for x, quantities in enumerate(spreads):
            if isnan(totals[x]):
                share = quantities[FINISHED].mean
                text = f"only {percent(share)}\nfinished" if share else "no replication\nfinished"
                axes.text(x, 0.03 * top, text, ha="center", color=FAINT, style="italic")
            else:
                _bar(axes, x, quantities, parts, top)
        labels = ["\n".join(fold(words, 16) for words in _below(policy, result))
                  for policy in result.policies]  # fmt: skip
        axes.set_xticks(range(len(labels)), labels)
        axes.tick_params(axis="x", length=0, pad=6)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.set_ylim(0, top)
        percent_axis(axes.yaxis)
        axes.yaxis.grid(True)
        axes.set_ylabel(OVERHEAD_LABEL)
        handles = [Patch(**look_of(part)) for part in reversed(parts)]  # in the order of the stack
        axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5))
        n = max(quantities[FINISHED].n for quantities in spreads)
        cut = "; \N{UPWARDS ARROW}: beyond the axis" if any(x > top for x in totals) else ""
        caption = (
            f"{hours(result.useful_h)} of useful work on {result.n_nodes} nodes; mean of "
            f"{count(n, 'replication')}; error bars: 95 % interval of the mean{cut}"
        )
        title_figure(figure, f"Overhead by cause: {result.name}", caption)
    return figure


def _bar(
    axes: Axes, x: int, spreads: Mapping[str, Estimate], parts: Sequence[str], top: float
) -> None:
    bottom = 0.0
    for part in parts:
        height = spreads[part].mean
        if height > 0:  # NaN: a part that only other systems have
            axes.bar(x, height, BAR_WIDTH, bottom, **look_of(part))
            visible = min(bottom + height, top) - bottom
            if visible > 0.055 * top:
                axes.text(
                    x, bottom + visible / 2, percent(height), ha="center", va="center",
                    fontsize=7.5, bbox=NOTE,
                )  # fmt: skip
            bottom += height
    half = spreads["overhead_fraction"].half_width
    if half > 0 and bottom <= top:
        axes.errorbar(x, bottom, half, color=INK, capsize=4, lw=1.2)
    arrow = " \N{UPWARDS ARROW}" if bottom > top else ""
    axes.annotate(
        f"{percent(bottom)}{arrow}", (x, top if arrow else bottom + np.nan_to_num(half)), (0, 4),
        textcoords="offset points", ha="center", va="bottom", fontweight="bold",
    )  # fmt: skip


def _below(policy: Policy, result: Result) -> list[str]:
    """What stands below a bar: name, interval, and what it costs where there is a price."""
    lines = [policy.name, saves(policy, result.useful_h)]
    node_h = result.spreads()[policy.name]["overhead_node_h"].mean
    if result.price is not None and not isnan(node_h):
        lines.append(result.price.amount(node_h))
    return lines


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


def systems_figure(comparison: Comparison) -> Figure:
    """A bar per system, the cheapest on top, with the 95 % interval of the total."""
    standings, result = comparison.standings, comparison.result
    finishing = [standing for standing in standings if standing.finishes]
    parts = [
        part
        for part in stacked(result.parts)
        if any(standing.part(part) > 0 for standing in finishing)
    ]
    edge = axis_top([max(standing.overhead.high, standing.overhead.mean) for standing in finishing])
    with style():
        figure = Figure(figsize=(8.0, 1.9 + ROW_IN * len(standings)), layout="constrained")
        axes = figure.add_subplot()
        for y, standing in enumerate(standings):
            left, half = 0.0, nan
            for part in parts if standing.finishes else ():
                axes.barh(y, standing.part(part), SYSTEM_BAR, left, **look_of(part))
                left, half = left + standing.part(part), standing.overhead.half_width
            if half > 0 and left < edge:
                axes.errorbar(left, y, xerr=half, color=INK, capsize=3, lw=1.1)
            total = f" {standing.percent}{' →' * (left > edge)}"
            axes.text(1, y, total, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
        axes.set_xlim(0, edge)
        axes.set_ylim(len(standings) - 0.5, -0.5)
        axes.set_yticks(
            range(len(standings)), [printable(standing.label) for standing in standings]
        )
        axes.tick_params(axis="y", length=0)
        percent_axis(axes.xaxis)
        axes.xaxis.grid(True)
        axes.set_xlabel(OVERHEAD_LABEL)
        handles = [Patch(**look_of(part)) for part in parts]
        figure.legend(handles=handles, loc="outside lower left", ncols=5, fontsize=8)
        n = int(result.replications["replication"].nunique())
        caption = (
            f"{hours(result.useful_h)} of useful work on {result.n_nodes} nodes; "
            f"{comparison.intervals}; mean of {count(n, 'replication')}, in % of useful "
            "time; error bars: 95 %"
        )
        title_figure(figure, f"Overhead by system: {comparison.name}", caption)
    return figure
