"""What stale shards cost in accuracy: measured responses, and what they predict for failures.

A shard that goes back to an old save loses samples. Training was measured to lose accuracy nearly
in proportion to them, one loss adding to the next; when in the run they are lost weighs too. So a
response per strategy and metric is enough to price any failures (docs/staleness.md says how far).

    curve: the responses of one model ──> response: loss over weighted PLS of one strategy
        ──> expected: mean losses with both kinds of noise
"""

from __future__ import annotations

from cprsim.staleness.curve import FEWEST_SEEDS_TO_USE, StalenessCurve
from cprsim.staleness.expected import (
    MeanLoss,
    Prediction,
    jackknife_error,
    mean_loss,
    nothing_lost,
    pooled,
)
from cprsim.staleness.names import (
    ALWAYS,
    MORE_BYTES,
    STRATEGIES,
    TRACKERS,
    WHOLE,
    Metric,
    lost_portion,
    strategy_key,
)
from cprsim.staleness.response import (
    BY_PLS,
    COUNTED,
    Replicate,
    Response,
    Weight,
    between,
    mean_between,
)

__all__ = [
    "ALWAYS",
    "BY_PLS",
    "COUNTED",
    "FEWEST_SEEDS_TO_USE",
    "MORE_BYTES",
    "STRATEGIES",
    "TRACKERS",
    "WHOLE",
    "MeanLoss",
    "Metric",
    "Prediction",
    "Replicate",
    "Response",
    "StalenessCurve",
    "Weight",
    "between",
    "jackknife_error",
    "lost_portion",
    "mean_between",
    "mean_loss",
    "nothing_lost",
    "pooled",
    "strategy_key",
]
