"""Examples per second and sync gap over trainers: simulated points, the load model as lines."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

import numpy as np
from matplotlib.figure import Figure

from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.plots.draw_chart import chart_figure
from cprsim.sync.load_model import load_model
from cprsim.sync.simulation import SpeedPoint

PER_SECOND = 3.6e6  # of thousands, for one per hour
N_ON_LINE = 200  # points of the load model's line


def sync_figure(curves: Sequence[Sequence[SpeedPoint]], name: str) -> Figure:
    """Left examples per second, right the sync gap, a colour per algorithm."""
    speed, gap = [], []
    for curve in curves:
        setting = curve[0].setting
        n = floats(point.setting.n_trainers for point in curve)
        counts = np.unique(np.linspace(1, max(n), N_ON_LINE).round().astype(int))
        model = [load_model(setting.with_trainers(int(x))) for x in counts]
        simulated = [point.simulated for point in curve]
        fine = np.linspace(1, max(n), N_ON_LINE)
        for panel, modelled, points in (
            (
                speed,
                [one.samples_per_h / PER_SECOND for one in model],
                [one.samples_per_h / PER_SECOND for one in simulated],
            ),
            (gap, [_finite(one.gap) for one in model], [_finite(one.gap) for one in simulated]),
        ):
            line = np.interp(fine, counts, modelled)
            panel.append(Series(setting.name, floats(fine), floats(line)))
            panel.append(Series(setting.name, n, floats(points), kind="points"))
    panels = (
        Panel("Throughput", "trainers", "thousand examples per second", tuple(speed)),
        Panel(
            "Sync gap", "trainers", "iterations between synchronisations", tuple(gap), y_log=True
        ),
    )
    subtitle = "points: simulated; lines: the load model"
    return chart_figure(Chart(f"Trainers in step: {name}", subtitle, panels))


def _finite(gap: float) -> float:
    return gap if 0 < gap < inf else nan
