"""Nodes that differ and shocks, fitted to a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.frailty import Frailty, Shocks
from cprsim.failures.outages import Outages
from cprsim.job.distributions import Weibull
from cprsim.job.records import Bools, Floats, Ints
from cprsim.logs.fit.families import WEIBULL, log_mean, nearer
from cprsim.logs.fit.goodness import MOST_FITTED
from cprsim.logs.fit.lifetimes import Lifetimes, uptimes
from cprsim.logs.fit.likelihood import Fit, Likelihood, NotConvergedError, Scale, share
from cprsim.logs.fit.observation import begins_instant, group_sizes

QUICK_UPTIMES = 5_000  # up-times that are quick to fit
KEPT_HAZARDS = 3  # a slope's steps of the frailty alone leave the hazards as they are
UNDECIDED = 1e6  # ratio of an interval's ends, beyond which the log says nothing of the number


Scales = dict[str, Scale]
GAMMA: Scales = {"frailty_shape": exp}
LEMONS: Scales = {"lemon_share": share, "lemon_factor": exp}
# of each form the scales of the frailty's numbers, as the function behind takes them, and a start
_FORMS: dict[str, tuple[Scales, Callable[..., Frailty], tuple[float, ...]]] = {
    "alike": ({}, Frailty, ()),
    "gamma": (GAMMA, lambda shape: Frailty(shape=shape), (0.0,)),
    "lemons": (LEMONS, Frailty, (-2.0, log(3.0))),
    "lemons and gamma": (LEMONS | GAMMA, Frailty, (-2.0, log(3.0), 2.0)),
}


def _unpack(form: str, at: Floats) -> tuple[Weibull, Frailty]:
    """The lifetime and the frailty of a form at search numbers."""
    scales, make, _ = _FORMS[form]
    numbers = [scale(x) for scale, x in zip(scales.values(), at[2:].tolist(), strict=True)]
    return Weibull(exp(at[0]), exp(at[1])), make(*numbers)


def fit_frailty(lifetimes: Lifetimes) -> tuple[Fit, ...]:
    """Weibull lifetimes with nodes alike, gamma factors, and lemons; the best by AIC first.

    Forms whose optimum lies at a border (no frailty), or of whose numbers the log says nothing,
    are left out. Raises NotConvergedError where not even equal nodes can be fitted.
    """
    fits = []
    if (nth := -(-lifetimes.n // MOST_FITTED)) > 1:
        lifetimes = lifetimes.of_units(nth)
    for form in _FORMS:
        try:
            fitted = _fit(form, lifetimes)
        except NotConvergedError:
            if form == "alike":
                raise
            continue
        numbers = [number for number in fitted.parameters if number.name in _FORMS[form][0]]
        if all(number.high < UNDECIDED * number.low for number in numbers):  # else nodes are alike
            fits.append(fitted)
    return tuple(sorted(fits, key=lambda fitted: fitted.aic))


def _fit(form: str, lifetimes: Lifetimes) -> Fit:
    likelihood, (scales, _, start_of_form) = _likelihood(form, lifetimes), _FORMS[form]
    start = np.array([0.0, log_mean(lifetimes), *start_of_form])
    if lifetimes.n >= 2 * QUICK_UPTIMES:  # begin at the maximum of those of every n-th node
        start = nearer(_likelihood(form, lifetimes.of_units(lifetimes.n // QUICK_UPTIMES)), start)
    maximum = likelihood.maximum(start)
    lifetime, frailty = _unpack(form, maximum.point)
    return Fit(
        form, lifetime, maximum.log_likelihood, len(maximum.point), lifetimes.n_observed,
        maximum.parameters({**WEIBULL.scales, **scales}.items()),
        maximum.derived("mean_h", lambda at: _unpack(form, at)[0].mean_h), frailty=frailty,
    )  # fmt: skip


def _likelihood(form: str, lifetimes: Lifetimes) -> Likelihood:
    """Of each node, whose own factor is integrated out."""
    lifetimes, node, n_alike = _distinct(lifetimes)
    order = np.argsort(node, kind="stable")
    lifetimes = lifetimes.where(order)
    firsts = np.searchsorted(node[order], np.arange(node.max() + 1))

    def of_nodes(each_time: Floats) -> Floats:
        return np.asarray(np.add.reduceat(each_time, firsts), dtype=np.float64)

    ended, log_age = lifetimes.observed, np.log(lifetimes.duration_h)
    n_failures = of_nodes(ended.astype(np.float64))
    log_ages = of_nodes(np.where(ended, log_age, 0.0))
    late = np.flatnonzero(lifetimes.entry_h > 0)
    log_entry = np.log(lifetimes.entry_h[late])

    @lru_cache(maxsize=KEPT_HAZARDS)
    def hazards(shape: float, log_scale: float) -> Floats:
        """Cumulative hazard of each node: most of the work of large logs."""
        hazard = log_age - log_scale
        hazard *= shape
        np.exp(hazard, out=hazard)
        hazard[late] -= np.exp(shape * (log_entry - log_scale))
        return of_nodes(hazard)

    def total(at: Floats) -> float:
        lifetime, frailty = _unpack(form, at)
        shape, log_scale = lifetime.shape, log(lifetime.scale_h)
        log_hazards = (shape - 1) * log_ages + n_failures * (log(shape) - shape * log_scale)
        of_frailty = frailty.log_likelihood(n_failures, hazards(shape, log_scale))
        return float(n_alike @ (log_hazards + of_frailty))

    return Likelihood(form, total, int(ended.sum()))


def _distinct(lifetimes: Lifetimes) -> tuple[Lifetimes, Ints, Ints]:
    """One of all nodes with the same single time, as most nodes of a large cluster never fail.

    Returns its times, the number of the node of each, and how many nodes are like each.
    """
    _, node, n_times = np.unique(lifetimes.unit, return_inverse=True, return_counts=True)
    single = np.flatnonzero(n_times[node] == 1)
    columns = np.stack([lifetimes.duration_h, lifetimes.entry_h, lifetimes.observed])[:, single]
    _, first, group = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    stands_for = np.arange(len(n_times))
    stands_for[node[single]] = node[single[first]][group]
    standing, n_alike = np.unique(stands_for, return_counts=True)
    mine = np.isin(node, standing)
    return lifetimes.where(mine), np.searchsorted(standing, node[mine]), n_alike


# -------------------------------------------------------------------------------------- with shocks


@dataclass(frozen=True, slots=True)
class CorrelatedFit:
    """Nodes that differ and shocks, fitted to a trace."""

    forms: tuple[Fit, ...]  # of the single failures' up-times, the best by AIC first
    shocks: Shocks | None
    ages_h: float  # how old nodes became in the log: all, or the mean over those that changed

    @property
    def left_out(self) -> list[str]:
        """Forms of whose numbers the log says nothing."""
        fitted = {form.family for form in self.forms}
        return [form for form in _FORMS if form not in fitted]


def fit_correlated(outages: Outages) -> CorrelatedFit:
    """Fit shocks to the groups of a trace, and nodes that differ, all new at first, to the rest.

    Raises ParameterError where hardly any node failed alone.
    """
    failures = outages.where(outages.in_window)
    single, sizes = _beginning_alone(failures)
    singles = uptimes(failures.where(single))
    if singles.n_observed < 3:
        raise ParameterError(
            f"only {singles.n_observed} nodes failed alone; three are needed to fit their clocks"
        )
    lives = outages.lives
    ages_h = outages.window_h if lives is None else float((lives[2] - lives[0]).mean())
    return CorrelatedFit(fit_frailty(singles), _shocks(sizes, outages), ages_h)


def _beginning_alone(outages: Outages) -> tuple[Bools, Ints]:
    """Which outages begin alone (of other causes all, as they censor), and all groups' sizes."""
    begins = begins_instant(outages.start_h[outages.chosen])
    is_alone = np.ones(outages.n_outages, dtype=bool)
    is_alone[outages.chosen] = begins & np.append(begins[1:], True)
    return is_alone, group_sizes(begins)


def _shocks(sizes: Ints, outages: Outages) -> Shocks | None:
    larger, counts = np.unique(sizes[sizes > 1], return_counts=True)
    if len(larger) == 0:
        return None
    shares = counts / counts.sum()
    rate_per_h = float(counts.sum() / outages.window_h)
    return Shocks(rate_per_h, tuple(larger.tolist()), tuple(shares.tolist()), outages.n_nodes)
