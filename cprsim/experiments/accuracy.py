"""What failures cost in accuracy: the event logs of one replication, replayed on a real model.

The model is trained once without failures, and once more under each strategy whose failed servers
reload while the others go on. A strategy that rolls all back trains the same batches on the
same weights again and ends bit by bit as the run without failures, so it is not trained anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cprsim.errors import ParameterError
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment
from cprsim.experiments.proxy_model import ProxyModel
from cprsim.experiments.train_in_step import Team, loss_curve, train_with_failures
from cprsim.kernel.metrics import Quality
from cprsim.kernel.replay import LossCurve, TracedTraining, losses_of_shards, replay
from cprsim.kernel.saving import Saver
from cprsim.kernel.training import ProxyTrainer
from cprsim.records import EventKind, EventLog, Floats
from cprsim.recovery.policy import Policy

OnProgress = Callable[[str, int, int], None]  # which run, samples done, samples to do


@dataclass(frozen=True, slots=True)
class Trained:
    """One finished run: how good its model is, and its loss on the way."""

    quality: Quality  # on the test clicks
    curve: LossCurve


@dataclass(frozen=True, slots=True)
class StrategyAccuracy:
    """What the failures of one replication did under one strategy."""

    policy: Policy
    trained: Trained | None  # None: the job did not finish
    reverted_at: Floats  # (n,) shares of the job done when shards went back
    overhead_fraction: float  # (wall - useful) / useful, of this replication
    pls: float
    bytes_written: int | None  # by saves of the stand-in; None where it was not trained anew
    tracker_fraction: float  # memory of the tracker over that of the rows it tracks; 0 without one
    lost_iterations: tuple[int, ...] = ()  # of each lost trainer, since it last synchronised


@dataclass(frozen=True, slots=True)
class TrainingOutcome:
    """Everything that `cprsim train` shows."""

    stand_in: Any  # what was trained: a `ProxyModel`, or a model of the user's own
    replication: int
    whole: Trained  # without failures
    strategies: tuple[StrategyAccuracy, ...]
    team: Team | None = None  # of trainers in step; None: one model, trained plainly


def measure(
    experiment: Experiment,
    what: ProxyModel,
    replication: int,
    on_progress: OnProgress,
    team: Team | None = None,
) -> TrainingOutcome:
    """Train the stand-in without failures, and with those of one replication per strategy."""
    runs = _OneModel(experiment, what, on_progress) if team is None else _InStep(experiment, team)
    return measure_by(runs, experiment, what, replication, team)


def measure_by(
    runs: Runs,
    experiment: Experiment,
    what: Any,
    replication: int,
    team: Team | None = None,
) -> TrainingOutcome:
    """The same by runs of any model."""
    logs = pipeline.replay(experiment, replication)
    outcome = pipeline.outcome_of_one(experiment, replication)
    whole = runs.without_failures()
    strategies = []
    for simulated in outcome.strategies:
        log = logs[simulated.policy.name]
        costs, losses, policy = simulated.costs, simulated.losses, simulated.policy
        finished = log.kind[-1] == EventKind.FINISHED
        trained: Trained | None = whole if finished else None
        saver: Saver | None = None
        lost: tuple[int, ...] = ()
        if finished and policy.leaves_stale:
            _require_one_tier(policy)
            trained, saver, lost = runs.under(policy, log)
        strategies.append(
            StrategyAccuracy(
                policy=policy,
                trained=trained,
                reverted_at=losses_of_shards(log, experiment.useful_h),
                overhead_fraction=float(costs.wall_h[0] / experiment.useful_h - 1.0),
                pls=float(np.sum(losses.since_save_h * losses.share) / experiment.useful_h),
                bytes_written=None if saver is None else saver.bytes_written,
                tracker_fraction=0.0 if saver is None else saver.tracker_fraction,
                lost_iterations=lost,
            )
        )
    return TrainingOutcome(what, replication, whole, tuple(strategies), team)


Run = tuple[Trained, Saver, tuple[int, ...]]  # its saver, and what lost trainers had not synced


class Runs(Protocol):
    """Runs of one model, each from the start."""

    def without_failures(self) -> Trained:
        """One run to its end."""

    def under(self, policy: Policy, log: EventLog) -> Run:
        """One run with the failures of a log."""


def _require_one_tier(policy: Policy) -> None:
    if len(policy.captures) > 1:
        raise ParameterError(
            f"`{policy.name}` saves to {len(policy.captures)} tiers; a stand-in can be "
            "trained under systems that save to one"
        )


@dataclass(frozen=True, slots=True)
class _OneModel:
    """Runs of one model."""

    experiment: Experiment
    what: ProxyModel
    on_progress: OnProgress

    def without_failures(self) -> Trained:
        course = self._course("no failures")
        course.go_to(course.trainer.n_samples)
        return Trained(course.trainer.evaluate(self.what.test), course.curve())

    def under(self, policy: Policy, log: EventLog) -> Run:
        course = self._course(policy.name)
        saver = Saver(course.trainer, self.what.shards, policy.sub_saves)
        job = self.experiment
        curve = replay(
            log, job.useful_h, job.cluster.shard_slots, job.cluster.replica_slots, course, saver
        )
        return Trained(course.trainer.evaluate(self.what.test), curve), saver, ()

    def _course(self, name: str) -> TracedTraining:
        trainer = ProxyTrainer(self.what.shape, self.what.train, self.what.plan)
        trainer.initialise()
        return TracedTraining(trainer, lambda done: self.on_progress(name, done, trainer.n_samples))


@dataclass(frozen=True, slots=True)
class _InStep:
    """Runs of several replicas that stay in step.

    A save under full recovery holds every replica, so that rolling back changes none.
    """

    experiment: Experiment
    team: Team

    def without_failures(self) -> Trained:
        replicas = self.team.replicas()
        replicas.train(self.team.log())
        return Trained(replicas.evaluate(self.team.what.test), loss_curve(replicas))

    def under(self, policy: Policy, log: EventLog) -> Run:
        job = self.experiment
        replicas, saver = train_with_failures(
            self.team, log, job.useful_h, job.cluster, policy.sub_saves
        )
        trained = Trained(replicas.evaluate(self.team.what.test), loss_curve(replicas))
        return trained, saver, tuple(replicas.lost_iterations)
