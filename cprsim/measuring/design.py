"""Which trials one seed runs: the same scenes under every strategy, and held-back histories.

A scene is one failure at a random instant of the run with saves at a random interval. Instants and
intervals are stratified, so that few scenes cover the run (a Latin square). Every strategy meets
the same scenes: their differences are paired. Histories of several failures are held back from the
fit; they check that losses add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cprsim.kernel.trials import Saving, ShardFailure, Trial
from cprsim.staleness import STRATEGIES, WHOLE
from cprsim.streams import stream


@dataclass(frozen=True, slots=True)
class History:
    """Several failures of one run, at random instants."""

    n_failures: int
    servers_share: float  # of the servers, that each failure strikes
    interval_fraction: float


# From PLS 0.02 to 0.4: where losses stop adding up has to show.
HISTORIES = (History(3, 0.125, 0.1), History(4, 0.25, 0.2), History(8, 0.5, 0.25))


@dataclass(frozen=True, slots=True)
class Design:
    """What every seed runs.

    Parameters
    ----------
    strategies : that meet every scene
    n_scenes : failures that all strategies meet
    n_more : further scenes of plain partial recovery: they tell W, which all strategies share
    shortest, longest : T_save of a scene, as shares of the run
    histories : held back from the fit
    held_back : strategies that meet the histories
    """

    strategies: tuple[str, ...] = STRATEGIES
    n_scenes: int = 4
    n_more: int = 20
    shortest: float = 0.02
    longest: float = 0.8
    histories: tuple[History, ...] = HISTORIES
    held_back: tuple[str, ...] = (WHOLE, "mfu")

    def scenes(self, seed: int, n_servers: int) -> list[Trial]:
        """The trials of one failure, for the fit."""
        rng = stream(seed, 0, "measuring/scenes")
        shared = _scenes(self, self.n_scenes, n_servers, rng)
        more = _scenes(self, self.n_more, n_servers, rng)
        return [
            *(
                Trial(Saving(strategy, interval), (failure,))
                for interval, failure in shared
                for strategy in self.strategies
            ),
            *(Trial(Saving(WHOLE, interval), (failure,)) for interval, failure in more),
        ]

    def checks(self, seed: int, n_servers: int) -> list[Trial]:
        """The trials of several failures, held back from the fit."""
        rng = stream(seed, 0, "measuring/histories")
        drawn = [(one.interval_fraction, _failures(one, n_servers, rng)) for one in self.histories]
        return [
            Trial(Saving(strategy, interval), failures)
            for interval, failures in drawn
            for strategy in self.held_back
        ]


def _scenes(
    design: Design, n: int, n_servers: int, rng: np.random.Generator
) -> list[tuple[float, ShardFailure]]:
    """(T_save, failure) of n scenes; half of the servers fail, so that much is lost at once."""
    at = (np.arange(n) + rng.random(n)) / max(n, 1)
    share = (rng.permutation(n) + rng.random(n)) / max(n, 1)
    interval = design.shortest * (design.longest / design.shortest) ** share
    k = max(1, n_servers // 2)
    return [
        (float(interval[i]), ShardFailure(float(at[i]), _servers(k, n_servers, rng)))
        for i in range(n)
    ]


def _failures(
    history: History, n_servers: int, rng: np.random.Generator
) -> tuple[ShardFailure, ...]:
    k = max(1, round(history.servers_share * n_servers))
    at = np.sort(rng.random(history.n_failures))
    return tuple(ShardFailure(float(one), _servers(k, n_servers, rng)) for one in at)


def _servers(k: int, n_servers: int, rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(sorted(rng.choice(n_servers, k, replace=False).tolist()))
