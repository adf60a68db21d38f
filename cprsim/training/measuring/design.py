"""Which trials one seed runs: scenes that every strategy meets, and histories held out of the fit.

A scene is one, two, four or eight failures, each of one server up to half of them, at random
instants of a run with saves at a random interval. Numbers, instants and intervals are stratified,
so that few scenes cover the run. Every strategy meets the same scenes: their differences are
paired. Histories of three and of six failures take no part in the fit: they say how well it
predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.sources import stream
from cprsim.job.losses import RESPONSE_KEYS, WHOLE
from cprsim.job.records import Floats
from cprsim.training.kernel.trials import Saving, ShardFailure, Trial

N_FAILURES = ((1, 1, 2, 4), (1, 1, 2, 8))  # of the scenes of an even seed, and of an odd one
HELD_OUT = (3, 6)  # failures of a run that takes no part in a fit


@dataclass(frozen=True, slots=True)
class Design:
    """Trials of every seed."""

    strategies: tuple[str, ...] = RESPONSE_KEYS  # that meet every scene
    # further single failures under plain partial recovery: they tell W, which all strategies share
    n_more: int = 8
    shortest: float = 0.02  # shortest, longest: T_save of a scene, as shares of the run
    longest: float = 0.8
    held_out: tuple[str, ...] = (WHOLE, "mfu")  # strategies that meet the histories held out

    def trials(self, seed: int, n_servers: int) -> list[Trial]:
        """All of a seed, those held out last."""
        rng = stream(seed, 0, "measuring/scenes")
        shared = _scenes(self, N_FAILURES[seed % 2], n_servers, rng)
        more = _scenes(self, (1,) * self.n_more, n_servers, rng)
        held_out = _scenes(self, HELD_OUT, n_servers, rng)
        return [
            *(Trial(Saving(strategy, every), failures) for every, failures in shared
              for strategy in self.strategies),
            *(Trial(Saving(WHOLE, every), failures) for every, failures in more),
            *(Trial(Saving(strategy, every), failures) for every, failures in held_out
              for strategy in self.held_out if strategy in self.strategies),
        ]  # fmt: skip


def measurable(design: Design, *, has_momentum: bool) -> Design:
    """The design without `momentum` where the optimizer has none, unless it was asked for."""
    if has_momentum or design != Design():
        return design
    return replace(
        design, strategies=tuple(s for s in RESPONSE_KEYS if not s.startswith("momentum"))
    )


def design_of(strategies: Sequence[str]) -> Design:
    """Design of the trials under some strategies; under all strategies if none is named."""
    if not strategies:
        return Design()
    names = tuple(dict.fromkeys(strategies))
    unknown = [name for name in names if name not in RESPONSE_KEYS]
    if unknown or WHOLE not in names:
        wrong = f"`{unknown[0]}` is none" if unknown else f"`{WHOLE}` is missing"
        known = ", ".join(RESPONSE_KEYS)
        raise ParameterError(f"{wrong}; known are {known}", option="--strategy")
    return Design(names)


def _scenes(
    design: Design, n_failures: tuple[int, ...], n_servers: int, rng: np.random.Generator
) -> list[tuple[float, tuple[ShardFailure, ...]]]:
    """(T_save, failures) of some scenes, with the given number of failures in each."""
    n = len(n_failures)
    every = design.shortest * (design.longest / design.shortest) ** _stratified(n, rng)
    n_servers_failed = 1 + (max(1, n_servers // 2) * _stratified(n, rng)).astype(int)
    first = _stratified(n, rng)
    scenes = []
    for i, times in enumerate(n_failures):
        at = first[i : i + 1] if times == 1 else np.sort(rng.random(times))
        n_failed = n_servers_failed[i]
        failures = tuple(_failure(fraction, n_failed, n_servers, rng) for fraction in at.tolist())
        scenes.append((float(every[i]), failures))
    return scenes


def _failure(at: float, n_failed: int, n_servers: int, rng: np.random.Generator) -> ShardFailure:
    return ShardFailure(at, tuple(sorted(rng.choice(n_servers, n_failed, replace=False).tolist())))


def _stratified(n: int, rng: np.random.Generator) -> Floats:
    """(n,) one in each n-th of 0 to 1, in random order."""
    return np.asarray((rng.permutation(n) + rng.random(n)) / max(n, 1))
