"""A result as one JSON object for scripts. Missing numbers are null, never NaN or Infinity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

import pandas as pd

from cprsim.report.accuracy_sentences import accuracy_sentences
from cprsim.report.run_table import Line, lines
from cprsim.report.sentences import verdicts
from cprsim.results import FINISHED, Differing, Result, Spread, records_of
from cprsim.results.metrics import BESIDE, parts_among
from cprsim.results.run import Price
from cprsim.results.worth_seeing import worth_seeing


def run_as_json(result: Result) -> dict[str, Any]:
    """The object that ``cprsim run --json`` prints; docs/metrics.md says what each key means."""
    return {
        "name": result.name,
        "useful_h": result.useful_h,
        "n_nodes": result.n_nodes,
        "results": str(result.path),
        "verdicts": verdicts(result),
        "warnings": list(result.warnings),
        "price": result.price and asdict(result.price),
        "accuracy": accuracy_sentences(result),
        "curve": result.curve and asdict(result.curve),
        "log_notes": list(result.log_notes),
        "worth_seeing": worth_seeing(result),
        "strategies": [_strategy(line) | _money(line, result.price) for line in lines(result)],
    }


def _money(line: Line, price: Price | None) -> dict[str, Any]:
    """What the overhead costs, with the interval of its node-hours."""
    if price is None:
        return {}
    spread = line.summary["overhead_node_h"]
    return {
        "overhead_cost": {
            name: number(price.of(getattr(spread, name))) for name in ("mean", "low", "high")
        }
    }


def _strategy(line: Line) -> dict[str, Any]:
    decision = line.policy.decision
    return {
        "name": line.policy.name,
        "interval_h": number(line.policy.save_interval_h),
        "interval_rule": line.policy.interval_rule,
        "on_failure": line.policy.on_failure.value,
        "decision": decision and decision.chosen,
        "extra_nodes": line.policy.extra_nodes,
        "extra_memory_fraction": line.policy.extra_memory_fraction,
        "replications": line.summary[FINISHED].n,
        FINISHED: number(line.mean(FINISHED)),
        "overhead_fraction": _triple(line.summary["overhead_fraction"]),
        **{part: _triple(line.summary[part]) for part in parts_among(line.summary)},
        **{quantity: number(line.mean(quantity)) for quantity in BESIDE},
        "intervals": {quantity: _triple(line.summary[quantity]) for quantity in BESIDE},
    }


def _triple(spread: Spread) -> dict[str, float | None]:
    return {"mean": number(spread.mean), "low": number(spread.low), "high": number(spread.high)}


def number(value: float) -> float | None:
    """A finite number, else None."""
    return float(value) if isfinite(value) else None


def comparison_as_json(
    table: pd.DataFrame, paired: bool, inputs: Sequence[Differing], errors: Sequence[str]
) -> dict[str, Any]:
    """The object that ``cprsim compare --json`` prints, from `cprsim.results.compare`.

    Parameters
    ----------
    inputs : in what the two results differ
    errors : what is assumed of the errors of staleness curves
    """
    numbers = ("a", "b", "difference", "low", "high")
    return {
        "method": "paired" if paired else "welch",
        "inputs": [{"key": one.key, "a": one.values[0], "b": one.values[1]} for one in inputs],
        "curve_errors": list(errors),
        "differences": [
            {
                "strategy": row["strategy"],
                "quantity": row["quantity"],
                **{name: number(row[name]) for name in numbers},
                "n": int(row["n"]),
            }
            for row in records_of(table)
        ],
    }
