"""Curve files of format 1, whose errors leave out those of the weights, as files of format 2.

Their weights were fitted without a bound, and their lines too, so that both may be negative or
fall. What stands in such a file is kept as far as it can be: negative weights become 0, falling
lines level, and errors are widened by what the weights add to them
(`benchmarks/coverage_of_curves.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cprsim.staleness import FEWEST_SEEDS_TO_USE, WEIGHED_AT

# Error with the weights refitted over error with them known, 16 seeds, a failure at any time: 1.25
# as measured on another setting, rounded up. At single times, early ones above all, it is more.
WIDER = 1.3
LEAST_ERROR = 0.05  # of the largest loss: an error where a line that fell is cut at 0


def upgraded(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The object of format 2 that says the same, with honest errors.

    Raises KeyError, TypeError or ValueError where it is no curve of format 1.
    """
    weights: list[dict[str, Any]] = []
    responses = [_response(entry, weights) for entry in plain["responses"]]
    n_seeds = len(plain["manifest"].get("seeds", ()))
    return {**plain, "weights": weights, "responses": responses, "unfit": _unfit(n_seeds)}


def _response(entry: Mapping[str, Any], weights: list[dict[str, Any]]) -> dict[str, Any]:
    weight = _weight(entry["weight"])
    if weight not in weights:
        weights.append(weight)
    loss = np.maximum.accumulate(np.asarray(entry["loss"], float))
    error = WIDER * np.asarray(entry["standard_error"], float)
    error[1:] = np.where(loss[1:] > 0, error[1:], np.maximum(error[1:], LEAST_ERROR * loss[-1]))
    return {
        **entry,
        "loss": loss.tolist(),
        "standard_error": error.tolist(),
        "weight": weights.index(weight),
        "replicates": [],
    }


def _weight(entry: Mapping[str, Any]) -> dict[str, Any]:
    at, staleness = (np.asarray(entry[name], float) for name in ("at", "staleness"))
    weight = np.maximum(np.asarray(entry["weight"], float), 0.0)
    ends = np.array([0.0, *at, 1.0])
    level = [np.interp(WEIGHED_AT, staleness, row) for row in weight]
    mean = float(np.trapezoid(np.interp(ends, at, level), ends))
    if mean > 0:
        weight = weight / mean
    return {"at": at.tolist(), "staleness": staleness.tolist(), "weight": weight.tolist()}


def _unfit(n_seeds: int) -> list[str]:
    if n_seeds >= FEWEST_SEEDS_TO_USE or n_seeds == 0:
        return []
    return [
        f"it was fitted from {n_seeds} seeds by an earlier version, whose weights may be far off: "
        "run its command again with this version"
    ]
