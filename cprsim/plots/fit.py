"""Figures of a fit: survival, hazard, quantiles, failures over time."""

from __future__ import annotations

from functools import partial
from math import ceil, sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.estimate import ROUNDED_Z_95
from cprsim.fitting.goodness import Judged, survival_curve
from cprsim.fitting.lifetimes import Lifetimes
from cprsim.fitting.trace_fit import Subject, TraceFit
from cprsim.plots.axes import title_axes, title_figure
from cprsim.plots.save import Draw
from cprsim.plots.style import FAINT, INK, series_line, style
from cprsim.records import Floats, Ints

# each family looks the same in every figure, whichever were fitted
FAMILIES = ("weibull", "gamma", "lognormal", "piecewise", "exponential")
LINES = {family: series_line(number) for number, family in enumerate(FAMILIES)}
TITLES = {"gaps": "Gaps between failures", "uptimes": "Up-times of nodes", "repairs": "Repairs"}

N_AGES = 200
LEAST_DOT, MOST_DOT = 2.0, 5.0  # points across: smaller where there are many
MOST_VECTORS = 5_000  # failures of an SVG, beyond which it holds them as an image
MOST_STEPS = 400  # of the survival curve
N_QUANTILES = 80  # that are drawn for each family


def fit_figures(fitted: TraceFit) -> dict[str, Draw]:
    """Figures by name: one per kind of times that was fitted, and the failures over time."""
    figures: dict[str, Draw] = {
        subject.name: partial(subject_figure, subject)
        for subject in fitted.subjects
        if subject.ranking is not None
    }
    return {**figures, "failures": partial(nodes_figure, fitted)}


def subject_figure(subject: Subject) -> Figure:
    """Survival with its fits, hazard over age, and quantiles, side by side."""
    if subject.ranking is None:
        raise ValueError(f"{subject.name} were not fitted")
    judged, lifetimes = subject.ranking.judged, subject.lifetimes
    with style():
        figure = Figure(figsize=(10.4, 4.0), layout="constrained")
        for axes, draw in zip(figure.subplots(1, 3), PANELS, strict=True):
            draw(axes, lifetimes, judged)
        censored = lifetimes.n - lifetimes.n_observed
        caption = (
            f"{lifetimes.n_observed:,} ended, {censored:,} censored, {lifetimes.n_zero:,} of zero "
            "left out; bands and bars: 95 %; dots of the hazard: ends over time at risk; a fit "
            "that holds follows the line on the right"
        )
        title_figure(figure, TITLES[subject.name], caption)
    return figure


def nodes_figure(fitted: TraceFit) -> Figure:
    """Each failure as a dot over time, the nodes that fail most on top."""
    outages = fitted.outages.where(fitted.outages.in_window)
    counts = np.bincount(outages.node, minlength=outages.n_nodes)
    place = np.empty(outages.n_nodes, dtype=np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(1, outages.n_nodes + 1)
    with style():
        figure = Figure(figsize=(9, 4.5), layout="constrained")
        axes = figure.subplots()
        n_failed = max(int((counts > 0).sum()), 1)
        size = float(np.clip(80 / sqrt(max(outages.n_outages, 1)), LEAST_DOT, MOST_DOT))
        axes.plot(
            outages.start_h / 24, place[outages.node], "o", markersize=size, color=INK, alpha=0.6,
            markeredgewidth=0, rasterized=outages.n_outages > MOST_VECTORS,
        )  # fmt: skip
        axes.set_xlabel(f"days since the start of the observation ({outages.origin})")
        axes.set_ylabel("node, by number of failures")
        axes.set_ylim(n_failed + 0.5, 0.5)
        never = int((counts == 0).sum())
        caption = (
            f"{outages.n_outages:,} failures; {never:,} of {outages.n_nodes:,} nodes never failed"
        )
        title_axes(axes, "Failures over time", caption)
    return figure


def _survival(axes: Axes, lifetimes: Lifetimes, judged: tuple[Judged, ...]) -> None:
    curve = survival_curve(lifetimes)
    shown = _shown(len(curve.age_h))
    age_h = np.append(curve.age_h[0] / 2, curve.age_h[shown])
    survival = np.append(1.0, curve.survival[shown])
    error = ROUNDED_Z_95 * np.append(0.0, curve.standard_error[shown])
    axes.fill_between(
        age_h, np.clip(survival - error, 0, 1), np.clip(survival + error, 0, 1),
        step="post", color=FAINT, alpha=0.3, linewidth=0,
    )  # fmt: skip
    axes.step(age_h, survival, where="post", color=INK, linewidth=1.2, label="Kaplan-Meier")
    ages_h = _ages(lifetimes)
    for one in judged:
        axes.plot(ages_h, one.fit.distribution.survival(ages_h), **_line(one))
    axes.set_xscale("log")
    axes.set_xlabel("time [h]")
    axes.set_ylabel("share that lasts longer")
    axes.legend(fontsize=7)


def _shown(n_steps: int) -> Ints:
    """Numbers of those steps of a survival curve that are drawn: all, or evenly spread ones."""
    return np.unique(np.linspace(0, n_steps - 1, min(n_steps, MOST_STEPS)).round().astype(np.int64))


def _hazard(axes: Axes, lifetimes: Lifetimes, judged: tuple[Judged, ...]) -> None:
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
    axes.errorbar(
        middle, rate, yerr=half, fmt="o", markersize=3,
        color=INK, elinewidth=0.8, label="ends over time at risk",
    )  # fmt: skip
    ages_h = _ages(lifetimes)
    for one in judged:
        axes.plot(ages_h, one.fit.distribution.hazard_per_h(ages_h), **_line(one))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(rate[rate > 0].min() / 5, rate.max() * 5)
    axes.set_xlabel("age [h]")
    axes.set_ylabel("hazard [1/h]")


def _quantiles(axes: Axes, lifetimes: Lifetimes, judged: tuple[Judged, ...]) -> None:
    """Observed ages over those that each fit expects at the same survival."""
    curve = survival_curve(lifetimes)
    middle = (np.append(1.0, curve.survival[:-1]) + curve.survival) / 2
    shown = slice(None, None, max(1, ceil(len(middle) / N_QUANTILES)))
    for one in judged:
        expected = one.fit.distribution.quantile(1 - middle[shown])
        axes.plot(
            expected, curve.age_h[shown], LINES[one.fit.family].marker, markersize=3.2,
            color=LINES[one.fit.family].colour, markeredgewidth=0, label=one.fit.family,
        )  # fmt: skip
    ends = [curve.age_h[0], curve.age_h[-1]]
    axes.plot(ends, ends, color=INK, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(ends[0] / 3, ends[1] * 3)
    axes.legend(fontsize=7)
    axes.set_xlabel("time expected by the fit [h]")
    axes.set_ylabel("time observed [h]")


def _ages(lifetimes: Lifetimes) -> Floats:
    ends_h = lifetimes.duration_h[lifetimes.observed]
    return np.geomspace(max(ends_h.min() / 2, 1e-6), ends_h.max() * 1.5, N_AGES)


def _line(one: Judged) -> dict[str, Any]:
    family = one.fit.family
    label = f"{family}, AIC {one.fit.aic:.0f}"
    return {
        "color": LINES[family].colour,
        "linestyle": LINES[family].dashes,
        "linewidth": 1.2,
        "label": label,
    }


PANELS = (_survival, _hazard, _quantiles)
