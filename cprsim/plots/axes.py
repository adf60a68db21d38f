"""What the axes of all figures share: titles with captions, words for keys, and scales."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from cprsim.errors import printable
from cprsim.plots.style import CAPTION

OVERHEAD_LABEL = "overhead, % of useful time"
TITLE_POINTS, CAPTION_POINTS = 10.5, 8.0
LINE_SPACING = 1.25
# a bar of more than this share of useful time that is so many times the next is cut, so that the
# others can be read
CUT_ABOVE_FRACTION, CUT_ABOVE_TIMES = 0.3, 5.0
HEADROOM = 1.16
MOST_DECADES = 3.0  # of a logarithmic axis with ticks at 2 and 5 of each decade

WORDS = {
    "accuracy.max_auc_loss": "AUC that may be lost",
    "accuracy.max_log_loss": "rise of the log-loss that is allowed",
    "accuracy.target_pls": "target PLS",
    "cluster.emb_ps": "embedding servers",
    "cluster.link": "bandwidth of a node's link",
    "cluster.rack": "nodes of a rack",
    "cluster.repair": "time to repair a node",
    "cluster.shard_size": "size of a shard",
    "cluster.spares": "spare nodes",
    "cluster.state": "state of the job",
    "cluster.trainers": "trainers",
    "cluster.workers": "workers",
    "costs.detect": "time to detect a failure",
    "costs.load": "cost of a load",
    "costs.reschedule": "time to reschedule",
    "costs.save": "cost of a save",
    "failures.count": "failures per job",
    "failures.family": "distribution of failures",
    "failures.mtbf": "mean time between failures",
    "failures.role": "what fails",
    "failures.shape": "shape of the distribution",
    "failures.sigma": "sigma of the distribution",
    "failures.together": "nodes that fail together",
    "fleet.jobs": "jobs",
    "fleet.nodes": "nodes of the cluster",
    "fleet.spares": "spare nodes",
    "fleet.storage": "bandwidth of the shared storage",
    "job.samples": "samples",
    "job.step": "time of a step",
    "job.throughput": "throughput",
    "job.useful": "useful work",
    "prices.kwh": "price of a kilowatt-hour",
    "prices.node_hour": "price of a node-hour",
    "prices.storage_month": "price of a stored gigabyte and month",
    "prices.storage_written": "price of a written gigabyte",
    "storage.bandwidth": "bandwidth of the storage",
    "storage.per_server": "bandwidth of a server's link",
}
WORDS_OF_STRATEGY = {"interval": "save interval", "target_pls": "target PLS"}
WORDS_OF_SCOPE = {
    "share": "share of {} failures", "detect": "time to detect {} failures",
    "mtbf": "mean time between {} failures",
}  # fmt: skip


def words_of_key(key: str) -> str:
    """A key of a scenario in the field's words; a key that is not listed stays as it is."""
    section, _, rest = key.partition(".")
    strategy, _, option = rest.rpartition(".")
    if section == "recovery" and option in WORDS_OF_STRATEGY:
        of_strategy = f" of {strategy}" if strategy not in ("", "*") else ""
        return WORDS_OF_STRATEGY[option] + of_strategy
    if section == "scopes" and option in WORDS_OF_SCOPE:
        return WORDS_OF_SCOPE[option].format(strategy.removesuffix(".failures"))
    if section == "recovery" and strategy.endswith(".options"):
        return f"{option.replace('_', ' ')} of {strategy.removesuffix('.options')}"
    return WORDS.get(key, key)


def fold(text: str, width: int) -> str:
    """The text in lines of so many characters; a number and its unit stay on one line."""
    text = re.sub(r"(\d) (\w+\b|%)", "\\1\N{NO-BREAK SPACE}\\2", printable(text))
    return fill(text, width, break_long_words=False)


def panels(
    n: int, size_in: tuple[float, float] = (4.4, 4.0), beside_in: float = 0.0, **sharing: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with panels of a size, at most three in a row (four stand two by two)."""
    n_columns = 2 if n == 4 else min(n, 3)
    n_rows = -(-n // n_columns)
    width_in = max(6.4, size_in[0] * n_columns) + beside_in
    figure = Figure(figsize=(width_in, size_in[1] * n_rows), layout="constrained")
    axes = list(figure.subplots(n_rows, n_columns, squeeze=False, **sharing).flat)
    for empty in axes[n:]:
        empty.remove()
    return figure, axes[:n]


def title_figure(figure: Figure, title: str, caption: str) -> None:
    """Write a bold title over all panels of a figure and a caption in grey below it."""
    width_in, height_in = figure.get_size_inches()
    lines = fill(caption, int(13 * width_in))
    n_blank = -(-(lines.count("\n") + 1) * CAPTION_POINTS // TITLE_POINTS)  # lines kept free
    top = {} if figure.get_layout_engine() else {"y": 1 - 3 / 72 / height_in}
    figure.suptitle(
        title + "\n" * int(n_blank), x=0.01, ha="left", fontweight="bold",
        fontsize=TITLE_POINTS, **top,
    )  # fmt: skip
    below_title = 1 - 1.9 * TITLE_POINTS / 72 / height_in
    figure.text(0.011, below_title, lines, fontsize=CAPTION_POINTS, color=CAPTION, va="top")


def percent_axis(axis: Axis) -> None:
    """Label the ticks of shares in per cent."""
    axis.set_major_formatter(lambda value, _: f"{round(100 * value, 9):g}")


def log_scale(axes: Axes, which: str) -> None:
    """Make an axis logarithmic, with plain numbers at 1, 2 and 5 of each decade (or at 1 alone)."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low, high = axis.get_view_interval()
    digits = (1.0, 2.0, 5.0) if high < low * 10**MOST_DECADES else (1.0,)
    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())  # each would be laid out like a text: half of the time


def axis_top(totals: Sequence[float]) -> float:
    """Where an axis of overheads ends [share of useful time]."""
    heights = sorted((total for total in totals if total > 0), reverse=True)
    if not heights:
        return 0.01
    dwarfs = len(heights) > 1 and heights[0] > CUT_ABOVE_TIMES * heights[1]
    if dwarfs and heights[0] > CUT_ABOVE_FRACTION:
        return heights[1] * 1.5
    return heights[0] * HEADROOM
