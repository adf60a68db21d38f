"""The decision: each option's best interval within the limit, against full recovery at its best.

The paper compares first-order formulas; here every candidate is simulated with the failures of the
scenario, whatever their distribution, and the limit is held at an upper confidence bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cprsim.recovery.losses import WHOLE
from cprsim.selector.limit import Limit
from cprsim.selector.option import FULL
from cprsim.selector.pricing import Bench, Priced
from cprsim.selector.search import WORTH_TRYING, best, best_tail, cheapest_of
from cprsim.staleness.expected import Prediction

HARDLY_LESS = 0.02  # of the overhead that is removed: no reason to run what is less simple


@dataclass(frozen=True, slots=True)
class Decided:
    """The core of a selection, on the replications themselves."""

    full: Priced
    best: Mapping[str, Priced | None]
    chosen: Priced

    @property
    def is_full(self) -> bool:
        """Whether full recovery is chosen."""
        return self.chosen is self.full

    @property
    def there(self) -> dict[str, Priced]:
        """The options that keep the limit, by name."""
        return {name: one for name, one in self.best.items() if one is not None}


def decide(
    bench: Bench, worth: float = WORTH_TRYING, step: Callable[[], None] = lambda: None
) -> Decided:
    """Full recovery at its best, every option within the limit, and which of them to take.

    The cheapest option that surely costs less than full recovery is taken (the 95 % interval of
    the paired difference lies above 0); between options that cannot be told apart, the one that
    comes first. Where none does, it is full recovery.
    """
    full, found = cheapest_of(bench, FULL), {}
    for name in bench.options:
        if name != FULL:
            found[name] = best(bench, name, full, worth)
        step()
    chosen = full
    for one in found.values():
        if one is not None and is_priced(one, bench.limit) and one.surely_cheaper(chosen):
            chosen = one
    return Decided(full, found, chosen)


def is_priced(one: Priced, limit: Limit) -> bool:
    """Whether all that a candidate loses of accuracy is in what is held to the limit."""
    return one.policy.loses_as is None or bool(limit.metric and one.lost.loss.any())


def fit_tails(bench: Bench, decided: Decided) -> Decided:
    """The decision once the last piece of the job has the length that loses least."""
    for name, one in decided.there.items():
        has_interval = bench.options[name].interval is not None
        if one.n_writes > 0 and one.policy.leaves_stale and has_interval:
            bench.tails[name] = best_tail(bench, name, one.n_writes)
    unchanged = all(tail == 1.0 for tail in bench.tails.values())
    return decided if unchanged else decide(bench)


def simplest(bench: Bench, decided: Decided) -> tuple[Decided, tuple[str, ...]]:
    """The decision for the simplest of those that can't be told from the one that was taken.

    Those are strategies that cost hardly more, and whose loss at the interval of the one that was
    taken the curve does not tell from its own (the 95 % interval of the difference has 0 in it;
    errors of two strategies count as independent).
    """
    taken, there = decided.chosen, decided.there
    if taken.policy.sub_saves is None:
        return decided, ()
    hardly = HARDLY_LESS * decided.full.more_than(taken).mean
    if WHOLE in there:  # what costs more than it is neither simple nor cheap
        hardly = min(hardly, max(there[WHOLE].more_than(taken).mean, 0.0))
    alike = []
    for name, one in there.items():
        if not bench.options[name].is_strategy:
            continue
        lost, own = bench.price(name, [taken.policy.interval_h])[0].lost, taken.lost
        errors = np.hypot(lost.standard_error, own.standard_error)
        degrees = min(lost.degrees, own.degrees)
        more = Prediction(lost.loss - own.loss, errors, lost.beyond, degrees)
        if more.mean().interval()[0] <= 0 and not one.more_than(taken).mean > hardly:
            alike.append(name)
    return replace(decided, chosen=there[alike[0]]), tuple(alike)
