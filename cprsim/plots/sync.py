"""Examples per second and sync gap over trainers: simulated points, the load model as lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from cprsim.plots.axes import log_scale, title_figure
from cprsim.plots.style import series_line, style
from cprsim.sync.load_model import load_model
from cprsim.sync.simulation import SpeedPoint

SECONDS = 3600.0
N_ON_LINE = 200  # points of the load model's line


def sync_figure(curves: Sequence[Sequence[SpeedPoint]], name: str) -> Figure:
    """Left examples per second, right the sync gap, a colour per algorithm."""
    with style():
        figure = Figure(figsize=(9.0, 4.1), layout="constrained")
        speed, gap = figure.subplots(1, 2)
        for number, curve in enumerate(curves):
            colour, marker, dashes = series_line(number)
            look = {"color": colour, "label": curve[0].setting.name}
            n = np.array([point.setting.n_trainers for point in curve])
            on_line = np.unique(np.linspace(1, n.max(), N_ON_LINE).round().astype(int))
            model = [load_model(curve[0].setting.with_trainers(int(x))) for x in on_line]
            eps = np.array([point.simulated.samples_per_h for point in curve]) / SECONDS
            modelled = np.array([one.samples_per_h for one in model]) / SECONDS
            speed.plot(on_line, modelled / 1e3, lw=1.0, color=colour, ls=dashes)
            speed.plot(n, eps / 1e3, marker, ms=5, ls="none", **look)
            gap.plot(on_line, _finite([one.gap for one in model]), lw=1.0, color=colour, ls=dashes)
            gap.plot(n, _finite([point.simulated.gap for point in curve]), marker, ms=5, ls="none",
                     **look)  # fmt: skip
        speed.set_ylabel("thousand examples per second")
        gap.set_ylabel("iterations between synchronisations")
        log_scale(gap, "y")
        for axes in (speed, gap):
            axes.set_xlabel("trainers")
            axes.set_xlim(left=0)
            axes.yaxis.grid(True)
        speed.set_ylim(bottom=0)
        speed.legend(loc="upper left")
        title_figure(
            figure, f"Trainers in step: {name}", "points: simulated; lines: the load model"
        )
    return figure


def _finite(gaps: Sequence[float]) -> list[float]:
    return [gap if np.isfinite(gap) and gap > 0 else float("nan") for gap in gaps]
