"""Limits of what strategies of a run may lose, each with the one bound that is compared with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cprsim.results.folder import stored_scenario
from cprsim.results.metrics import FINISHED
from cprsim.results.run import Result
from cprsim.scenario.kernel import Accuracy
from cprsim.selector.limit import PLS, Limit, limits_in, pls_alone
from cprsim.staleness.expected import Prediction


class Held(NamedTuple):
    """A limit, and what is compared with it."""

    limit: Limit
    mean: float
    bound: float

    @property
    def sentence(self) -> str:
        return self.limit.held(self.mean, self.bound)

    @property
    def cell(self) -> str:
        """The bound beside the limit, marked where it lies over it."""
        words = "limit" if self.bound <= self.limit.most else "over"
        return f"{self.limit.words} {self.bound:.3g} ({words} {self.limit.most:g})"


def limits_of(result: Result) -> dict[str, list[Held]]:
    """By strategy that leaves shards stale: the target of its entry, and that of `accuracy`."""
    scenario, limits = stored_scenario(result.path), dict[str, list[Held]]()
    general = limits_in(Accuracy.model_validate(scenario.get("accuracy") or {}))
    targets = {entry["name"]: entry.get("target_pls") for entry in scenario.get("recovery", ())}
    for policy in result.policies:
        of = result.spreads()[policy.name]
        rows = result.replications[result.replications["strategy"] == policy.name]
        if not policy.leaves_stale or of[FINISHED].mean < 1 or len(rows) < 2:
            continue
        own = [] if targets.get(policy.name) is None else [Limit(PLS, targets[policy.name])]
        for limit in dict.fromkeys([*own, *general]):
            lost, name = pls_alone(rows["pls"].to_numpy()), limit.quantity.quantity
            if limit.metric is not None and name in rows:
                loss, error = (rows[column].to_numpy() for column in (name, f"{name}_se"))
                degrees = float(rows[f"{name}_degrees"].iloc[0])
                lost = Prediction(loss, error, np.zeros(len(loss), dtype=bool), degrees)
            if limit.metric is None or (name in rows and np.isfinite(lost.loss).all()):
                held = Held(limit, float(lost.loss.mean()), limit.bound(lost))
                limits.setdefault(policy.name, []).append(held)
    return limits
