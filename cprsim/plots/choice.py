"""The figure of a selection: overhead over what is lost, or over saves where nothing is."""

from __future__ import annotations

from math import isnan

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.plots.left_out import Shown
from cprsim.plots.pareto import ABOVE_FULL, pareto_figure
from cprsim.plots.style import CAPTION, INK, series_line, style
from cprsim.results.words import count, hours
from cprsim.selector import Candidate, Selection
from cprsim.selector.words import saving

BELOW_ONE = 0.5  # where a job without saves stands on the logarithmic axis


def selection_figure(selection: Selection, name: str, *, narrow: bool = False) -> Figure:
    """What there was to choose from.

    Parameters
    ----------
    narrow : for a telephone: without a title, the legend below
    """
    figure_of = pareto_figure if selection.limited else saves_figure
    return figure_of(selection, name, narrow=narrow)


def saves_figure(selection: Selection, name: str, *, narrow: bool = False) -> Figure:
    """Overhead over the number of saves, full recovery and every recovery system a line.

    A system without an interval is a level line.
    """
    with style():
        figure = Figure(figsize=(3.9, 5.6) if narrow else (7.6, 4.6), layout="constrained")
        axes = figure.add_subplot()
        shown = Shown()
        names = dict.fromkeys([*selection.front, *selection.best])
        for number, strategy in enumerate(names):
            front = selection.front.get(strategy, ())
            alone = selection.best.get(strategy)
            if front:
                _line(axes, strategy, front, number, shown)
            elif alone is not None and not isnan(alone.overhead.mean):
                colour, _, dashes = series_line(number)
                label = f"{strategy} ({saving(alone)})"
                axes.axhline(alone.overhead.mean, color=colour, ls=dashes, lw=1.2, label=label)
        _choice(axes, selection)
        _dress(axes, selection)
        shown.tell(axes, "of candidates that do not finish")
        if narrow:
            figure.legend(loc="outside lower center", fontsize=8)
        else:
            _title(axes, selection, name)
    return figure


def _line(
    axes: Axes, strategy: str, front: tuple[Candidate, ...], number: int, shown: Shown
) -> None:
    colour, marker, dashes = series_line(number)
    in_order = sorted(front, key=lambda one: one.n_saves)
    n, overhead = [_place(one) for one in in_order], [one.overhead.mean for one in in_order]
    axes.plot(
        n, overhead, color=colour, marker=marker, ls=dashes, ms=3.6, lw=1.2, mec="white", mew=0.4,
        label=strategy,
    )  # fmt: skip
    shown.add(n, overhead, colour=colour)


def _place(one: Candidate) -> float:
    return max(float(one.n_saves), BELOW_ONE)


def _choice(axes: Axes, selection: Selection) -> None:
    chosen = selection.chosen
    if not isnan(chosen.overhead.mean):
        axes.plot(
            [_place(chosen)], [chosen.overhead.mean], marker="*", ms=15, color="white", mec=INK,
            mew=1.3, ls="none", zorder=6, clip_on=False,
            label=f"chosen: {chosen.strategy}, {saving(chosen)}",
        )  # fmt: skip


def _dress(axes: Axes, selection: Selection) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda n, _: "none" if n < 1 else f"{n:,.10g}")
    at = [10.0**k for k in range(6) if 10.0**k < 2 * axes.get_xlim()[1]]
    axes.set_xticks([BELOW_ONE, *at])
    axes.minorticks_off()
    full = selection.full.overhead.mean
    if not isnan(full) and full > 0:
        axes.set_ylim(0, 2 * full * ABOVE_FULL)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
    axes.grid(True)
    axes.set_ylabel("overhead, % of useful time")
    axes.set_xlabel("saves per job")


def _title(axes: Axes, selection: Selection, name: str) -> None:
    axes.set_title(f"Overhead against saves: {name}", loc="left", fontweight="bold", pad=22)
    axes.annotate(
        f"{hours(selection.useful_h)} of useful work; mean of "
        f"{count(selection.n_replications, 'replication')}",
        (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points",
        fontsize=8, color=CAPTION, va="bottom",
    )  # fmt: skip
    axes.legend(loc="upper right", fontsize=8, frameon=True, facecolor="white", framealpha=0.9)
