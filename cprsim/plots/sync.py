"""Examples per second and sync gap over trainers: simulated points, the load model as lines."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

import numpy as np
from matplotlib.figure import Figure

from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.plots.draw_chart import chart_figure
from cprsim.sync.load_model import LoadModel, load_model
from cprsim.sync.simulation import SpeedPoint, Throughput

PER_SECOND = 3.6e6  # of thousands, for one per hour
N_ON_LINE = 200  # points of the load model's line


def sync_figure(curves: Sequence[Sequence[SpeedPoint]], name: str) -> Figure:
    """Left examples per second, right the sync gap, a colour per algorithm."""
    speed: list[Series] = []
    gap: list[Series] = []
    for curve in curves:
        setting = curve[0].setting
        n = floats(point.setting.n_trainers for point in curve)
        counts = np.unique(np.linspace(1, max(n), N_ON_LINE).round().astype(int))
        model = [load_model(setting.with_trainers(int(x))) for x in counts]
        fine = np.linspace(1, max(n), N_ON_LINE)
        for panel, height in ((speed, _thousand_per_second), (gap, _gap)):
            line = np.interp(fine, counts, [height(one) for one in model])
            points = floats(height(point.simulated) for point in curve)
            panel.append(Series(setting.name, floats(fine), floats(line)))
            panel.append(Series(setting.name, n, points, kind="points"))
    panels = (
        Panel("Throughput", "trainers", "thousand examples per second", tuple(speed)),
        Panel(
            "Sync gap", "trainers", "iterations between synchronisations", tuple(gap), y_log=True
        ),
    )
    subtitle = "points: simulated; lines: the load model"
    return chart_figure(Chart(f"Throughput and sync gap over trainers: {name}", subtitle, panels))


def _thousand_per_second(one: LoadModel | Throughput) -> float:
    return one.samples_per_h / PER_SECOND


def _gap(one: LoadModel | Throughput) -> float:
    return one.gap if 0 < one.gap < inf else nan
