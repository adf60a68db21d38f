"""Figures of a fit: survival, hazard, quantiles, failures over time."""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
from matplotlib.figure import Figure

from cprsim.job.records import ROUNDED_Z_95
from cprsim.logs.fit.goodness import FittedQuantity, survival_curve
from cprsim.logs.fit.lifetimes import Lifetimes
from cprsim.logs.fit.likelihood import Fit
from cprsim.logs.fit.report import Fitted
from cprsim.pages.chart import Chart, Panel, Series, chart_figure, floats

N_AGES = 200
MOST_STEPS = 400  # of the survival curve
N_QUANTILES = 80  # that are drawn for each family


def subject_figure(subject: FittedQuantity, title: str) -> Figure:
    """Survival with its fits, hazard over age, and quantiles, side by side."""
    assert subject.ranking is not None  # nothing to draw else
    judged, lifetimes = subject.ranking.judged, subject.lifetimes
    censored = lifetimes.n - lifetimes.n_observed
    caption = (
        f"{lifetimes.n_observed:,} ended, {censored:,} censored, {lifetimes.n_zero:,} of zero "
        "left out; bands and bars: 95 %; a good fit "
        "follows the line of the quantiles"
    )
    panels = tuple(make(lifetimes, judged) for make in (_survival, _hazard, _quantiles))
    return chart_figure(Chart(title, caption, panels))


def nodes_figure(fitted: Fitted) -> Figure:
    """Each failure as a dot over time, the nodes that fail most on top."""
    outages = fitted.outages.where(fitted.outages.in_window)
    counts = np.bincount(outages.node, minlength=outages.n_nodes)
    order = np.argsort(-counts, kind="stable")
    rank = np.argsort(order)  # from 0
    never = int((counts == 0).sum())
    names = [*outages.node_names, *map(str, range(len(outages.node_names), outages.n_nodes))]
    days, places = floats(outages.start_h / 24), floats(rank[outages.node])
    panel = Panel(
        "", "time since the start of the observation [days]", "node, by its number of failures",
        (Series("failure", days, places, kind="points"),),
        y_names=tuple(names[node] for node in order[: max(outages.n_nodes - never, 1)]),
    )  # fmt: skip
    caption = (
        f"{outages.n_outages:,} failures; {never:,} of {outages.n_nodes:,} nodes never failed; "
        f"the observation starts at {outages.origin}"
    )
    return chart_figure(Chart("Failures of each node over time", caption, (panel,)))


def _survival(lifetimes: Lifetimes, judged: tuple[Fit, ...]) -> Panel:
    curve = survival_curve(lifetimes)
    n_steps = len(curve.age_h)
    steps = np.unique(np.linspace(0, n_steps - 1, min(n_steps, MOST_STEPS)).round().astype(int))
    age_h = np.append(curve.age_h[0] / 2, curve.age_h[steps])
    survival = np.append(1.0, curve.survival[steps])
    error = ROUNDED_Z_95 * np.append(0.0, curve.standard_error[steps])
    low, high = (floats(np.clip(survival + sign * error, 0, 1)) for sign in (-1, 1))
    observed = Series("Kaplan-Meier", floats(age_h), floats(survival), low, high, kind="steps")
    fits = _lines(lifetimes, judged, "survival")
    return Panel(
        "Survival", "time [h]", "share that lasts longer", (observed, *fits), x_log=True,
        y_range=(0.0, 1.0),
    )  # fmt: skip


def _hazard(lifetimes: Lifetimes, judged: tuple[Fit, ...]) -> Panel:
    """Fitted hazards, and ends over time at risk between quantiles of the ages."""
    ends_h = np.sort(lifetimes.duration_h[lifetimes.observed])
    n_bins = int(np.clip(sqrt(len(ends_h)) / 2, 2, 20))
    borders = np.unique(np.append(0.0, np.quantile(ends_h, np.linspace(0, 1, n_bins + 1)[1:])))
    # ages that differ by rounding alone have no time between them
    borders = borders[np.append(np.diff(borders) > 1e-9 * borders[1:], True)]
    n_ends = np.histogram(ends_h, borders)[0]
    rate = n_ends / lifetimes.at_risk_h(borders)
    middle = np.sqrt(np.maximum(borders[:-1], ends_h[0] / 2) * borders[1:])
    half = ROUNDED_Z_95 * rate / np.sqrt(np.maximum(n_ends, 1))
    low, high = floats(rate - half), floats(rate + half)
    label = "ends over time at risk"
    observed = Series(label, floats(middle), floats(rate), low, high, kind="points")
    fits = _lines(lifetimes, judged, "hazard_per_h")
    y_range = float(rate[rate > 0].min() / 5), float(rate.max() * 5)
    series = (observed, *fits)
    return Panel(
        "Hazard", "age [h]", "hazard [1/h]", series, x_log=True, y_log=True, y_range=y_range
    )


def _quantiles(lifetimes: Lifetimes, judged: tuple[Fit, ...]) -> Panel:
    """Observed ages over those that each fit expects at the same survival."""
    curve = survival_curve(lifetimes)
    middle = (curve.before + curve.survival) / 2
    thinned = slice(None, None, max(1, ceil(len(middle) / N_QUANTILES)))
    ends = floats((curve.age_h[0], curve.age_h[-1]))
    fits = (
        Series(
            _label(fit), floats(fit.distribution.quantile(1 - middle[thinned])),
            floats(curve.age_h[thinned]), kind="points",
        )
        for fit in judged
    )  # fmt: skip
    return Panel(
        "Quantiles", "time expected by the fit [h]", "time observed [h]",
        (Series("as expected", ends, ends), *fits), x_log=True, y_log=True,
        x_range=(ends[0] / 3, ends[1] * 3),
    )  # fmt: skip


def _lines(lifetimes: Lifetimes, judged: tuple[Fit, ...], height: str) -> list[Series]:
    """A line for each fitted distribution, over the observed ages and a margin."""
    ends_h = lifetimes.duration_h[lifetimes.observed]
    ages_h = np.geomspace(max(ends_h.min() / 2, 1e-6), ends_h.max() * 1.5, N_AGES)
    return [
        Series(_label(fit), floats(ages_h), floats(getattr(fit.distribution, height)(ages_h)))
        for fit in judged
    ]


def _label(fit: Fit) -> str:
    return f"{fit.family}, AIC {fit.aic:.0f}"
