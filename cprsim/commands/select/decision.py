"""The decision between full recovery and the other options, each at its best interval.

CPR compares first-order formulas. Here every candidate is simulated with the failures of the
scenario, and the upper confidence bound of its accuracy loss must not exceed the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cprsim.accuracy.curve import Prediction
from cprsim.commands.select.evaluation import FULL, CandidateEvaluator, Evaluated
from cprsim.commands.select.search import at_cheapest_interval, best_candidate
from cprsim.job.losses import WHOLE
from cprsim.recovery.paper import STRATEGIES
from cprsim.results.limit import Limit

EQUAL_BELOW = 5e-5  # of useful time; overheads with a smaller difference count as equal
NEGLIGIBLE_GAIN = 0.02  # most that equivalents cost more, over the gain compared with full recovery


@dataclass(frozen=True, slots=True)
class StrategyDecision:
    """The chosen candidate and those it was compared with."""

    full: Evaluated
    best: Mapping[str, Evaluated | None]
    chosen: Evaluated

    @property
    def best_by_option(self) -> dict[str, Evaluated]:
        """The best candidate of each option that has one, by name."""
        return {name: candidate for name, candidate in self.best.items() if candidate is not None}

    @property
    def at_best(self) -> dict[str, Evaluated]:
        """Full recovery, and each option that has a candidate, by name."""
        return {FULL: self.full, **self.best_by_option}


def decide(evaluator: CandidateEvaluator, step: Callable[[], None]) -> StrategyDecision:
    """Choose between full recovery and the other options, each at its best.

    The choice begins with full recovery. Each option in turn replaces the current choice if its
    accuracy loss is known and its overhead is significantly smaller: the 95 % interval of the
    paired difference excludes 0.
    """
    cheapest, best_of = at_cheapest_interval(evaluator, FULL), dict[str, Evaluated | None]()
    full = best_candidate(evaluator, FULL, cheapest) or cheapest
    for name in evaluator.options:
        if name != FULL:
            best_of[name] = best_candidate(evaluator, name, full)
        step()
    return choose_from({FULL: full}, best_of, evaluator.limit)


def choose_from(
    by_name: Mapping[str, Evaluated], best: Mapping[str, Evaluated | None], limit: Limit
) -> StrategyDecision:
    """Choose from full recovery and the `best` options, first replaced by those in `by_name`."""
    full = chosen = by_name[FULL]
    best = {name: by_name.get(name, one) for name, one in best.items()}
    for one in best.values():
        if one is not None and loss_is_known(one, limit) and one.significantly_cheaper(chosen):
            chosen = one
    return StrategyDecision(full, best, chosen)


def loss_is_known(one: Evaluated, limit: Limit) -> bool:
    """Whether the limit's quantity covers every accuracy loss of a candidate."""
    return one.policy.accuracy_model is None or bool(limit.metric and one.lost.loss.any())


def simplest(
    evaluator: CandidateEvaluator, decided: StrategyDecision
) -> tuple[StrategyDecision, tuple[str, ...]]:
    """If the choice has sub-saves, choose the simplest equivalent strategy; return all equivalents.

    Equivalent: hardly more overhead than the choice, and no significantly larger loss. The loss
    is compared at the choice's interval or, if overheads are equal, at the candidate's best.
    """
    chosen, best = decided.chosen, decided.best_by_option
    if chosen.policy.sub_saves is None:
        return decided, ()
    negligible = NEGLIGIBLE_GAIN * decided.full.excess_over(chosen).mean
    if WHOLE in best:  # nor may it cost more than `partial`
        negligible = min(negligible, max(best[WHOLE].excess_over(chosen).mean, 0.0))
    equivalent = []
    for name, candidate in best.items():
        if evaluator.options[name].strategy not in STRATEGIES:
            continue
        at_chosen = evaluator.evaluate(name, [chosen.policy.interval_h])[0].lost
        more = candidate.excess_over(chosen).mean
        as_good = not _loses_more(at_chosen, chosen.lost)
        as_good |= more <= EQUAL_BELOW and not _loses_more(candidate.lost, chosen.lost)
        if as_good and more <= negligible:
            equivalent.append(name)
    return replace(decided, chosen=best[equivalent[0]]), tuple(equivalent)


def _loses_more(one: Prediction, other: Prediction) -> bool:
    """Whether one loses significantly more than the other; their errors count as independent."""
    errors = np.hypot(one.standard_error, other.standard_error)
    degrees = min(one.degrees, other.degrees)
    more = Prediction(one.loss - other.loss, errors, one.beyond, degrees)
    return bool(more.mean().interval()[0] > 0)
