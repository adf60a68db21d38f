"""The decision: each option at its best within the limit, compared with full recovery at its best.

The paper compares first-order formulas. Here every candidate is simulated with the failures of the
scenario, of any distribution, and the upper confidence bound of its loss must keep the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cprsim.accuracy.curve import Prediction
from cprsim.commands.select.pricing import FULL, CandidateEvaluator, Evaluated
from cprsim.commands.select.search import at_cheapest_interval, best
from cprsim.job.losses import WHOLE
from cprsim.results.limit import Limit

AS_MUCH = 5e-5  # of useful time; overheads that differ by less count as equal
HARDLY_LESS = 0.02  # of the removed overhead; a smaller gain justifies no complex strategy


@dataclass(frozen=True, slots=True)
class StrategyDecision:
    """The core of a selection, with the results of each replication."""

    full: Evaluated
    best: Mapping[str, Evaluated | None]
    chosen: Evaluated

    @property
    def within_limit(self) -> dict[str, Evaluated]:
        """The options that keep the limit, by name."""
        return {name: priced for name, priced in self.best.items() if priced is not None}

    @property
    def at_best(self) -> dict[str, Evaluated]:
        """Full recovery, and the options that keep the limit, by name."""
        return {FULL: self.full, **self.within_limit}


def decide(evaluator: CandidateEvaluator, step: Callable[[], None]) -> StrategyDecision:
    """Choose between full recovery and the options within the limit, each at its best.

    In the order of the options, each one whose loss is priced replaces the choice, at first full
    recovery, if it costs significantly less (the 95 % interval of the paired difference lies above
    0).
    """
    cheapest, best_of = at_cheapest_interval(evaluator, FULL), dict[str, Evaluated | None]()
    full = best(evaluator, FULL, cheapest) or cheapest
    for name in evaluator.options:
        if name != FULL:
            best_of[name] = best(evaluator, name, full)
        step()
    return choice({FULL: full}, best_of, evaluator.limit)


def choice(
    priced: Mapping[str, Evaluated], best: Mapping[str, Evaluated | None], limit: Limit
) -> StrategyDecision:
    """The decision between full recovery and the best of each, as in `priced` where it has them."""
    full = chosen = priced[FULL]
    best = {name: priced.get(name, one) for name, one in best.items()}
    for one in best.values():
        if one is not None and is_priced(one, limit) and one.surely_cheaper(chosen):
            chosen = one
    return StrategyDecision(full, best, chosen)


def is_priced(priced: Evaluated, limit: Limit) -> bool:
    """Whether the limited quantity covers every accuracy loss of the candidate."""
    return priced.policy.accuracy_model is None or bool(limit.metric and priced.lost.loss.any())


def simplest(
    evaluator: CandidateEvaluator, decided: StrategyDecision
) -> tuple[StrategyDecision, tuple[str, ...]]:
    """Choose the simplest strategy like the chosen one, if that has sub-saves.

    Such a strategy costs hardly more, and its loss at the chosen interval is not significantly
    larger; or it costs no more, and its loss at its own best interval is not significantly larger.
    """
    chosen, within_limit = decided.chosen, decided.within_limit
    if chosen.policy.sub_saves is None:
        return decided, ()
    hardly = HARDLY_LESS * decided.full.more_than(chosen).mean
    if WHOLE in within_limit:  # it must not cost more than the simplest strategy
        hardly = min(hardly, max(within_limit[WHOLE].more_than(chosen).mean, 0.0))
    alike = []
    for name, priced in within_limit.items():
        if not evaluator.options[name].from_cpr_paper:
            continue
        at_chosen = evaluator.price(name, [chosen.policy.interval_h])[0].lost
        more = priced.more_than(chosen).mean
        as_good = not _loses_more(at_chosen, chosen.lost)
        as_good |= more <= AS_MUCH and not _loses_more(priced.lost, chosen.lost)
        if as_good and more <= hardly:
            alike.append(name)
    return replace(decided, chosen=within_limit[alike[0]]), tuple(alike)


def _loses_more(one: Prediction, other: Prediction) -> bool:
    """Whether one loses significantly more than the other; errors count as independent."""
    errors = np.hypot(one.standard_error, other.standard_error)
    degrees = min(one.degrees, other.degrees)
    more = Prediction(one.loss - other.loss, errors, one.beyond, degrees)
    return bool(more.mean().interval()[0] > 0)
