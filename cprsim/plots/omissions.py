"""Notes on a figure about what it does not show: values that are none or beyond its axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from cprsim.plots.style import CAPTION
from cprsim.records import Bools, Floats, Ints
from cprsim.results.words import count

NEAR = 1e-9  # of an axis: a value this near to its end lies on it


class Omissions:
    """The values of one set of axes, collected while they are drawn."""

    def __init__(self) -> None:
        self._values: list[tuple[Floats, Floats, str]] = []
        self._ends: list[Floats] = []

    def add(
        self,
        x: Sequence[float] | Floats | Ints,
        y: Sequence[float] | Floats,
        low: Sequence[float] | Floats = (),
        high: Sequence[float] | Floats = (),
        colour: str = CAPTION,
    ) -> None:
        """Collect the values of a line and the ends of their intervals, (n,) each."""
        self._values.append((np.asarray(x, float), np.asarray(y, float), colour))
        finite = np.isfinite(self._values[-1][1])
        self._ends += [np.asarray(end, float)[finite] for end in (low, high) if len(end)]

    def annotate(self, axes: Axes, why_none: str = "not finite", *, below: bool = False) -> None:
        """Mark values beyond the axes at the edge, and write how many values are left out.

        Call it when scales and limits stand. It writes nothing where everything is shown.

        Parameters
        ----------
        why_none : why a value may be none, in words
        below : write it below the label of x, where lines run along the lower edge
        """
        limits = np.sort([axes.get_xlim(), axes.get_ylim()], axis=1)
        n_none = n_not_positive = n_beyond = 0
        for x, y, colour in self._values:
            finite = np.isfinite(x) & np.isfinite(y)
            drawable = finite & _drawable(axes.get_xscale(), x) & _drawable(axes.get_yscale(), y)
            n_none += int(np.count_nonzero(~finite))
            n_not_positive += int(np.count_nonzero(finite & ~drawable))
            n_beyond += _mark(axes, x[drawable], y[drawable], limits, colour)
        n_ends = sum(_n_outside(ends, limits[1]) for ends in self._ends)
        notes = [
            f"{count(n, what)} {why}"
            for n, what, why in (
                (n_none, "value", why_none),
                (n_not_positive, "value", "not above 0, on a logarithmic axis"),
            )
            if n
        ]
        notes = [f"left out: {'; '.join(notes)}"] if notes else []
        if n_beyond:
            notes.append(f"beyond the axes, marked at their edge: {count(n_beyond, 'value')}")
        if n_ends:
            notes.append(f"not shown whole: {count(n_ends, 'end')} of intervals")
        if notes and below:
            axes.set_xlabel("\n".join([axes.get_xlabel(), *notes]))
        elif notes:
            axes.annotate(
                "\n".join(notes), (0.99, 0.01), xycoords="axes fraction", ha="right", va="bottom",
                fontsize=7, color=CAPTION, zorder=9,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            )  # fmt: skip


def _drawable(scale: str, values: Floats) -> Bools:
    return values > 0 if scale == "log" else np.ones(len(values), dtype=np.bool_)


def _mark(axes: Axes, x: Floats, y: Floats, limits: Floats, colour: str) -> int:
    """Put a mark at the edge for each value beyond it; how many there are."""
    (left, right), (bottom, top) = limits
    outside = {
        "<": x < left - NEAR * (right - left),
        ">": x > right + NEAR * (right - left),
        "v": y < bottom - NEAR * (top - bottom),
        "^": y > top + NEAR * (top - bottom),
    }
    for sign, beyond in outside.items():
        if beyond.any():
            axes.plot(
                np.clip(x[beyond], left, right), np.clip(y[beyond], bottom, top), sign, ms=5,
                color=colour, clip_on=False, scalex=False, scaley=False, zorder=8,
            )  # fmt: skip
    return int(np.count_nonzero(np.any(list(outside.values()), axis=0)))


def _n_outside(ends: Floats, limits: Floats) -> int:
    """How many ends of intervals are none, or lie where the axis does not reach."""
    low, high = limits
    near = NEAR * (high - low)
    inside = np.isfinite(ends) & (ends >= low - near) & (ends <= high + near)
    return int(np.count_nonzero(~inside))
