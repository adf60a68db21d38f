"""What failures cost in accuracy: the event logs of one replication, replayed on a real model.

The model is trained once without failures, and once more under each strategy whose failed servers
reload while the others go on. A strategy that rolls everybody back trains the same batches on the
same weights again and ends bit by bit as the run without failures, so it is not trained anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cprsim import pipeline
from cprsim.assemble import Experiment
from cprsim.kernel.metrics import Quality
from cprsim.kernel.replay import Course, LossCurve, losses_of_shards, replay
from cprsim.kernel.saving import Saver
from cprsim.kernel.training import Trainer
from cprsim.records import EventKind, EventLog, Floats, OnFailure, RecoveryPolicy
from cprsim.stand_in import StandIn

OnProgress = Callable[[str, int, int], None]  # which run, samples done, samples to do


@dataclass(frozen=True, slots=True)
class Trained:
    """One finished run: how good its model is, and its loss on the way."""

    quality: Quality  # on the test clicks
    curve: LossCurve


@dataclass(frozen=True, slots=True)
class StrategyAccuracy:
    """What the failures of one replication did under one strategy."""

    policy: RecoveryPolicy
    trained: Trained | None  # None: the job did not finish
    reverted_at: Floats  # (n,) shares of the job done when shards went back
    overhead_fraction: float  # (wall - useful) / useful, of this replication
    pls: float
    bytes_written: int | None  # by saves of the stand-in; None where it was not trained anew
    tracker_fraction: float  # memory of the tracker over that of the rows it tracks; 0 without one


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Everything that `cprsim train` shows."""

    stand_in: StandIn
    replication: int
    whole: Trained  # without failures
    strategies: tuple[StrategyAccuracy, ...]


def measure(
    experiment: Experiment, what: StandIn, replication: int, on_progress: OnProgress
) -> Accuracy:
    """Train the stand-in without failures, and with those of one replication per strategy."""
    logs = pipeline.replay(experiment, replication)
    outcome = pipeline.fold(experiment, logs)
    whole = _without_failures(what, on_progress)
    strategies = []
    for simulated in outcome.strategies:
        log = logs[simulated.policy.name]
        trained, saver = _under(experiment, what, simulated.policy, log, whole, on_progress)
        costs, losses = simulated.costs, simulated.losses
        strategies.append(
            StrategyAccuracy(
                policy=simulated.policy,
                trained=trained,
                reverted_at=losses_of_shards(log, experiment.useful_h),
                overhead_fraction=float(costs.wall_h[0] / experiment.useful_h - 1.0),
                pls=float(np.sum(losses.since_save_h * losses.share) / experiment.useful_h),
                bytes_written=None if saver is None else saver.bytes_written,
                tracker_fraction=0.0 if saver is None else saver.tracker_fraction,
            )
        )
    return Accuracy(what, replication, whole, tuple(strategies))


def _without_failures(what: StandIn, on_progress: OnProgress) -> Trained:
    trainer = _trainer(what)
    course = Course(trainer, lambda done: on_progress("no failures", done, trainer.n_samples))
    course.go_to(trainer.n_samples)
    return Trained(trainer.evaluate(what.test), course.curve())


def _under(
    experiment: Experiment,
    what: StandIn,
    policy: RecoveryPolicy,
    log: EventLog,
    whole: Trained,
    on_progress: OnProgress,
) -> tuple[Trained | None, Saver | None]:
    """The run under one policy, None where its job did not finish; its saver where it had one."""
    if log.kind[-1] != EventKind.FINISHED:
        return None, None
    if policy.on_failure is not OnFailure.RELOAD:
        return whole, None
    trainer = _trainer(what)
    course = Course(trainer, lambda done: on_progress(policy.name, done, trainer.n_samples))
    saver = Saver(trainer, what.shards, policy.sub_saves)
    curve = replay(log, experiment.useful_h, experiment.cluster.shard_slots, course, saver)
    return Trained(trainer.evaluate(what.test), curve), saver


def _trainer(what: StandIn) -> Trainer:
    trainer = Trainer(what.shape, what.train, what.plan)
    trainer.initialise()
    return trainer
