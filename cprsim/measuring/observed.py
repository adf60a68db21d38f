"""Finished trials as arrays: what each lost of samples, and of accuracy against its twin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from cprsim.kernel.metrics import Quality
from cprsim.kernel.trials import Trial, stale_shards
from cprsim.measuring.design import HELD_OUT
from cprsim.measuring.runs import SeedResult
from cprsim.records import Bools, Floats, Ints
from cprsim.staleness.names import ALWAYS, Metric


def worse_by(twin: Quality, run: Quality, metric: Metric) -> float:
    """How much worse a run ended than its twin."""
    return metric.worse_by(value_of(twin, metric), value_of(run, metric))


def value_of(one: Quality, metric: Metric) -> float:
    """One metric of a run."""
    known: dict[str, float] = {Metric.AUC: one.auc, Metric.LOG_LOSS: one.log_loss}
    return known[metric] if metric in known else one.others[metric]


def metrics_of(runs: Sequence[Quality]) -> tuple[Metric, ...]:
    """The metrics that every one of some runs has."""
    there = [set(one.others) for one in runs]
    shared = set.intersection(*there) if there else set()
    return (*ALWAYS, *(Metric(name) for name in sorted(shared)))


@dataclass(frozen=True, slots=True)
class StaleShards:
    """The stale shards of some trials, one row each."""

    trial: Ints  # (m,) number of the trial
    at: Floats  # (m,) share of the run done at the failure
    staleness: Floats  # (m,) net: since the later of last save and last reload, as share of the run
    interval: Floats  # (m,) T_save as share of the run, no longer than what was done
    share: Floats  # (m,) of the servers

    @classmethod
    def of(cls, trials: Sequence[Trial], n_servers: int) -> StaleShards:
        rows = [
            (
                number,
                stale.at_fraction,
                stale.since_reload,
                min(trial.saving.interval_fraction, stale.at_fraction),
                1.0 / n_servers,
            )
            for number, trial in enumerate(trials)
            for stale in stale_shards(trial)
        ]
        trial, *rest = np.array(rows, float).reshape(-1, 5).T
        return cls(trial.astype(np.int64), *rest)


@dataclass(frozen=True, slots=True)
class Observed:
    """Trials of complete seeds."""

    seeds: tuple[int, ...]
    trials: tuple[Trial, ...]
    seed: Ints  # (n,) position in `seeds`
    held_out: Bools  # (n,) for the checks, not for the fit
    loss: dict[Metric, Floats]  # (n,) each
    pls: Floats  # (n,) net
    shards: StaleShards

    @classmethod
    def of(
        cls, seeds: tuple[int, ...], trials: Sequence[Trial], seed: Sequence[int],
        loss: dict[Metric, Floats], shards: StaleShards,
    ) -> Observed:  # fmt: skip
        """Trials with what they lost of accuracy and of samples."""
        pls = np.zeros(len(trials))
        np.add.at(pls, shards.trial, shards.staleness * shards.share)
        held_out = np.array([len(trial.failures) in HELD_OUT for trial in trials], bool)
        return cls(seeds, tuple(trials), np.array(seed, np.int64), held_out, loss, pls, shards)

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
            held_out=self.held_out[chosen],
            loss={metric: loss[chosen] for metric, loss in self.loss.items()},
            pls=self.pls[chosen],
            shards=StaleShards(number[self.shards.trial[stale]], *rest),
        )

    @property
    def strategies(self) -> tuple[str, ...]:
        """In the order in which they came."""
        return tuple(dict.fromkeys(trial.saving.strategy for trial in self.trials))


def observed(results: Iterable[SeedResult], n_servers: int) -> Observed:
    """All trials of the seeds whose twin is finished."""
    complete = [one for one in results if one.twin is not None]
    rows = [
        (number, trial, one.twin.quality, quality)
        for number, one in enumerate(complete)
        if one.twin is not None
        for trial, quality in one.quality.items()
    ]
    trials = [trial for _, trial, _, _ in rows]
    loss = {
        metric: np.array([worse_by(twin, run, metric) for _, _, twin, run in rows])
        for metric in metrics_of([run for _, _, twin, one in rows for run in (twin, one)])
    }
    return Observed.of(
        tuple(result.seed for result in complete),
        trials,
        [number for number, *_ in rows],
        loss,
        StaleShards.of(trials, n_servers),
    )
