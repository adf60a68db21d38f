"""What is kept of a finished point: means with intervals, and differences with theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isfinite, nan
from typing import Any

import numpy as np

from cprsim.assemble import Experiment
from cprsim.engine import why_not
from cprsim.pipeline import StrategyOutcome, simulate
from cprsim.records import CostBreakdown, Floats, RecoveryPolicy
from cprsim.results.accuracy_rows import BEYOND, QUANTITIES
from cprsim.results.metrics import FINISHED, METRICS, interval_of_mean, interval_of_share
from cprsim.staleness import lost_portion
from cprsim.sweeps.store import Body

# what a staleness curve says is left out: its error is that of the curve, not of replications
SWEPT = tuple(name for name in METRICS if name not in (*QUANTITIES.values(), BEYOND))

Numbers = tuple[float, float, float]  # mean, low, high
NONE: Numbers = (nan, nan, nan)


def bodies_of(experiments: Sequence[Experiment], references: Sequence[str]) -> list[Body]:
    """The numbers of each point, compared with its reference strategy."""
    return [_body(*pair) for pair in zip(experiments, references, strict=True)]


def _body(experiment: Experiment, reference: str) -> Body:
    outcome = simulate(experiment)
    n_nodes = experiment.cluster.n_nodes
    measured = {
        one.policy.name: _measured(one, outcome.useful_h, n_nodes) for one in outcome.strategies
    }
    return {
        "reference": reference,
        "strategies": [
            {
                "name": one.policy.name,
                "on_failure": one.policy.on_failure.value,
                "save_interval_h": _number(one.policy.save_interval_h),
                "interval_rule": one.policy.interval_rule,
                "engine": _engine(experiment, one.policy),
                "n": one.costs.n_replications,
                "quantities": {
                    FINISHED: [*_share(one.costs), None, None, None],
                    **_quantities(
                        measured[one.policy.name],
                        None if one.policy.name == reference else measured[reference],
                    ),
                },
            }
            for one in outcome.strategies
        ],
    }


def _measured(one: StrategyOutcome, useful_h: float, n_nodes: int) -> Mapping[str, Floats] | None:
    """Every metric of every replication; None where not all of them finished."""
    costs, losses = one.costs, one.losses
    if not costs.finished.all():
        return None
    columns: Any = {f.name: getattr(costs, f.name) for f in fields(costs)}
    for name, staleness_h in (("pls", losses.since_save_h), ("pls_net", losses.since_reload_h)):
        columns[name] = lost_portion(staleness_h, losses, costs.replication, useful_h)
    return {name: np.asarray(METRICS[name](columns, n_nodes)) for name in SWEPT}


def _quantities(
    mine: Mapping[str, Floats] | None, reference: Mapping[str, Floats] | None
) -> dict[str, list[float | None]]:
    """Mean and interval of each metric, then those of its difference to the reference's."""
    found = {}
    for name in SWEPT:
        numbers = NONE if mine is None else interval_of_mean(mine[name])
        paired = NONE
        if mine is not None and reference is not None:
            paired = interval_of_mean(mine[name] - reference[name])
        found[name] = [_number(number) for number in (*numbers, *paired)]
    return found


def _share(costs: CostBreakdown) -> tuple[float, float, float]:
    n, n_finished = costs.n_replications, int(costs.finished.sum())
    return (n_finished / n, *interval_of_share(n_finished, n))


def _engine(experiment: Experiment, policy: RecoveryPolicy) -> str:
    if experiment.engine == "simpy":
        return "simpy"
    reason = why_not(experiment.cluster, policy)
    return "fast" if reason is None else "simpy"


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None
