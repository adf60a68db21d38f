"""Accuracy loss over weighted PLS: every measured trial, and the line of each strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.plots.draw_chart import chart_figure
from cprsim.staleness import Metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cprsim.measuring.measure import Measured

PANELS = {"": "equal bytes", "+": "small tables with every sub-save: more bytes"}
ABOUT = (
    "; paper: correlation about 0.88 (recalled). A point is one trial: below 0 the noise of "
    "training is larger than what its failures cost."
)
N_ON_LINE = 50


def staleness_figure(measured: Measured, name: str, metric: Metric = Metric.AUC) -> Figure:
    """Loss over weighted PLS, left at equal bytes, right with the small tables saved more often."""
    correlation = measured.checks(metric).correlation
    y_label = "added log-loss [nats]" if metric == Metric.LOG_LOSS else f"loss of {metric.label}"
    panels = []
    for suffix, title in PANELS.items():
        keys = [
            key
            for key in measured.seen.strategies
            if key == "partial" or key.endswith("+") == bool(suffix)
        ]
        series = tuple(one for key in keys for one in _series(measured, metric, key))
        panels.append(Panel(title, "weighted PLS [portion of samples]", y_label, series))
    about = (
        f"{len(measured.seen.seeds)} seeds; correlation of loss and PLS, partial: "
        f"{correlation.mean:.2f} ± {correlation.standard_error:.2f}{ABOUT}"
    )
    return chart_figure(
        Chart(f"{metric.loss_label} over weighted PLS: {name}", about, tuple(panels))
    )


def _series(measured: Measured, metric: Metric, key: str) -> tuple[Series, Series]:
    lost, loss = measured.points(metric, key)
    slopes, level = measured.fitted[metric].slopes, measured.fitted[metric].parts[key].intercept
    x = np.linspace(0.0, float(lost.max(initial=0.0)), N_ON_LINE)
    half = slopes.half_width(slopes.standard_error(key))
    middle, low, high = (floats(level + (slopes.mean(key) + off) * x) for off in (0.0, -half, half))
    band = (low, high) if key == "partial" else ((), ())
    points = Series(key, floats(lost), floats(loss), kind="points")
    return points, Series(key, floats(x), middle, *band)
