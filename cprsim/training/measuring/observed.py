"""Finished trials as arrays: the samples lost, and the accuracy lost against the twin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from cprsim.job.losses import ALWAYS, Metric
from cprsim.job.records import Bools, Floats, Ints, ShardLoss, in_order
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.trials import Trial, stale_shards
from cprsim.training.measuring.design import HELD_OUT
from cprsim.training.measuring.runs import SeedResult


@dataclass(frozen=True, slots=True)
class Observed:
    """Trials of complete seeds."""

    seeds: tuple[int, ...]
    trials: tuple[Trial, ...]
    seed: Ints  # (n,) position in `seeds`
    loss: dict[Metric, Floats]  # (n,) each
    shards: ShardLoss  # that went back: `replication` is the number of the trial

    @property
    def n_failures(self) -> Ints:
        """(n,) of each trial."""
        return np.array([len(trial.failures) for trial in self.trials])

    @property
    def held_out(self) -> Bools:
        """(n,) for the checks, not for the fit."""
        return np.isin(self.n_failures, HELD_OUT)

    @property
    def pls(self) -> Floats:
        """(n,) net."""
        lost = self.shards.since_reload_h * self.shards.share
        return np.asarray(np.bincount(self.shards.replication, lost, len(self.trials)), float)

    @property
    def interval(self) -> Floats:
        """(m,) T_save of each shard's trial, as a share of the run."""
        of_trials = np.array([trial.saving.interval_fraction for trial in self.trials])
        return of_trials[self.shards.replication]

    @property
    def strategies(self) -> tuple[str, ...]:
        """In the order in which they came."""
        return tuple(dict.fromkeys(trial.saving.strategy for trial in self.trials))

    def strategy(self, key: str) -> Bools:
        """Which trials are of a strategy."""
        return np.array([trial.saving.strategy == key for trial in self.trials])

    def some(self, chosen: Bools) -> Observed:
        """Some of the trials, a mask (n,); their seeds keep their positions."""
        number = np.cumsum(chosen) - 1
        shards = in_order(self.shards, np.flatnonzero(chosen[self.shards.replication]))
        return replace(
            self,
            trials=tuple(compress(self.trials, chosen)),
            seed=self.seed[chosen],
            loss={metric: loss[chosen] for metric, loss in self.loss.items()},
            shards=replace(shards, replication=number[shards.replication]),
        )


def observed(results: Iterable[SeedResult], n_servers: int) -> Observed:
    """All trials of the seeds whose twin is finished, in the metrics that all runs have."""
    complete = [(seed, _values(seed.twin.quality)) for seed in results if seed.twin is not None]
    rows = [
        (number, trial, twin, _values(quality))
        for number, (seed, twin) in enumerate(complete)
        for trial, quality in seed.quality.items()
    ]
    further = [set(run) - set(ALWAYS) for _, _, *runs in rows for run in runs]
    metrics = (*ALWAYS, *sorted(set.intersection(*further) if further else ()))
    trials = tuple(trial for _, trial, _, _ in rows)
    return Observed(
        tuple(seed.seed for seed, _ in complete),
        trials,
        np.array([number for number, *_ in rows], np.int64),
        {
            metric: np.array([metric.worse_by(twin[metric], run[metric]) for *_, twin, run in rows])
            for metric in metrics
        },
        stale_shards(trials, n_servers),
    )


def _values(run: Quality) -> dict[Metric, float]:
    further = {Metric(name): value for name, value in run.others.items()}
    return {Metric.AUC: run.auc, Metric.LOG_LOSS: run.log_loss, **further}
