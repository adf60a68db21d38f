"""Accuracy cost of failures: the event logs of one replication, replayed on a real model.

The model is trained once without failures, and once more under each strategy whose failed servers
reload while the others continue. A strategy that rolls everything back trains the same batches on
the same weights again and ends bit by bit as the run without failures, so it is not trained again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.policy import Policy
from cprsim.job.records import EventKind, EventLog, Floats, Ints
from cprsim.results import pipeline
from cprsim.scenario.assemble import Experiment
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.playing import Course, play
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.schedule import of_log
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.weights import TrainableModel
from cprsim.training.train_in_step import Team, loss_curve, train_with_failures

OnProgress = Callable[[str, int, int], None]  # which run, samples done, samples to do


@dataclass(frozen=True, slots=True)
class Trained:
    """One finished run: the quality of its model, and its training loss."""

    quality: Quality  # on the test clicks
    position: Ints  # (n,) samples, ascending; none if the model does not report its loss
    loss: Floats  # (n,) mean training loss since the position before [nats]


@dataclass(frozen=True, slots=True)
class StrategyAccuracy:
    """Effect of the failures of one replication under one strategy."""

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
    """All results of `cprsim train`."""

    replication: int
    whole: Trained  # without failures
    strategies: tuple[StrategyAccuracy, ...]


Run = tuple[Trained, Saver | None, tuple[int, ...]]  # and what lost trainers had not synchronised
Train = Callable[[Policy | None, EventLog | None], Run]
"""Trains a model from the start, with the failures of a log under a policy, or with none."""


def measure(experiment: Experiment, replication: int, train: Train) -> TrainingOutcome:
    """Train without failures, and with those of one replication per strategy."""
    logs = pipeline.replay(experiment, replication)
    outcome = pipeline.outcome_of_one(experiment, replication)
    whole, _, _ = train(None, None)
    strategies = []
    for simulated in outcome.strategies:
        log, policy = logs[simulated.policy.name], simulated.policy
        costs, losses = simulated.costs, simulated.losses
        finished = log.kind[-1] == EventKind.FINISHED
        trained: Trained | None = whole if finished else None
        saver: Saver | None = None
        lost: tuple[int, ...] = ()
        if finished and policy.leaves_stale:
            if (n_tiers := len(policy.captures)) > 1:
                raise ParameterError(
                    f"`{policy.name}` saves to {n_tiers} tiers; a stand-in can be "
                    "trained under systems that save to one"
                )
            trained, saver, lost = train(policy, log)
        strategies.append(
            StrategyAccuracy(
                policy=policy,
                trained=trained,
                reverted_at=np.unique(
                    log.progress_h[log.kind == EventKind.REVERTED] / experiment.useful_h
                ),
                overhead_fraction=float(costs.wall_h[0] / experiment.useful_h - 1.0),
                pls=float(np.sum(losses.since_save_h * losses.share) / experiment.useful_h),
                bytes_written=None if saver is None else saver.bytes_written,
                tracker_fraction=0.0 if saver is None else saver.tracker_fraction,
                lost_iterations=lost,
            )
        )
    return TrainingOutcome(replication, whole, tuple(strategies))


def runs_of(
    experiment: Experiment, model: TrainableModel, shards: Shards, on_progress: OnProgress
) -> Train:
    """Runs of a model, which is at the start of its run."""
    useful_h, cluster, start = experiment.useful_h, experiment.cluster, model.state()

    def train(policy: Policy | None, log: EventLog | None) -> Run:
        model.restore(start)
        name = "no failures" if policy is None else policy.name
        course = Course(model, lambda done: on_progress(name, done, model.n_samples))
        if policy is None or log is None:
            course.go_to(model.n_samples)
            return Trained(model.evaluate(), *course.curve()), None, ()
        saver = Saver(model, shards, policy.sub_saves)
        schedule = of_log(log, useful_h, cluster.shard_slots, cluster.replica_slots)
        play(model, saver, schedule, course.go_to)
        return Trained(model.evaluate(), *course.curve()), saver, ()

    return train


def runs_in_step(experiment: Experiment, team: Team) -> Train:
    """Runs of a team of replicas.

    A save under full recovery holds every replica, so that rolling back changes none.
    """
    useful_h, cluster = experiment.useful_h, experiment.cluster

    def train(policy: Policy | None, log: EventLog | None) -> Run:
        saver = None
        if policy is None or log is None:
            replicas = team.replicas()
            replicas.train(team.log())
        else:
            replicas, saver = train_with_failures(team, log, useful_h, cluster, policy.sub_saves)
        trained = Trained(replicas.evaluate(team.stand_in.test), *loss_curve(replicas))
        return trained, saver, tuple(replicas.lost_iterations)

    return train
