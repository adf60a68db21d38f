"""How far the errors of a curve's strategies go together: they were measured on the same seeds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from cprsim.staleness import Metric

FEWEST_SEEDS = 3


def correlations(checks: Mapping[str, Any]) -> dict[tuple[Metric, str, str], float]:
    """Correlation of the errors of each two strategies, by metric; empty where nothing tells.

    Parameters
    ----------
    checks : of the file of a curve: the slope of each strategy on each seed

    Notes
    -----
    The errors of two means over the same seeds correlate as the seeds' values do. With the sample's
    correlation the variance of any weighted difference of the two means is that of the seeds'
    weighted differences, so that Student's t with n - 1 degrees of freedom holds for it.
    """
    found = {}
    for metric in Metric:
        by_seed = _by_seed(checks.get(metric.value))
        for one, other in combinations(by_seed, 2):
            pair = np.array([by_seed[one], by_seed[other]])
            deviations = pair - pair.mean(axis=1, keepdims=True)
            scale = float(np.sqrt(np.square(deviations).sum(axis=1).prod()))
            if scale > 0:
                found[metric, one, other] = float(deviations[0] @ deviations[1]) / scale
    return found


def _by_seed(of_metric: Any) -> dict[str, list[float]]:
    """Slopes by strategy, each on the same seeds; none where the file does not have them."""
    slopes = of_metric.get("slopes_of_single_failures") if isinstance(of_metric, Mapping) else None
    if not isinstance(slopes, Mapping):
        return {}
    by_seed = {
        str(name): one["by_seed"]
        for name, one in slopes.items()
        if isinstance(one, Mapping) and isinstance(one.get("by_seed"), list)
    }
    n_seeds = {len(values) for values in by_seed.values()}
    return by_seed if len(n_seeds) == 1 and min(n_seeds) >= FEWEST_SEEDS else {}
