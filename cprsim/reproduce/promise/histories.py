"""Fresh failure histories of a cell: many simulated, a few of them chosen to be trained.

The loss that the curve predicts for a history is a control variate: its mean over all histories is
known from very many, so only the difference of what is measured to what is predicted is noisy. The
few are drawn one from each stratum of equal size by predicted loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment
from cprsim.kernel.trials import ROUNDING, Saving, ShardFailure, Trial
from cprsim.records import Floats, Ints, RecoveryPolicy, ShardLoss
from cprsim.reproduce.promise.cells import STRATEGIES, PromiseCell, curve_loss
from cprsim.staleness import StalenessCurve
from cprsim.streams import stream

FRESH_SEED = 3_000_017  # of the failures: not the selector's
N_HISTORIES = 4000
N_STRATA = 8
LONGER_THAN_THE_RUN = 2.0  # stands for an interval without end


@dataclass(frozen=True, slots=True)
class Histories:
    """The simulated histories of one cell."""

    cell: PromiseCell
    predicted: Floats  # (n_histories,)
    losses: ShardLoss
    first_slot: int
    useful_h: float

    @property
    def mean(self) -> tuple[float, float]:
        """Of the predicted loss, and its standard error."""
        n = len(self.predicted)
        return float(self.predicted.mean()), float(self.predicted.std(ddof=1)) / n**0.5

    def chosen(self, n: int, seed: int) -> Ints:
        """Numbers of n histories to train, one from each stratum in turn, strata shuffled."""
        rng = stream(seed, 0, f"promise/{self.cell.name}")
        order = np.argsort(self.predicted, kind="stable")
        strata = np.array_split(order, N_STRATA)
        turns = -(-n // N_STRATA)
        shuffled = [place for _ in range(turns) for place in rng.permutation(N_STRATA)]
        return np.array([rng.choice(strata[place]) for place in shuffled[:n]], np.int64)

    def trial(self, number: int) -> Trial | None:
        """One history as the kernel trains it; None where nothing was lost."""
        assert self.cell.policy is not None, "only cells with an interval have histories"
        rows = np.flatnonzero(self.losses.replication == number)
        if not len(rows):
            return None
        saving = saving_of(self.cell.policy, self.useful_h, STRATEGIES[self.cell.strategy])
        lost = {
            (
                self._at(saving, float(self.losses.progress_h[i]), self.losses.since_save_h[i]),
                int(self.losses.slot[i]) - self.first_slot,
            )
            for i in rows
        }
        # one by one: servers that fail in one recovery have the same progress, but not all at once
        failures = (ShardFailure(at, (server,)) for at, server in sorted(lost))
        return Trial(saving, tuple(failures))

    def _at(self, saving: Saving, progress_h: float, since_save_h: float) -> float:
        """Share of the run at a failure; before the save that is due there, if that was struck."""
        at = progress_h / self.useful_h
        due_here = any(saving.due(at - 2 * ROUNDING, at))
        return max(at - 4 * ROUNDING, 0.0) if since_save_h > 0 and due_here else at


def saving_of(policy: RecoveryPolicy, useful_h: float, key: str) -> Saving:
    """A policy as the kernel saves under it."""
    interval = min(policy.save_interval_h / useful_h, LONGER_THAN_THE_RUN)
    return Saving(key, interval)


def histories_of(
    cells: list[PromiseCell], experiment: Experiment, curve: StalenessCurve, n: int = N_HISTORIES
) -> list[Histories]:
    """Fresh histories, n of each cell of one scenario; all cells meet the same failures."""
    selected = [cell for cell in cells if cell.policy is not None]
    policies = tuple(
        replace(cell.policy, name=cell.name) for cell in selected if cell.policy is not None
    )
    fresh = replace(
        experiment, seed=FRESH_SEED, policies=policies, n_replications=n, precision_fraction=None
    )
    outcome = pipeline.simulate(fresh)
    return [
        Histories(
            cell,
            curve_loss(curve, one.policy, outcome.useful_h, one),
            one.losses,
            experiment.cluster.shard_slots.start,
            outcome.useful_h,
        )
        for cell, one in zip(selected, outcome.strategies, strict=True)
    ]
