"""Groups of nodes, such as batches and models: a fit for each, and the ratios of their hazards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp

import numpy as np

from cprsim.errors import ParameterError
from cprsim.estimate import ROUNDED_Z_95, Estimate, How
from cprsim.failures.outages import NodeGroups, Outages
from cprsim.fitting.families import WEIBULL, Fit, fit
from cprsim.fitting.fragments import fragment
from cprsim.fitting.lifetimes import FirstUptime, Lifetimes, uptimes
from cprsim.fitting.likelihood import NotConvergedError
from cprsim.fitting.observation import Fact, Observation, Source, n_failures, node_hours
from cprsim.fitting.trace_fit import TraceFit, fit_trace
from cprsim.foreign import one_line
from cprsim.records import Bools, Floats, Ints

FEWEST = 5  # failures of a group that is shown by itself
MOST_GROUPS = 24
OTHER = "(other groups)"
STEPS, FLAT = 50, 1e-9  # of Newton's search


@dataclass(frozen=True, slots=True)
class OfGroup:
    """What the nodes of one group do."""

    name: str
    outages: Outages
    n_failures: int
    rate_per_h: Estimate  # of a node, per hour that it was there
    uptimes: Fit | None  # Weibull; None where it can't be fitted
    why_not: str
    ratio: Estimate | None  # hazard over that of the first group; None for that one

    @property
    def n_nodes(self) -> int:
        return self.outages.n_nodes

    def fragment(self, origin: str, column: str, observed: Observation, first: FirstUptime) -> str:
        """The section `failures` of a job on the nodes of this group."""
        its = Fact(self.n_nodes, Source.READ, f"those of {column} {self.name}")
        observed = replace(observed, n_nodes=its)
        try:
            fitted = fit_trace(self.outages, first=first, n_bootstrap=0, observed=observed)
            written = fragment(fitted, origin)
        except ParameterError as error:
            return f"# {one_line(column)} {one_line(self.name)}: no fragment: {error}\n"
        return (
            f"# {one_line(column)} {one_line(self.name)}: its {self.n_nodes} nodes alone\n{written}"
        )


@dataclass(frozen=True, slots=True)
class ByGroup:
    """The groups of a log, with a fragment for each."""

    column: str
    groups: tuple[OfGroup, ...]
    fragments: tuple[str, ...]
    n_nodes_apart: int  # of which nothing is said

    @classmethod
    def of(cls, fitted: TraceFit, groups: NodeGroups, first: FirstUptime, origin: str) -> ByGroup:
        """Fit the groups of a fitted log and write the fragments; errors as `by_group`."""
        found = by_group(fitted.outages, groups, first)
        written = tuple(
            one.fragment(origin, groups.column, fitted.observation, first) for one in found
        )
        return cls(groups.column, found, written, int((groups.code < 0).sum()))


def by_group(
    outages: Outages, groups: NodeGroups, first: FirstUptime = FirstUptime.NEW
) -> tuple[OfGroup, ...]:
    """The groups of a log's nodes, that with the most failures first; the others beside it.

    Groups with fewer than `FEWEST` failures, and those beyond `MOST_GROUPS`, are one together.
    Nodes of which nothing is said are left out.

    Raises
    ------
    ParameterError
        where there are no two groups with `FEWEST` failures.
    """
    code, names = _grouped(outages, groups)
    times = uptimes(outages, first)
    of_time = code[times.unit]
    known = times.where(of_time >= 0)
    ratios = hazard_ratios(known, of_time[of_time >= 0], len(names))
    return tuple(
        _of_group(outages.of_nodes(code == number), name, ratio, first)
        for number, (name, ratio) in enumerate(zip(names, (None, *ratios), strict=True))
    )


def _grouped(outages: Outages, groups: NodeGroups) -> tuple[Ints, list[str]]:
    """The group of each node (n_nodes,), -1 for none, and their names, rare groups as one."""
    counted = groups.code[outages.node[outages.in_window & outages.chosen]]
    counts = np.bincount(counted[counted >= 0], minlength=len(groups.names))
    order = np.argsort(-counts, kind="stable")
    kept = [one for one in order[:MOST_GROUPS].tolist() if counts[one] >= FEWEST]
    if len(kept) < 2:
        raise ParameterError(
            f"--by {groups.column}: {len(kept)} group(s) with {FEWEST} failures; two are needed"
        )
    place = np.full(len(groups.names) + 1, len(kept), dtype=np.int64)
    place[kept], place[-1] = np.arange(len(kept)), -1
    code = place[groups.code]
    rest = [OTHER] if (code == len(kept)).any() else []
    return code, [*(groups.names[one] for one in kept), *rest]


def _of_group(outages: Outages, name: str, ratio: Estimate | None, first: FirstUptime) -> OfGroup:
    n, hours = n_failures(outages), node_hours(outages)
    seen = Estimate.of_count(n)
    rate = Estimate(n / hours, seen.low / hours, seen.high / hours, n, seen.how)
    try:
        fitted, why_not = fit(WEIBULL, uptimes(outages, first)), ""
    except (ParameterError, NotConvergedError) as error:
        fitted, why_not = None, str(error)
    return OfGroup(name, outages, n, rate, fitted, why_not, ratio)


# ------------------------------------------------------------------------------ ratios of hazards


def hazard_ratios(times: Lifetimes, group: Ints, n_groups: int) -> list[Estimate | None]:
    """Hazard of each group but the first over that of the first, whatever its course over age.

    Cox's partial likelihood with Breslow's ties; intervals from the sandwich with the scores of
    each node as one, as times of a node resemble each other (Lin & Wei 1989).

    Parameters
    ----------
    times : up-times
    group : (n,) number of the group of each, from 0
    n_groups : how many there are

    Returns
    -------
    (n_groups - 1,) ratios; None for a group, or all, without a failure
    """
    risk = _Risk.of(times, group, n_groups)
    free = np.flatnonzero(risk.n_ended.sum(axis=0) > 0)
    if 0 not in free:
        return [None] * (n_groups - 1)
    at, curvature = _maximum(risk, free[1:])
    scores = _scores(risk, times, group, at)[:, free[1:]]
    _, unit = np.unique(times.unit, return_inverse=True)
    of_unit = np.stack([np.bincount(unit, weights=column) for column in scores.T])
    inverse = np.linalg.pinv(curvature)
    few = of_unit.shape[1] / max(of_unit.shape[1] - 1, 1)
    errors = np.sqrt(np.diag(few * inverse @ (of_unit @ of_unit.T) @ inverse))
    found: dict[int, Estimate] = {
        int(number): _ratio(float(at[number]), float(error), times.n_observed)
        for number, error in zip(free[1:], errors, strict=True)
    }
    return [found.get(number) for number in range(1, n_groups)]


def _ratio(log_ratio: float, error: float, n: int) -> Estimate:
    low, high = (exp(log_ratio + sign * ROUNDED_Z_95 * error) for sign in (-1, 1))
    return Estimate(exp(log_ratio), low, high, n, How.LIKELIHOOD)


@dataclass(frozen=True, slots=True)
class _Risk:
    """Who was at risk, and who failed, at each age at which one did."""

    age_h: Floats  # (n_ages,)
    n_ended: Ints  # (n_ages, n_groups)
    at_risk: Ints  # (n_ages, n_groups)

    @classmethod
    def of(cls, times: Lifetimes, group: Ints, n_groups: int) -> _Risk:
        ages = np.unique(times.duration_h[times.observed])
        ended, risk = [], []
        for number in range(n_groups):
            in_group: Bools = group == number
            lasts = times.duration_h[in_group & times.observed]
            ended.append(np.bincount(np.searchsorted(ages, lasts), minlength=len(ages)))
            entered = np.searchsorted(np.sort(times.entry_h[in_group]), ages, side="left")
            left = np.searchsorted(np.sort(times.duration_h[in_group]), ages, side="left")
            risk.append(entered - left)
        return cls(ages, np.stack(ended, axis=1), np.stack(risk, axis=1))

    def shares(self, at: Floats) -> tuple[Floats, Floats]:
        """Each group's share of the hazard (n_ages, n_groups), and all of it (n_ages,)."""
        weighted = self.at_risk * np.exp(at)
        total = weighted.sum(axis=1)
        return weighted / total[:, None], total


def _maximum(risk: _Risk, free: Ints) -> tuple[Floats, Floats]:
    """Logarithms of the ratios (n_groups,), and the information of the free ones."""
    at = np.zeros(risk.n_ended.shape[1])
    ended = risk.n_ended.sum(axis=1)
    information = np.zeros((len(free), len(free)))
    for _ in range(STEPS):
        share = risk.shares(at)[0][:, free]
        slope = risk.n_ended[:, free].sum(axis=0) - ended @ share
        information = np.diag(ended @ share) - share.T @ (share * ended[:, None])
        step = np.clip(np.linalg.pinv(information) @ slope, -1.0, 1.0)
        at[free] += step
        if np.abs(step).max(initial=0.0) < FLAT:
            break
    return at, information


def _scores(risk: _Risk, times: Lifetimes, group: Ints, at: Floats) -> Floats:
    """What each time adds to the slope of the likelihood, (n, n_groups)."""
    share, total = risk.shares(at)
    hazard = risk.n_ended.sum(axis=1) / total
    zero = np.zeros((1, share.shape[1]))
    of_all = np.append(0.0, np.cumsum(hazard))
    of_each = np.concatenate([zero, np.cumsum(hazard[:, None] * share, axis=0)])
    until = np.searchsorted(risk.age_h, times.duration_h, side="right")
    since = np.searchsorted(risk.age_h, times.entry_h, side="right")
    mine = np.eye(share.shape[1])[group]
    lived = mine * (of_all[until] - of_all[since])[:, None] - (of_each[until] - of_each[since])
    scores = -np.exp(at[group])[:, None] * lived
    ends = np.flatnonzero(times.observed)
    scores[ends] += mine[ends] - share[until[ends] - 1]
    return np.asarray(scores, dtype=np.float64)
