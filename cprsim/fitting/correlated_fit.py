"""Nodes that differ and shocks, fitted to a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, inf, log, sqrt

import numpy as np
from scipy import special

from cprsim.errors import ParameterError
from cprsim.failures.correlated import CorrelatedNodes, Shocks
from cprsim.failures.distributions import Weibull
from cprsim.failures.frailty import ALIKE, Frailty, GammaFrailty, Lemons
from cprsim.failures.outages import Outages
from cprsim.failures.sources import Start
from cprsim.fitting.correlation import begins_instant, group_sizes
from cprsim.fitting.lifetimes import FirstUptime, Lifetimes, uptimes
from cprsim.fitting.likelihood import NotConvergedError, Parameter, covariances, maximum
from cprsim.records import Bools, Duration, Floats, Ints

FEW = 5_000  # up-times that are quick to fit
KEPT_HAZARDS = 3  # a slope's steps of the frailty alone leave the hazards as they are
MOST_FITTED = 200_000  # up-times that are fitted; of more, those of every n-th node


@dataclass(frozen=True, slots=True)
class FrailtyFit:
    """Weibull lifetimes of nodes that may differ."""

    name: str  # alike, gamma, lemons, or lemons and gamma
    lifetime: Weibull  # of a node with the factor 1
    frailty: Frailty
    log_likelihood: float
    parameters: tuple[Parameter, ...]  # shape, scale_h, then those of the frailty
    lemon_scale_h: Parameter | None = None  # of a lemon's lifetime, where there are lemons
    fitted_every: int = 1  # fitted to every n-th of the nodes alone

    @property
    def aic(self) -> float:
        """Akaike's criterion: smaller is better."""
        return 2 * len(self.parameters) - 2 * self.log_likelihood

    def extrapolates(self, window_h: float) -> bool:
        """Whether the mean lies beyond what a log of so many hours watched."""
        return self.lifetime.mean_h > window_h

    def by_lemons(self) -> FrailtyFit | None:
        """The same fit, said so that lemons have the factor 1; None where there are none.

        A few failures of the other nodes leave their mean open to any height; that of the lemons
        is then the one that the log knows.
        """
        if not isinstance(self.frailty, Lemons) or self.lemon_scale_h is None:
            return None
        shape, _, logit, factor, *others = self.parameters
        frailty = Lemons(1 - self.frailty.share, 1 / self.frailty.factor, self.frailty.others)
        odds = replace(logit, mean=-logit.mean, low=-logit.high, high=-logit.low)
        inverse = 1 / factor.mean
        smaller = replace(
            factor,
            mean=inverse,
            standard_error=factor.standard_error * inverse**2,
            low=1 / factor.high,
            high=1 / factor.low if factor.low > 0 else inf,
            clustered_error=factor.clustered_error * inverse**2,
        )
        return replace(
            self,
            lifetime=Weibull(self.lifetime.shape, self.lemon_scale_h.mean),
            frailty=frailty,
            parameters=(shape, self.lemon_scale_h, odds, smaller, *others),
            lemon_scale_h=None,
        )


@dataclass(frozen=True, slots=True)
class _Form:
    name: str
    parameters: tuple[str, ...]
    is_logarithm: tuple[bool, ...]
    make: Callable[[Floats], Frailty]
    start: tuple[float, ...]


_FORMS = (
    _Form("alike", (), (), lambda at: ALIKE, ()),
    _Form("gamma", ("frailty_shape",), (True,), lambda at: GammaFrailty(exp(at[0])), (0.0,)),
    _Form(
        "lemons",
        ("lemon_logit", "lemon_factor"),
        (False, True),
        lambda at: Lemons(float(special.expit(at[0])), exp(at[1])),
        (-2.0, log(3.0)),
    ),
    _Form(
        "lemons and gamma",
        ("lemon_logit", "lemon_factor", "frailty_shape"),
        (False, True, True),
        lambda at: Lemons(float(special.expit(at[0])), exp(at[1]), GammaFrailty(exp(at[2]))),
        (-2.0, log(3.0), 2.0),
    ),
)


def fit_frailty(lifetimes: Lifetimes) -> tuple[FrailtyFit, ...]:
    """Weibull lifetimes with nodes alike, gamma factors, and lemons; the best by AIC first.

    Of more than `MOST_FITTED` times, those of every n-th node are fitted.

    Raises NotConvergedError where not even equal nodes can be fitted. Forms that don't converge are
    left out.
    """
    fits = []
    fitted_every = -(-lifetimes.n // MOST_FITTED)
    if fitted_every > 1:
        lifetimes = lifetimes.of_units(fitted_every)
    for form in _FORMS:
        try:
            fits.append(replace(_fit(form, lifetimes), fitted_every=fitted_every))
        except NotConvergedError:
            if form.name == "alike":
                raise
    return tuple(sorted(fits, key=lambda one: one.aic))


def _near(form: _Form, lifetimes: Lifetimes) -> Floats | None:
    """Where to begin: for many times, at the maximum of those of every n-th node."""
    if lifetimes.n < 2 * FEW:
        return None
    some = lifetimes.of_units(lifetimes.n // FEW)
    try:
        each, _ = _likelihood(form, some)
        start = np.array([0.0, log(some.total_h / some.n_observed), *form.start])
        return maximum(form.name, each, start, some.n_observed)
    except (NotConvergedError, ZeroDivisionError, ValueError):
        return None


def _fit(form: _Form, lifetimes: Lifetimes) -> FrailtyFit:
    each, unpack = _likelihood(form, lifetimes)
    mean = log(lifetimes.total_h / lifetimes.n_observed)
    start = _near(form, lifetimes)
    start = np.array([0.0, mean, *form.start]) if start is None else start
    point = maximum(form.name, each, start, lifetimes.n_observed)
    there = each(point)
    covariance, _ = covariances(form.name, each, point, there=there)
    errors = np.sqrt(np.diag(covariance))
    names = ("shape", "scale_h", *form.parameters)
    logarithms = (True, True, *form.is_logarithm)
    lifetime, frailty = unpack(point)
    return FrailtyFit(
        form.name,
        lifetime,
        frailty,
        float(there.sum()),
        tuple(
            # nodes are the units already: both errors are the same
            Parameter.of_search(name, float(at), float(error), float(error), logarithm=is_log)
            for name, at, error, is_log in zip(names, point, errors, logarithms, strict=True)
        ),
        _lemon_scale(point, covariance) if isinstance(frailty, Lemons) else None,
    )


def _lemon_scale(point: Floats, covariance: Floats) -> Parameter:
    """Scale [h] of a lemon's lifetime, ``scale * factor**(-1 / shape)``, by the delta method."""
    shape, log_factor = exp(point[0]), float(point[3])
    at = float(point[1]) - log_factor / shape
    slope = np.zeros(len(point))
    slope[[0, 1, 3]] = log_factor / shape, 1.0, -1 / shape
    error = sqrt(max(float(slope @ covariance @ slope), 0.0))
    return Parameter.of_search("scale_h", at, error, error, logarithm=True)


def _likelihood(
    form: _Form, lifetimes: Lifetimes
) -> tuple[Callable[[Floats], Floats], Callable[[Floats], tuple[Weibull, Frailty]]]:
    """Log-likelihood of each node from the search numbers, and what the numbers mean."""
    lifetimes, node, stands_for = _distinct(lifetimes)
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

    def unpack(at: Floats) -> tuple[Weibull, Frailty]:
        return Weibull(exp(at[0]), exp(at[1])), form.make(at[2:])

    @lru_cache(maxsize=KEPT_HAZARDS)
    def hazards(shape: float, log_scale: float) -> Floats:
        """Cumulative hazard of each node: most of the work of large logs."""
        hazard = log_age - log_scale
        hazard *= shape
        np.exp(hazard, out=hazard)
        hazard[late] -= np.exp(shape * (log_entry - log_scale))
        return of_nodes(hazard)

    def each(at: Floats) -> Floats:
        lifetime, frailty = unpack(at)
        shape, log_scale = lifetime.shape, log(lifetime.scale_h)
        log_hazards = (shape - 1) * log_ages + n_failures * (log(shape) - shape * log_scale)
        of_frailty = frailty.log_likelihood(n_failures, hazards(shape, log_scale))
        return (log_hazards + of_frailty)[stands_for]

    return each, unpack


def _distinct(lifetimes: Lifetimes) -> tuple[Lifetimes, Ints, Ints]:
    """Of nodes with a single time, equal in all that a likelihood looks at, one for all of them.

    Most nodes of a large cluster never fail: they need not be reckoned one by one.

    Returns the times that are left; (n,) number of the node of each; (n_nodes,) which of these
    numbers stands for each of all nodes.
    """
    _, node, n_times = np.unique(lifetimes.unit, return_inverse=True, return_counts=True)
    alone = np.flatnonzero(n_times[node] == 1)
    seen = np.stack([lifetimes.duration_h, lifetimes.entry_h, lifetimes.observed])[:, alone]
    _, first, alike = np.unique(seen, axis=1, return_index=True, return_inverse=True)
    stands_for = np.arange(len(n_times))
    stands_for[node[alone]] = node[alone[first]][alike]
    kept, number = np.unique(stands_for, return_inverse=True)
    mine = np.isin(node, kept)
    return lifetimes.where(mine), np.searchsorted(kept, node[mine]), number


# -------------------------------------------------------------------------------------- with shocks


@dataclass(frozen=True, slots=True)
class CorrelatedFit:
    """Nodes that differ and shocks, fitted to a trace."""

    forms: tuple[FrailtyFit, ...]  # of the single failures' up-times, the best by AIC first
    shocks: Shocks | None
    watched_h: float  # length of the log
    n_nodes: int
    hours_per_failure: float  # time that nodes were watched, for each failure of a single one [h]
    # of nodes that join and leave: when each was new, entered, left [h], (n_nodes,) each
    lives: tuple[Floats, Floats, Floats] | None = None

    @property
    def ages_h(self) -> float:
        """How old nodes became in the log [h]: that of all, or the mean over those that changed."""
        return (
            self.watched_h if self.lives is None else float((self.lives[2] - self.lives[0]).mean())
        )

    def source(self, *, watched: bool = True, repair: Duration | None = None) -> CorrelatedNodes:
        """The source that this fit describes."""
        best = self.forms[0]
        return CorrelatedNodes(
            lifetime=best.lifetime,
            frailty=best.frailty,
            shocks=self.shocks,
            start=Start.FRESH,
            watched_h=self.ages_h if watched else 0.0,
            repair=repair,
        )


def fit_correlated(outages: Outages) -> CorrelatedFit:
    """Fit shocks to the groups of a trace, and nodes that differ to its single failures.

    Every node counts as new when the log begins: that describes the time that was watched, and
    lets `CorrelatedFit.source` place a job into it. Repairs are part of no clock.

    Raises ParameterError where hardly any node failed alone.
    """
    failures = outages.where(outages.in_window)
    single, sizes = _alone(failures)
    singles = uptimes(failures.where(single), FirstUptime.NEW)
    if singles.n_observed < 3:
        raise ParameterError(
            f"only {singles.n_observed} nodes failed alone; three are needed to fit their clocks"
        )
    return CorrelatedFit(
        fit_frailty(singles),
        _shocks(sizes, outages),
        outages.window_h,
        outages.n_nodes,
        singles.hours_per_end,
        outages.lives,
    )


def _alone(outages: Outages) -> tuple[Bools, Ints]:
    """Which outages begin at an instant of their own, (n_outages,), and all groups' sizes.

    Outages of other causes than the chosen one are in no group: they stay, as they censor.
    """
    begins = begins_instant(outages.start_h[outages.chosen])
    alone = np.ones(outages.n_outages, dtype=bool)
    alone[outages.chosen] = begins & np.append(begins[1:], True)
    return alone, group_sizes(begins)


def _shocks(sizes: np.ndarray, outages: Outages) -> Shocks | None:
    larger, counts = np.unique(sizes[sizes > 1], return_counts=True)
    if len(larger) == 0:
        return None
    shares = counts / counts.sum()
    rate_per_h = float(counts.sum() / outages.window_h)
    return Shocks(rate_per_h, tuple(larger.tolist()), tuple(shares.tolist()), outages.n_nodes)
