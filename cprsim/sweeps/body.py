"""What is kept of a finished point: means with intervals, and differences with theirs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from cprsim.assemble import Experiment
from cprsim.results.metrics import FINISHED, Spread, interval_of_share
from cprsim.results.streaming import Moments, summarise
from cprsim.sweeps.store import Body

NONE = [None, None, None]


def bodies_of(experiments: Sequence[Experiment], references: Sequence[str]) -> list[Body]:
    """The numbers of each point, compared with its reference strategy."""
    found = dict(summarise(experiments))
    return [_body(found[place], reference) for place, reference in enumerate(references)]


def _body(moments: Moments, reference: str) -> Body:
    return {
        "reference": reference,
        "strategies": [
            {
                "name": policy.name,
                "on_failure": policy.on_failure.value,
                "save_interval_h": _number(policy.save_interval_h),
                "interval_rule": policy.interval_rule,
                "engine": moments.engines[i],
                "n": moments.n,
                "quantities": _quantities(moments, i, reference),
            }
            for i, policy in enumerate(moments.strategies)
        ],
    }


def _quantities(moments: Moments, i: int, reference: str) -> dict[str, list[float | None]]:
    """Mean and interval of each metric, then those of its difference to the reference's."""
    name, n_finished = moments.strategies[i].name, int(moments.n_finished[i])
    share = (n_finished / moments.n, *interval_of_share(n_finished, moments.n))
    found: dict[str, list[Any]] = {FINISHED: [*share, *NONE]}
    for metric in moments.metrics:
        paired = NONE if name == reference else _said(moments.difference(name, reference, metric))
        found[metric] = [*_said(moments.spread(name, metric)), *paired]
    return found


def _said(spread: Spread) -> list[float | None]:
    return [_number(value) for value in (spread.mean, spread.low, spread.high)]


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None
