"""A selection's numbers as people read them, the same in table, sentences and figure."""

from __future__ import annotations

from cprsim.results.words import hours
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.limit import Limit


def quantity_of(limit: Limit) -> str:
    """What is limited, in words."""
    metric = limit.quantity.metric
    return "PLS" if metric is None else metric.loss_label


def saving(one: Candidate) -> str:
    """How often a candidate saves, in words; of a recovery system, what its option says."""
    if one.is_system and not one.option:
        return "as the scenario has it"
    if one.n_saves == 0:
        return f"never saving ({one.option} as long as the job)" if one.option else "never saving"
    every = hours(one.policy.interval_h)
    return f"{one.option} {every}" if one.option else f"saving every {every}"


def entries(selection: Selection) -> dict[str, str]:
    """What a scenario says under `recovery` to run each strategy as selected, by strategy."""
    found = [selection.full, *(one for one in selection.best.values() if one is not None)]
    return {one.strategy: one.entry for one in found}
