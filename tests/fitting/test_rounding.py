"""No estimate, and no family, depends on how a processor rounds."""

import numpy as np
import pytest

from cprsim.failures.outages import Outages
from cprsim.logs.fit.report import fit_failures
from tests.fitting.logs import outages

N_LOGS = 300
MOVED = 1e-13  # share by which instants are moved: a few roundings
CLOSE = 1e-6


def drawn(seed: int, share: float = 0.0) -> Outages:
    """A log to the second, each instant moved by up to a share of it, equal ones alike."""
    rng = np.random.default_rng(seed)
    n, window_h = int(rng.integers(6, 40)), float(rng.choice([500, 2000, 9000]))
    factors = np.ones(n), rng.gamma(1.5, 1 / 1.5, n), np.where(rng.random(n) < 0.2, 6.0, 1.0)
    shape, factor = rng.choice([0.7, 1.0, 1.5, 3.0]), factors[seed % 3]
    up_h = window_h / rng.uniform(2, 8) * rng.weibull(shape, (n, 60)) * factor[:, None] ** -1.0
    down_h = rng.lognormal(size=(n, 60))
    end_h = np.cumsum(np.ceil(3600 * up_h) + np.ceil(3600 * down_h), axis=1) / 3600
    start_h = end_h - np.ceil(3600 * down_h) / 3600
    if seed % 4 == 3:  # a rack fails at one instant
        start_h[:3, 0] = start_h[:3, 0].max()
        end_h[:3, 0] = start_h[:3, 0] + 1.0
    nodes, _ = np.nonzero(start_h < window_h)
    columns = []
    for at_h in (start_h, end_h):
        known, place = np.unique(at_h[start_h < window_h], return_inverse=True)
        columns.append((known * (1 + share * rng.uniform(-1, 1, len(known))))[place])
    rows = zip(nodes.tolist(), *columns, strict=True)
    return outages(*rows, n_nodes=n, window_h=window_h, window_given=(True, True))


def numbers(log: Outages) -> dict[tuple[str, str], list[float]]:
    """Of each kind of times and family its log-likelihood, estimates, intervals and errors."""
    frames = fit_failures(log, n_bootstrap=0).frames
    found = {(one["times"], one["family"]): [one["log_likelihood"]] for one in frames["families"]}
    for row in frames["parameters"]:
        of_one = [row[name] for name in ("value", "value_low", "value_high", "standard_error")]
        found[row["times"], row["family"]] += [one for one in of_one if np.isfinite(one)]
    return found


@pytest.mark.long
@pytest.mark.parametrize("seed", range(N_LOGS))
def test_inputs_moved_by_rounding_give_the_same_families_and_estimates(seed: int) -> None:
    before, after = numbers(drawn(seed)), numbers(drawn(seed, MOVED))
    assert before.keys() == after.keys()
    for key in before:
        assert after[key] == pytest.approx(before[key], rel=CLOSE, abs=1e-9), key
