"""The table of a sweep: a row per point, strategy and quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import Any

import pandas as pd

from cprsim.recovery.intervals import cpr_h, daly_h, young_h
from cprsim.results.store import Body
from cprsim.scenario.sweep import Values
from cprsim.sweeps.costs import Costs, costs_at
from cprsim.sweeps.points import Point

VARIED = "varied"  # which axis a row of one-at-a-time varies; empty for the scenario as it is
NUMBERS = ("mean", "low", "high", "difference", "difference_low", "difference_high")


def column(key: str, values: Values) -> str:
    """Name of an axis in the table: its key, with the unit of its numbers."""
    return f"{key} [{values.unit}]" if values.unit else key


def sweep_table(
    axes: Mapping[str, Values], points: Sequence[Point], bodies: Sequence[Body]
) -> pd.DataFrame:
    """The tidy table of a sweep, in the order of its points."""
    each = zip(points, bodies, costs_at(points, bodies), strict=True)
    return pd.DataFrame([row for one in each for row in _rows(axes, *one)])


def _rows(
    axes: Mapping[str, Values], point: Point, body: Body, costs: Costs
) -> list[dict[str, Any]]:
    place = _place(axes, point)
    rules = _rules(point)
    rows = []
    for strategy in body["strategies"]:
        head = {
            **place,
            "strategy": strategy["name"],
            "on_failure": strategy["on_failure"],
            "save_interval_h": _number(strategy["save_interval_h"], inf),
            "interval_rule": strategy["interval_rule"],
            **rules[strategy["name"]],
        }
        beside = {"n": strategy["n"], "reference": body["reference"]}
        for quantity, numbers in strategy["quantities"].items():
            found = {name: _number(n, nan) for name, n in zip(NUMBERS, numbers, strict=True)}
            rows.append({**head, "quantity": quantity, **beside, **found})
        for quantity, cost in costs.get(strategy["name"], {}).items():
            found = dict(zip(NUMBERS, (*cost.triple, nan, nan, nan), strict=True))
            rows.append({**head, "quantity": quantity, **beside, **found})
    return rows


def _place(axes: Mapping[str, Values], point: Point) -> dict[str, Any]:
    """Where a point is: its value on each axis; empty where the scenario's own holds."""
    place: dict[str, Any] = {}
    for (key, values), i in zip(axes.items(), point.coordinates, strict=True):
        listed = values.numbers or values.written
        place[column(key, values)] = None if i is None else listed[i]
    varied = [key for key, i in zip(axes, point.coordinates, strict=True) if i is not None]
    return {**place, VARIED: "" if not varied else " ".join(varied)}


def _rules(point: Point) -> dict[str, Mapping[str, float]]:
    """What Young's, Daly's and CPR's formulas would choose at this point, by strategy [h]."""
    experiment = point.experiment
    expected = experiment.failures.expected(experiment.cluster, experiment.useful_h)
    found: dict[str, Mapping[str, float]] = {}
    for entry in point.strategies:
        costs = experiment.at_costs_of(entry).costs
        save_h = costs.mean_h(costs.save_stall, experiment.cluster.n_emb_ps)
        chosen = nan
        if entry.target_pls and expected.n_shards_together:
            chosen = cpr_h(
                entry.target_pls, experiment.cluster.n_emb_ps, expected.mtbf_shard_h,
                expected.n_shards_together,
            )  # fmt: skip
        found[entry.name] = {
            "young_h": young_h(save_h, expected.mtbf_h) or nan,
            "daly_h": daly_h(save_h, expected.mtbf_h) or nan,
            "cpr_h": chosen,
        }
    return found


def _number(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else float(value)
