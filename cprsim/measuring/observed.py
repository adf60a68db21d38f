"""Finished trials as arrays: what each lost of samples, and of accuracy against its twin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from cprsim.kernel.metrics import Quality
from cprsim.kernel.trials import Trial, stale_shards
from cprsim.measuring.design import HELD_OUT
from cprsim.measuring.runs import SeedResult
from cprsim.records import Bools, Floats, Ints
from cprsim.recovery.losses import ALWAYS, Metric


@dataclass(frozen=True, slots=True)
class StaleShards:
    """The stale shards of some trials, one row each."""

    trial: Ints  # (m,) number of the trial
    at: Floats  # (m,) share of the run done at the failure
    staleness: Floats  # (m,) net: since the later of last save and last reload, as share of the run
    interval: Floats  # (m,) T_save as share of the run, no longer than what was done
    share: Floats  # (m,) of the servers


@dataclass(frozen=True, slots=True)
class Observed:
    """Trials of complete seeds."""

    seeds: tuple[int, ...]
    trials: tuple[Trial, ...]
    seed: Ints  # (n,) position in `seeds`
    loss: dict[Metric, Floats]  # (n,) each
    shards: StaleShards

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
        pls = np.zeros(len(self.trials))
        np.add.at(pls, self.shards.trial, self.shards.staleness * self.shards.share)
        return pls

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
        stale = chosen[self.shards.trial]
        rest = (getattr(self.shards, name)[stale] for name in StaleShards.__slots__[1:])
        return replace(
            self,
            trials=tuple(compress(self.trials, chosen)),
            seed=self.seed[chosen],
            loss={metric: loss[chosen] for metric, loss in self.loss.items()},
            shards=StaleShards(number[self.shards.trial[stale]], *rest),
        )


def observed(results: Iterable[SeedResult], n_servers: int) -> Observed:
    """All trials of the seeds whose twin is finished, in the metrics that all runs have."""
    complete = [(one, _values(one.twin.quality)) for one in results if one.twin is not None]
    rows = [
        (number, trial, twin, _values(quality))
        for number, (one, twin) in enumerate(complete)
        for trial, quality in one.quality.items()
    ]
    others = [set(run) - set(ALWAYS) for _, _, *both in rows for run in both]
    metrics = (*ALWAYS, *sorted(set.intersection(*others) if others else ()))
    stale = [
        (
            number,
            one.at_fraction,
            one.since_reload,
            min(trial.saving.interval_fraction, one.at_fraction),
            1.0 / n_servers,
        )
        for number, (_, trial, _, _) in enumerate(rows)
        for one in stale_shards(trial)
    ]
    of_trial, *rest = np.array(stale, float).reshape(-1, 5).T
    return Observed(
        tuple(one.seed for one, _ in complete),
        tuple(trial for _, trial, _, _ in rows),
        np.array([number for number, *_ in rows], np.int64),
        {
            metric: np.array([metric.worse_by(twin[metric], run[metric]) for *_, twin, run in rows])
            for metric in metrics
        },
        StaleShards(of_trial.astype(np.int64), *rest),
    )


def _values(run: Quality) -> dict[Metric, float]:
    others = {Metric(name): value for name, value in run.others.items()}
    return {Metric.AUC: run.auc, Metric.LOG_LOSS: run.log_loss, **others}
