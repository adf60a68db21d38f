"""The decision: each strategy's best interval within the limit, against full recovery at its best.

The paper compares first-order formulas; here every candidate is simulated with the failures of the
scenario, whatever their distribution, and the limit is held at an upper confidence bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from cprsim.assemble import Experiment
from cprsim.errors import ParameterError
from cprsim.pipeline import StrategyOutcome
from cprsim.records import OnFailure, RecoveryPolicy, SubSaves
from cprsim.results.metrics import Spread, interval_of_mean
from cprsim.selector.limit import Limit, pls_alone
from cprsim.selector.pricing import FULL, Bench, Priced, common
from cprsim.selector.search import (
    WORTH_TRYING,
    best_full,
    best_tail,
    best_within,
    most_writes,
)
from cprsim.staleness import (
    TRACKERS,
    WHOLE,
    Prediction,
    StalenessCurve,
    lost_portion,
)

FEWEST_REPLICATIONS = 100

WAYS: dict[str, SubSaves | None] = {
    WHOLE: None,
    **{f"cpr-{tracker}": SubSaves(tracker) for tracker in TRACKERS},
}
"""The strategies that are compared, with the paper's settings of sub-saves."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The core of a selection, on the replications themselves."""

    full: Priced
    best: Mapping[str, Priced | None]
    chosen: Priced


def bench_of(
    experiment: Experiment,
    curve: StalenessCurve | None,
    limit: Limit,
    ways: Mapping[str, SubSaves | None] | None = None,
    on_priced: Callable[[], None] = lambda: None,
) -> Bench:
    """Where candidates are priced, in the quantity that is limited. Raises as `select` does."""
    n = experiment.n_replications
    if n is None or n < FEWEST_REPLICATIONS:
        raise ParameterError(
            f"{n or 'a precision in place of'} replications: a selection needs a number of "
            f"them, {FEWEST_REPLICATIONS} at least, to tell a mean from noise"
        )
    compared = known_ways(curve, limit, ways)
    return Bench(experiment, {FULL: None, **compared}, _losing(curve, limit, experiment), on_priced)


def known_ways(
    curve: StalenessCurve | None, limit: Limit, ways: Mapping[str, SubSaves | None] | None
) -> dict[str, SubSaves | None]:
    """The strategies whose loss can be told.

    Raises ParameterError where there is none, or the curve is not fit for use.
    """
    metric = limit.quantity.metric
    if metric is None:
        return dict(ways) if ways is not None else {WHOLE: None}
    if curve is None:
        raise ParameterError(f"a limit of {limit.quantity.value} needs a staleness curve")
    if curve.unfit:
        raise ParameterError(
            f"curve {curve.name} is not fit for use, so that nothing is recommended by it: "
            f"{'; '.join(curve.unfit)}"
        )
    given = WAYS if ways is None else ways
    known = {
        name: way
        for name, way in given.items()
        if curve.of_policy(_any_policy(name, way), metric) is not None
    }
    if not known:
        raise ParameterError(
            f"curve {curve.name} knows none of {', '.join(given)} in {metric.value}, as they save"
        )
    return known


def _any_policy(name: str, way: SubSaves | None) -> RecoveryPolicy:
    return RecoveryPolicy(name, OnFailure.RELOAD, inf, "selected", sub_saves=way)


def _losing(
    curve: StalenessCurve | None, limit: Limit, experiment: Experiment
) -> Callable[[RecoveryPolicy, StrategyOutcome], Prediction]:
    useful_h, metric = experiment.useful_h, limit.quantity.metric

    def lost_samples(policy: RecoveryPolicy, one: StrategyOutcome) -> Prediction:
        losses, replications = one.losses, one.costs.replication
        return pls_alone(lost_portion(losses.since_save_h, losses, replications, useful_h))

    def lost_accuracy(policy: RecoveryPolicy, one: StrategyOutcome) -> Prediction:
        assert curve is not None
        assert metric is not None
        lost = curve.predict(policy, metric, one.losses, one.costs.replication, useful_h)
        assert lost is not None, "only strategies that the curve knows are compared"
        return lost

    return lost_samples if metric is None else lost_accuracy


def decide(bench: Bench, limit: Limit, worth: float = WORTH_TRYING) -> Decided:
    """Full recovery at its best, every strategy within the limit, and which of them to take.

    The cheapest strategy that surely costs less than full recovery is taken (the 95 % interval of
    the paired difference lies above 0); between strategies that cannot be told apart, the one that
    comes first. Where none does, it is full recovery.

    Parameters
    ----------
    worth : how many times full recovery's overhead a strategy's writes may cost to be looked at
    """
    full = best_full(bench)
    best = {
        name: best_within(bench, name, limit, most_writes(bench, name, full, worth))
        for name in bench.ways
        if name != FULL
    }
    chosen = full
    for one in best.values():
        if one is not None and surely_cheaper(one, chosen):
            chosen = one
    return Decided(full, best, chosen)


def fit_tails(bench: Bench, limit: Limit, decided: Decided) -> Decided:
    """The decision once the last piece of the job has the length that loses least."""
    for name, one in decided.best.items():
        if one is not None and one.n_writes > 0:
            bench.tails[name] = best_tail(bench, name, limit, one.n_writes)
    unchanged = all(tail == 1.0 for tail in bench.tails.values())
    return decided if unchanged else decide(bench, limit)


def surely_cheaper(one: Priced, other: Priced) -> bool:
    """Whether one candidate costs less than another, beyond noise; finishing counts first."""
    if not one.finished:
        return False
    return not other.finished or difference(other, one).low > 0


def difference(a: Priced, b: Priced) -> Spread:
    """Overhead of `a` less that of `b`, paired, with its 95 % interval; NaN if unfinished."""
    if not (a.finished and b.finished):
        return Spread(np.nan, np.nan, np.nan, len(b.overhead))
    values = common(a, b)
    return Spread(*interval_of_mean(values), len(values))
