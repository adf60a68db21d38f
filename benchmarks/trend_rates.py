"""How often the test for a trend sees one, where there is one and where there is none.

python -m benchmarks.trend_rates [logs of each kind, default 1000]
"""

from __future__ import annotations

import sys

import numpy as np

from cprsim.fitting.trend import trend
from tests.fitting.logs import log_of
from tests.fitting.test_trend import WINDOW_H, bursts, by_rate, poisson, renewals

KINDS = {
    "Poisson": poisson,
    "Weibull gaps, shape 3": renewals(lambda rng, m: rng.weibull(3.0, m) / 0.893),
    "gamma gaps, shape 0.5": renewals(lambda rng, m: rng.gamma(0.5, 2.0, m)),
    "Weibull gaps, shape 0.4": renewals(lambda rng, m: rng.weibull(0.4, m) / 3.323),
    "bursts of 4 within 0.2 % of the log": bursts,
    "5 times as often in the middle third": by_rate(
        lambda at: np.where((at > 1 / 3) & (at < 2 / 3), 5.0, 1.0)
    ),
    "5 times as often in the outer fifths": by_rate(
        lambda at: np.where((at > 0.2) & (at < 0.8), 1.0, 5.0)
    ),
    "falling to a fifth": by_rate(lambda at: 5.0**-at),
}


def main(n_logs: int) -> None:
    """Print a row for each kind of log and number of failures."""
    for n in (60, 120, 300):
        for name, draw in KINDS.items():
            rng = np.random.default_rng(1)
            seen = [trend(log_of(draw(rng, n), WINDOW_H)).differs for _ in range(n_logs)]
            print(f"{n:4} failures, {name}: {np.mean(seen):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
