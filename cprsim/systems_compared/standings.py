"""How the systems stand: cheapest first, each against the best of those that lose nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan

import numpy as np

from cprsim.estimate import Estimate
from cprsim.prices import ACCURACY
from cprsim.records import Floats
from cprsim.recovery.policy import Policy
from cprsim.results.metrics import FINISHED
from cprsim.results.money import Bills
from cprsim.systems_compared.best import FOUND
from cprsim.systems_compared.folder import Beside, Comparison

BEST, MORE, LESS, TIED = "best", "more", "less", "can't be told"
UNFINISHED, NO_BEST = "unfinished", "no best"
KEPT, WITHIN, UNPRICED = "kept", "within the limit", "not priced"
ELIGIBLE = (KEPT, WITHIN)  # to be the best
ROUNDING = 1e-11  # of a job: where hours come about in another order


@dataclass(frozen=True, slots=True)
class Standing:
    """One system of a comparison.

    Parameters
    ----------
    more : its overhead less that of the best, paired by replication, with its 95 % interval; None
        for the best itself, and where not all jobs finish
    verdict : `best`; `more` or `less` where the interval of `more` lies above or below 0; `can't
        be told` where it holds 0; `unfinished`; `no best`: there is none that keeps accuracy
    than_today : the same against how the job runs now; None for that itself, and where not all
        jobs of both finish
    accuracy : `kept`; `not priced`: it loses some, and nothing says how much; `priced`: see
        `auc_loss`; `within the limit`: what is limited is not AUC
    """

    policy: Policy
    beside: Beside
    summary: Mapping[str, Estimate]  # by quantity
    more: Estimate | None
    verdict: str
    accuracy: str
    than_today: Estimate | None = None

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def may_be_best(self) -> bool:
        """Whether accuracy is kept and all of its costs are known."""
        return may_be_best(self.accuracy, self.beside.unknown)

    @property
    def overhead(self) -> Estimate:
        return self.summary["overhead_fraction"]

    def part(self, name: str) -> float:
        """A part of its overhead, as a share of useful time; 0 for one that it does not have."""
        spread = self.summary.get(name)
        return 0.0 if spread is None or isnan(spread.mean) else spread.mean

    @property
    def finishes(self) -> bool:
        """Whether all replications do, or do some work up to the horizon."""
        return isfinite(self.overhead.mean)


def standings(comparison: Comparison) -> list[Standing]:
    """All systems, the cheapest first; those that do not finish last.

    The best is the cheapest of those whose accuracy is kept, or that keep the limit: what a system
    loses that nothing prices can't be weighed against hours. Nor is it one with a cost that no
    source has a figure for: its overhead is that at least.
    """
    result = comparison.result
    spreads, overheads = result.spreads(), _overheads(comparison)
    accuracy = {
        name: accuracy_of(
            one.stale,
            one.not_counted,
            one.how,
            limited=comparison.limit is not None,
            priced=not isnan(spreads[name]["auc_loss"].mean),
        )
        for name, one in comparison.beside.items()
    }
    able = [
        name for name, one in comparison.beside.items() if may_be_best(accuracy[name], one.unknown)
    ]
    able.sort(key=lambda name: not comparison.beside[name].runs_as)  # of those that are alike
    best = _best(spreads, able)
    today = comparison.today
    if today and not _finishes(spreads[today]):
        today = ""
    found = [
        Standing(
            policy,
            comparison.beside[policy.name],
            spreads[policy.name],
            *against(overheads, policy.name, best, finishes=_finishes(spreads[policy.name])),
            accuracy[policy.name],
            paired(overheads[policy.name], overheads[today])
            if today not in ("", policy.name) and _finishes(spreads[policy.name])
            else None,
        )
        for policy in result.policies
    ]
    return sorted(found, key=_place)


def bills_that_count(found: Sequence[Standing], bills: Bills) -> Bills:
    """The bills of the systems that keep accuracy, or whose loss of it has a price."""
    by_name = {one.name: one for one in found}
    return {
        name: bill
        for name, bill in bills.items()
        if (one := by_name[name]).may_be_best
        or (one.accuracy == "priced" and ACCURACY in bill.job.cents and not one.beside.unknown)
    }


def may_be_best(accuracy: str, unknown: Sequence[str]) -> bool:
    """Whether a system keeps accuracy, or the limit, and has no cost without a figure."""
    return accuracy in ELIGIBLE and not unknown


def _place(one: Standing) -> tuple[float, float]:
    if one.finishes:
        return one.overhead.mean, 0.0
    return inf, -one.summary[FINISHED].mean


def _overheads(comparison: Comparison) -> dict[str, Floats]:
    rows = comparison.result.replications
    overhead = (rows["wall_h"] - rows["useful_h"]) / rows["useful_h"]
    return {
        str(name): overhead[of_strategy.index].to_numpy(np.float64)
        for name, of_strategy in rows.groupby("strategy", sort=False, observed=True)
    }


def accuracy_of(
    stale: bool, not_counted: str, how: str, *, limited: bool, priced: bool = False
) -> str:
    """What becomes of accuracy: see `Standing`."""
    if not (stale or not_counted):
        return KEPT
    if limited and how == FOUND and not not_counted:
        return WITHIN
    return "priced" if priced else UNPRICED


def available(found: Sequence[Standing]) -> Standing | None:
    """The cheapest of those that may be the best and that a job can run today."""
    able = (one for one in found if one.may_be_best and one.finishes and one.beside.runs_as)
    return next(able, None)


def tied_names(found: Sequence[Standing]) -> list[str]:
    """Systems that can't be told from the best, of those whose accuracy is kept."""
    return [one.name for one in found if one.verdict == TIED and one.may_be_best]


def _best(spreads: Mapping[str, Mapping[str, Estimate]], able: Sequence[str]) -> str | None:
    means = {
        name: mean for name in able if not isnan(mean := spreads[name]["overhead_fraction"].mean)
    }
    return min(means, key=lambda name: round(means[name], 12)) if means else None


def _finishes(summary: Mapping[str, Estimate]) -> bool:
    return isfinite(summary["overhead_fraction"].mean)


def against(
    overheads: Mapping[str, Floats], name: str, best: str | None, *, finishes: bool
) -> tuple[Estimate | None, str]:
    """The paired difference to the best, and what it says."""
    if not finishes:
        return None, UNFINISHED
    if best is None:
        return None, NO_BEST
    if name == best:
        return None, BEST
    more = paired(overheads[name], overheads[best])
    return more, verdict_of(more)


def paired(a: Floats, b: Floats) -> Estimate:
    """Mean of a less b, replication by replication, with its 95 % interval."""
    values = a - b
    return Estimate.of_mean(np.where(np.abs(values) <= ROUNDING * (1.0 + np.abs(b)), 0.0, values))


def verdict_of(more: Estimate) -> str:
    """What an interval of a difference to the best says."""
    if more.low > 0:
        return MORE
    return LESS if more.high < 0 else TIED
