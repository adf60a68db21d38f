"""Training the chosen histories on fresh seeds, and what comes of every cell.

Seeds come in rounds; in each round every cell whose mean is not yet known well enough gets one
history per seed. Everything is kept in journals, so that a killed run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from cprsim.experiments.assemble import Experiment, assemble
from cprsim.kernel.trials import Trial
from cprsim.measuring.runs import SeedResult, SeedRuns, read_seed, require_seen, run_seed
from cprsim.records import Floats
from cprsim.reproduce.promise.cells import N_LIMITS, PromiseCell, cells_of
from cprsim.reproduce.promise.histories import Histories, histories_of
from cprsim.scenario import LoadedScenario
from cprsim.staleness import StalenessCurve
from cprsim.workers import Workers, run_each

FIRST_SEED = 6001  # fresh: no curve was measured on it
FIRST_ROUND, ROUND = 8, 8  # seeds
MOST_SEEDS = 128
ENOUGH = 0.1  # of the limit, the standard error of a measured mean


@dataclass(frozen=True, slots=True)
class CellLoss:
    """What was measured of one cell."""

    cell: PromiseCell
    mean: float  # measured loss of AUC
    standard_error: float
    n_runs: int
    predicted: float  # mean over the fresh histories, by the curve

    @property
    def is_below(self) -> bool:
        return self.mean <= self.cell.limit

    @property
    def over_limit(self) -> float:
        return self.mean / self.cell.limit

    @property
    def known(self) -> bool:
        return self.standard_error <= ENOUGH * self.cell.limit


@dataclass(frozen=True, slots=True)
class PromisedJob:
    """One scenario of the promise."""

    loaded: LoadedScenario
    curve: StalenessCurve
    experiment: Experiment
    cells: tuple[PromiseCell, ...]
    histories: tuple[Histories, ...]  # of the cells that have an interval

    @classmethod
    def of(
        cls, loaded: LoadedScenario, curve: StalenessCurve, n_limits: int = N_LIMITS
    ) -> PromisedJob:
        experiment = assemble(loaded)
        cells = cells_of(loaded.scenario.name, experiment, curve, n_limits)
        histories = histories_of(cells, experiment, curve)
        return cls(loaded, curve, experiment, tuple(cells), tuple(histories))

    def trials(self, one: Histories) -> list[Trial | None]:
        """What a cell trains, seed by seed."""
        return [one.trial(int(number)) for number in one.chosen(MOST_SEEDS, FIRST_SEED)]


OnRound = Callable[[list[CellLoss], int], None]  # what is known, runs to come


def no_report(losses: list[CellLoss], n_runs: int) -> None:
    """Say nothing of a round."""


def measure_losses(
    jobs: list[PromisedJob],
    folder: Path,
    workers: Workers,
    until: float,
    on_round: OnRound = no_report,
) -> list[CellLoss]:
    """Measure every cell until its mean is known to a tenth of its limit.

    Parameters
    ----------
    folder : of the journals, a folder per scenario in it
    until : instant [s since the epoch] after which no trial is begun
    """
    planned = [{one.cell: job.trials(one) for one in job.histories} for job in jobs]
    kept: list[list[CellLoss]] = [[] for _ in jobs]
    for seeds in _rounds():
        tasks = []
        for number, job in enumerate(jobs):
            open_cells = [one.cell for one in job.histories if not _is_known(kept[number], one)]
            for seed in seeds:
                at = seed - FIRST_SEED
                trials = [planned[number][cell][at] for cell in open_cells]
                some = tuple(dict.fromkeys(trial for trial in trials if trial is not None))
                if some:
                    where = folder / job.loaded.scenario.name
                    tasks.append(SeedRuns(job.loaded, seed, some, where, until, count_bytes=False))
        if not tasks:
            break
        on_round([one for some in kept for one in some], sum(len(t.trials) for t in tasks))
        for number, n_run in run_each(run_seed, tasks, workers):
            require_seen(tasks[number], n_run)
        kept = [
            [loss_of(job, one, planned[n][one.cell], folder) for one in job.histories]
            for n, job in enumerate(jobs)
        ]
    return [one for some in kept for one in some]


def _rounds() -> Iterator[range]:
    first = FIRST_SEED
    n = FIRST_ROUND
    while first < FIRST_SEED + MOST_SEEDS:
        yield range(first, min(first + n, FIRST_SEED + MOST_SEEDS))
        first, n = first + n, ROUND


def _is_known(kept: list[CellLoss], one: Histories) -> bool:
    return any(other.cell == one.cell and other.known for other in kept)


def loss_of(job: PromisedJob, one: Histories, trials: list[Trial | None], folder: Path) -> CellLoss:
    """The measured mean loss of a cell, from the seeds that ran its history.

    Notes
    -----
    Mean predicted loss over all histories, plus the mean difference of measured to predicted over
    the trained ones. The standard error takes the trained ones as drawn at random, which forgoes
    what stratification gains.
    """
    chosen = one.chosen(MOST_SEEDS, FIRST_SEED)
    off = []
    where = folder / job.loaded.scenario.name
    for at, (number, trial) in enumerate(zip(chosen, trials, strict=True)):
        loss = _loss(read_seed(where, FIRST_SEED + at), trial)
        if loss is None:
            break
        off.append(loss - one.predicted[number])
    return estimate(one.cell, np.array(off), *one.mean)


def _loss(result: SeedResult, trial: Trial | None) -> float | None:
    """Loss of AUC of a history on a seed; None where it was not run to its end."""
    if result.twin is None:
        return None
    if trial is None:
        return 0.0  # nothing was lost: the run is its twin
    quality = result.quality.get(trial)
    return None if quality is None else result.twin.quality.auc - quality.auc


def estimate(
    cell: PromiseCell, off: Floats, predicted: float, error_of_predicted: float
) -> CellLoss:
    """A cell's mean from differences of measured to predicted losses (n,)."""
    n = len(off)
    if n < 2:
        return CellLoss(cell, float("nan"), float("inf"), n, predicted)
    error = sqrt(float(off.var(ddof=1)) / n + error_of_predicted**2)
    return CellLoss(cell, predicted + float(off.mean()), error, n, predicted)
