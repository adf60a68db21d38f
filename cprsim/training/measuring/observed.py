"""Finished trials as a table: the samples lost, and the accuracy lost against the twin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from cprsim.job.losses import ALWAYS, Metric
from cprsim.job.records import Bools, Floats, ShardLoss, in_order
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.trials import stale_shards
from cprsim.training.measuring.design import HELD_OUT
from cprsim.training.measuring.runs import SeedResult


@dataclass(frozen=True, slots=True)
class Observed:
    """Trials of complete seeds."""

    seeds: tuple[int, ...]
    # a row each: `trial`, `seed` (its place in `seeds`), `strategy`, `interval` and `at` (T_save
    # and the first failure, as shares of the run), `n_failures`, `held_out` (for the checks, not
    # for the fit), `pls` (net)
    trials: pd.DataFrame
    loss: dict[Metric, Floats]  # (n,) each
    shards: ShardLoss  # that went back: `replication` is the number of the trial

    @property
    def interval(self) -> Floats:
        """(m,) T_save of each shard's trial, as a share of the run."""
        return np.asarray(self.trials["interval"])[self.shards.replication]

    @property
    def strategies(self) -> tuple[str, ...]:
        """In the order in which they came."""
        return tuple(self.trials["strategy"].unique())

    def some(self, chosen: Bools) -> Observed:
        """Some of the trials, a mask (n,); their seeds keep their positions."""
        number = np.cumsum(chosen) - 1
        shards = in_order(self.shards, np.flatnonzero(chosen[self.shards.replication]))
        return replace(
            self,
            trials=self.trials[chosen],
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
    trials = [trial for _, trial, _, _ in rows]
    shards = stale_shards(trials, n_servers)
    n_failures = np.array([len(trial.failures) for trial in trials])
    lost = shards.since_reload_h * shards.share
    return Observed(
        tuple(seed.seed for seed, _ in complete),
        pd.DataFrame(
            {
                "trial": trials,
                "seed": [number for number, *_ in rows],
                "strategy": [trial.saving.strategy for trial in trials],
                "interval": [trial.saving.interval_fraction for trial in trials],
                "at": [trial.failures[0].at_fraction for trial in trials],
                "n_failures": n_failures,
                "held_out": np.isin(n_failures, HELD_OUT),
                "pls": np.bincount(shards.replication, lost, len(trials)),
            }
        ),
        {
            metric: np.array([metric.worse_by(twin[metric], run[metric]) for *_, twin, run in rows])
            for metric in metrics
        },
        shards,
    )


def _values(run: Quality) -> dict[Metric, float]:
    further = {Metric(name): value for name, value in run.others.items()}
    return {Metric.AUC: run.auc, Metric.LOG_LOSS: run.log_loss, **further}
