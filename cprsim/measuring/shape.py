"""The shape of a response: W over progress and staleness, phi of each strategy, and their factors.

    weighted PLS = sum over stale shards of share x [(1 - phi) s W(t, s) + phi T/2 W(t, T)]

t is the share of the run done at the failure, s the shard's net staleness and T the save interval,
as shares of the run. W, bilinear between knots and the same for all strategies, says how much a
sample counts by when it is lost and how old the save is; phi, a strategy's own, which part of its
loss goes by the interval instead of by the time since the last save (rows that a sub-save did not
choose).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cprsim.measuring.observed import Shards
from cprsim.records import Floats

AT = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])  # knots of W over progress
STALENESS = np.array([0.0, 0.1, 0.25, 0.5, 1.0])  # and over staleness
REFERENCE = 1  # of STALENESS: the mean of W over progress is 1 there
N_WEIGHTS = len(AT) * len(STALENESS)


@dataclass(frozen=True, slots=True)
class Shape:
    """W and phi of one metric."""

    weight: Floats  # (m, n) at AT x STALENESS
    interval_share: dict[str, float]  # phi by strategy

    def weighted_pls(self, shards: Shards, strategy: str, n_trials: int) -> Floats:
        """(n_trials,) of trials that all have this strategy."""
        since, whole = features(shards, n_trials)
        phi = self.interval_share[strategy]
        weighted: Floats = ((1 - phi) * since + phi * whole) @ self.weight.ravel()
        return weighted


def hats(x: Floats, knots: Floats) -> Floats:
    """(n, n_knots) weights of linear interpolation between knots, level beyond the ends."""
    return np.stack([np.interp(x, knots, unit) for unit in np.eye(len(knots))], axis=1)


def features(shards: Shards, n_trials: int) -> tuple[Floats, Floats]:
    """(n_trials, n_weights) factors of W's knots: by time since the save, and by the interval."""
    return (
        _feature(shards, shards.staleness, shards.staleness, n_trials),
        _feature(shards, shards.interval, shards.interval / 2, n_trials),
    )


def _feature(shards: Shards, old: Floats, lost: Floats, n_trials: int) -> Floats:
    basis = hats(shards.at, AT)[:, :, None] * hats(old, STALENESS)[:, None, :]
    rows = basis.reshape(len(old), -1) * (shards.share * lost)[:, None]
    summed = np.zeros((n_trials, rows.shape[1]))
    np.add.at(summed, shards.trial, rows)
    return summed


def normalised(weight: Floats) -> Floats:
    """W (n_weights,) as a grid with mean 1 over progress at the reference staleness."""
    grid = weight.reshape(len(AT), len(STALENESS))
    scaled: Floats = grid / float(np.trapezoid(grid[:, REFERENCE], AT))
    return scaled
