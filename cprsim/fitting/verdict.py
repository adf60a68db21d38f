"""What a fit comes to, in three sentences: how often, how sure, and what does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite, sqrt

from cprsim.estimate import ROUNDED_Z_95, Estimate, How
from cprsim.fitting.correlation import WEEK_H
from cprsim.fitting.exposure import node_hours
from cprsim.fitting.fragments import asks_for_correlation, share_of_job
from cprsim.fitting.observation import Source
from cprsim.fitting.trace_fit import TraceFit

FEW_WEEKS = 8  # below, the bunching of failures can't be told
FEW_FAILURES = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """How often a job fails, and what to think of that."""

    mtbf_h: Estimate  # of the job
    sentences: tuple[str, str, str]


def verdict(fitted: TraceFit, n_job: int) -> Verdict:
    """Three sentences on a log.

    The rate is that of the events that strike a job of `n_job` random nodes, while nodes are there.
    Its interval allows for bunching: the variance of a Poisson number times the failures' variance
    over mean per week, where there are `FEW_WEEKS` and it is above 1.
    """
    outages, sizes = fitted.outages, fitted.together.sizes
    watched_h = node_hours(outages) / outages.n_nodes
    n_events = len(sizes)
    rate = n_events * share_of_job(fitted.together, n_job, outages.n_nodes) / watched_h
    bunching = fitted.portrait.weekly_dispersion
    known = isfinite(bunching) and outages.window_h >= FEW_WEEKS * WEEK_H
    wider = max(bunching, 1.0) if known else 1.0
    mtbf_h, error = 1 / rate if rate > 0 else inf, sqrt(wider / n_events)
    low_h, high_h = (mtbf_h * exp(sign * ROUNDED_Z_95 * error) for sign in (-1, 1))
    mtbf = Estimate(mtbf_h, low_h, high_h, n_events, How.NORMAL)
    how_often = (
        f"A job on {n_job} of the {outages.n_nodes} nodes meets a failure every "
        f"{_time(mtbf_h)} on average."
    )
    return Verdict(
        mtbf, (how_often, _how_sure(mtbf, wider, known=known), _what_not(fitted))
    )  # fmt: skip


def _how_sure(mtbf_h: Estimate, wider: float, *, known: bool) -> str:
    few = " few" if mtbf_h.n < FEW_FAILURES else ""
    bunching = (
        f"allowing for failures that bunch ({wider:.2g} times a Poisson variance)"
        if known and wider > 1
        else "as if failures did not bunch"
        + ("" if known else f", which a log under {FEW_WEEKS} weeks can't tell")
    )
    return (
        f"With 95 % it is between {_time(mtbf_h.low)} and {_time(mtbf_h.high)}, "
        f"from{few} {mtbf_h.n} failures, {bunching}."
    )


def _what_not(fitted: TraceFit) -> str:
    wrong = []
    if fitted.trend.differs:
        wrong.append("the rate changes over the log")
    none_fit = [one.name for one in fitted.subjects if one.ranking and one.ranking.none_fits]
    if none_fit:
        wrong.append(f"no family fits the {' and the '.join(none_fit)}")
    if asks_for_correlation(fitted):
        wrong.append("nodes fail together or differ, which one distribution can't say")
    observed = fitted.observation
    guessed = [
        name
        for name, fact in (
            ("nodes", observed.n_nodes), ("begin", observed.begins), ("end", observed.ends)
        )
        if fact.source is Source.INFERRED
    ]  # fmt: skip
    if guessed:
        wrong.append(f"inferred from the failures alone: the observation's {', '.join(guessed)}")
    if not wrong:
        return "Nothing in the log contradicts the fit."
    return f"What does not fit: {'; '.join(wrong)}."


def _time(hours: float) -> str:
    if hours >= 10_000:
        return f"{hours / 8766:.3g} years"
    return f"{hours * 60:.3g} min" if hours < 1 else f"{hours:.3g} h"
