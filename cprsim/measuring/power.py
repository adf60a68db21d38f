"""How many seeds and runs a measurement takes to tell a loss from nothing, from a pilot's scatter.

A seed gives one estimate of a typical loss; the mean over n seeds is held against 0 by Student's t
at a one-sided level. Its power where the loss is as large as the limit is that of the noncentral t.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import stats

from cprsim.curves.curve_file import CurveFile
from cprsim.errors import ParameterError
from cprsim.measuring.curve import typical_loss
from cprsim.measuring.design import Design
from cprsim.staleness.curve import FEWEST_SEEDS_TO_USE
from cprsim.staleness.names import WHOLE, Metric

LEVEL = 0.95  # one-sided, as `cprsim select` holds a limit by default
MOST_SEEDS = 10_000


@dataclass(frozen=True, slots=True)
class PlannedSeeds:
    """What a measurement takes."""

    n_seeds: int  # n_seeds, n_runs: of the whole measurement; a run is a trial or a twin
    n_runs: int
    spread: float  # of a typical loss, from seed to seed
    power: float  # with so many seeds
    n_pilot: int  # seeds that told the spread


def power_of(n_seeds: int, limit: float, spread: float) -> float:
    """Probability that the mean of n seeds is told from 0 where the loss is `limit`."""
    threshold = stats.t.ppf(LEVEL, n_seeds - 1)
    found = float(stats.nct.sf(threshold, n_seeds - 1, limit * sqrt(n_seeds) / spread))
    return found if np.isfinite(found) else 1.0


def seeds_for(limit: float, power: float, spread: float) -> int:
    """The fewest seeds, 2 at least. Raises ParameterError where it takes more than 10,000."""
    if power_of(MOST_SEEDS, limit, spread) < power:
        raise ParameterError(
            f"more than {MOST_SEEDS:,} seeds: a loss of {limit:g} drowns in the scatter of "
            f"{spread:.2g} from seed to seed"
        )
    low, high = 1, 2
    while power_of(high, limit, spread) < power:
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(middle, limit, spread) >= power else (middle, high)
    return high


def spread_of(pilot: CurveFile, metric: Metric) -> tuple[float, int]:
    """Scatter of a typical loss from seed to seed, weights and all; and of how many seeds."""
    response = pilot.curve("").of(WHOLE, metric)
    if response is None or not np.isfinite(response.degrees):
        raise ParameterError(
            f"the curve {pilot.name} does not tell how {metric.label} scatters from seed to seed"
        )
    n_seeds = int(response.degrees) + 1
    return typical_loss(response).standard_error * sqrt(n_seeds), n_seeds


def planned(
    pilot: CurveFile, metric: Metric, limit: float, power: float, design: Design, n_servers: int
) -> PlannedSeeds:
    """Seeds and runs that tell a loss of `limit` from nothing with a given power."""
    if not limit > 0:
        raise ParameterError(f"--limit: must be positive, not {limit:g}")
    spread, n_pilot = spread_of(pilot, metric)
    n_seeds = max(seeds_for(limit, power, spread), FEWEST_SEEDS_TO_USE)
    n_runs = n_seeds * (len(design.trials(1, n_servers)) + 1)
    return PlannedSeeds(n_seeds, n_runs, spread, power_of(n_seeds, limit, spread), n_pilot)
