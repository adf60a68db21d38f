"""The decision: each strategy's best interval within the limit, against full recovery at its best.

The paper compares first-order formulas; here every candidate is simulated with the failures of the
scenario, whatever their distribution, and the limit is held at an upper confidence bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import Experiment
from cprsim.experiments.pipeline import StrategyOutcome
from cprsim.records import Estimate, SubSaves
from cprsim.recovery.losses import WHOLE, lost_portion
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.policy import Policy
from cprsim.scenario.failures import EMB_PS
from cprsim.scenario.recovery import RecoverySection
from cprsim.selector.limit import Limit, pls_alone
from cprsim.selector.pricing import FULL, Bench, Priced, Way, common, policy_at
from cprsim.selector.search import (
    WORTH_TRYING,
    best_full,
    best_system,
    best_tail,
    best_within,
    has_interval,
    most_writes,
)
from cprsim.staleness.curve import StalenessCurve
from cprsim.staleness.expected import Prediction, mean_loss, nothing_lost

FEWEST_REPLICATIONS = 100

SIMPLE_FIRST = ("mfu", "ssu", "scar", "round-robin")
"""Trackers: a counter per row, a list of sampled rows, a second copy of the tables; the control."""
WAYS: dict[str, SubSaves | None] = {
    WHOLE: None,
    **{f"cpr-{tracker}": SubSaves(tracker) for tracker in SIMPLE_FIRST},
}
"""The strategies that are compared, the simplest first, with the paper's settings of sub-saves."""

HARDLY_LESS = 0.02  # of the overhead that is removed: no reason to run what is less simple


def ways_of(
    experiment: Experiment, sub_saves: Mapping[str, SubSaves | None] = WAYS
) -> dict[str, Way]:
    """The strategies that make sense for a job; reloading servers takes embedding servers."""
    has_servers = any(role.name == EMB_PS for role in experiment.cluster.roles)
    ways: dict[str, Way] = {**sub_saves} if has_servers else {}
    for one in (one for one in experiment.scenario.recovery if one.strategy not in STRATEGIES):
        if one.name == FULL or one.name in ways:
            raise ParameterError(
                f"`{one.name}` is compared as the strategy of that name: give the recovery system "
                f"`{one.strategy}` another `name`"
            )
        ways[one.name] = one
    return ways


def loses(name: str, way: Way, experiment: Experiment) -> bool:
    """Whether a strategy leaves stale shards."""
    return policy_at(name, way, experiment, experiment.useful_h).leaves_stale


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
    ways: Mapping[str, Way] | None = None,
    on_priced: Callable[[], None] = lambda: None,
) -> Bench:
    """Where candidates are priced, in the quantity that is limited. Raises as `select` does."""
    n = experiment.simulation.replications
    if n is None or n < FEWEST_REPLICATIONS:
        raise ParameterError(
            f"{n or 'a precision in place of'} replications: a selection needs a number of "
            f"them, {FEWEST_REPLICATIONS} at least, to tell a mean from noise"
        )
    given = _default_ways(experiment, limit) if ways is None else ways
    compared = {
        name: curve.with_bytes(way) if curve and isinstance(way, SubSaves) else way
        for name, way in known_ways(curve, limit, given, experiment).items()
    }
    return Bench(experiment, {FULL: None, **compared}, _losing(curve, limit, experiment), on_priced)


def _default_ways(experiment: Experiment, limit: Limit) -> dict[str, Way]:
    """Where PLS is limited, all that reload servers lose the same: plain partial recovery."""
    return ways_of(experiment, WAYS if limit.quantity.metric is not None else {WHOLE: None})


def known_ways(
    curve: StalenessCurve | None, limit: Limit, ways: Mapping[str, Way], experiment: Experiment
) -> dict[str, Way]:
    """The strategies whose loss can be told; those that lose nothing are among them."""
    metric = limit.quantity.metric
    losing = {name: way for name, way in ways.items() if loses(name, way, experiment)}
    if metric is None or not losing:
        return dict(ways)
    if curve is None:
        raise ParameterError(f"a limit of {limit.quantity.value} needs a staleness curve")
    if unfit := curve.why_unfit(metric):
        raise ParameterError(
            f"curve {curve.name} is not fit for use, so that nothing is recommended by it: "
            f"{'; '.join(unfit)}"
        )
    known = {
        name: way
        for name, way in ways.items()
        if name not in losing
        or curve.of_policy(policy_at(name, way, experiment, experiment.useful_h), metric)
        is not None
    }
    if not known:
        raise ParameterError(
            f"curve {curve.name} knows none of {', '.join(ways)} in {metric.value}, as they save; "
            f"it knows losses of {', '.join(curve.metrics)}"
        )
    return known


def _losing(
    curve: StalenessCurve | None, limit: Limit, experiment: Experiment
) -> Callable[[Policy, StrategyOutcome], Prediction]:
    useful_h, metric = experiment.useful_h, limit.quantity.metric

    def lost_samples(policy: Policy, one: StrategyOutcome) -> Prediction:
        losses, replications = one.losses, one.costs.replication
        return pls_alone(lost_portion(losses.since_save_h, losses, replications, useful_h))

    def lost_accuracy(policy: Policy, one: StrategyOutcome) -> Prediction:
        assert metric is not None
        lost = None
        if curve is not None:
            lost = curve.predict(policy, metric, one.losses, one.costs, useful_h)
        if lost is None:
            assert not policy.leaves_stale, "only strategies that the curve knows are compared"
            return nothing_lost(one.costs.n_replications)
        return lost

    return lost_samples if metric is None else lost_accuracy


def decide(
    bench: Bench,
    limit: Limit,
    worth: float = WORTH_TRYING,
    step: Callable[[], None] = lambda: None,
) -> Decided:
    """Full recovery at its best, every strategy within the limit, and which of them to take.

    The cheapest strategy that surely costs less than full recovery is taken (the 95 % interval of
    the paired difference lies above 0); between strategies that cannot be told apart, the one that
    comes first. Where none does, it is full recovery.
    """
    full = best_full(bench)
    best, chosen = {}, full
    for name in bench.ways:
        if name != FULL:
            best[name] = _best(bench, name, limit, full, worth)
        step()
    for one in best.values():
        if one is not None and _is_priced(one, limit) and surely_cheaper(one, chosen):
            chosen = one
    return Decided(full, best, chosen)


def _is_priced(one: Priced, limit: Limit) -> bool:
    """Whether all that a candidate loses of accuracy is in what is held to the limit."""
    return one.policy.loses_as is None or bool(limit.quantity.metric and one.lost.loss.any())


def simplest(bench: Bench, decided: Decided) -> tuple[Decided, tuple[str, ...]]:
    """The decision for the simplest of those that can't be told from the one that was taken.

    Those are strategies that cost hardly more, and whose loss at the interval of the one that was
    taken the curve does not tell from its own (the 95 % interval of the difference has 0 in it;
    errors of two strategies count as independent).
    """
    taken = decided.chosen
    if taken.policy.sub_saves is None:
        return decided, ()
    alike, plain = [], decided.best.get(WHOLE)
    hardly = HARDLY_LESS * difference(decided.full, taken).mean
    if plain is not None:  # what costs more than it is neither simple nor cheap
        hardly = min(hardly, max(difference(plain, taken).mean, 0.0))
    for name, one in decided.best.items():
        if one is None or isinstance(bench.ways[name], RecoverySection):
            continue
        lost, own = bench.price(name, [taken.policy.interval_h])[0].lost, taken.lost
        errors = np.hypot(lost.standard_error, own.standard_error)
        more = mean_loss(lost.loss - own.loss, errors, min(lost.degrees, own.degrees))
        if more.interval()[0] <= 0 and not difference(one, taken).mean > hardly:
            alike.append(name)
    chosen = decided.best[alike[0]]
    assert chosen is not None, "what is alike has an interval"
    return replace(decided, chosen=chosen), tuple(alike)


def _best(bench: Bench, name: str, limit: Limit, full: Priced, worth: float) -> Priced | None:
    if isinstance(bench.ways[name], RecoverySection):
        return best_system(bench, name, limit, full, worth)
    return best_within(bench, name, limit, most_writes(bench, name, full, worth))


def fit_tails(bench: Bench, limit: Limit, decided: Decided) -> Decided:
    """The decision once the last piece of the job has the length that loses least."""
    for name, one in decided.best.items():
        if one is None or one.n_writes == 0 or not one.policy.leaves_stale:
            continue
        if has_interval(bench.ways[name]):
            bench.tails[name] = best_tail(bench, name, limit, one.n_writes)
    unchanged = all(tail == 1.0 for tail in bench.tails.values())
    return decided if unchanged else decide(bench, limit)


def surely_cheaper(one: Priced, other: Priced) -> bool:
    """Whether one candidate costs less than another, beyond noise; finishing counts first."""
    if not one.finished:
        return False
    return not other.finished or difference(other, one).low > 0


def difference(a: Priced, b: Priced) -> Estimate:
    """Overhead of `a` less that of `b`, paired, with its 95 % interval; NaN if unfinished."""
    if not (a.finished and b.finished):
        return Estimate(np.nan, np.nan, np.nan, len(b.overhead))
    values = common(a, b)
    return Estimate.of_mean(values)
