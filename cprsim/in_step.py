"""Trainers in step, from a scenario: their setting, and a stand-in trained on as many replicas.

The course in time comes from `sync`, what it does to a model from `kernel`. The stand-in has fewer
threads and smaller batches than the scenario's job, and the same course in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cprsim.errors import ParameterError, ScenarioError
from cprsim.kernel.metrics import Quality
from cprsim.kernel.replicas import Replicas
from cprsim.kernel.training import Trainer
from cprsim.scenario import LoadedScenario
from cprsim.scenario.durations import duration_of
from cprsim.stand_in import StandIn
from cprsim.sync import (
    ALL,
    Algorithm,
    Outage,
    Stragglers,
    SyncEvent,
    SyncLog,
    SyncSetting,
    run_log,
)


def sync_setting(loaded: LoadedScenario) -> SyncSetting:
    """How the trainers of a scenario stay in step.

    Raises ScenarioError where it does not say.
    """
    section, n_trainers = loaded.scenario.sync, loaded.scenario.cluster.trainers
    if section is None:
        message = "is missing: say how the trainers stay in step (docs/shadowsync.md)"
        raise ScenarioError.at(loaded.place("sync"), message, key="sync")
    link, slow = section.trainer_bandwidth_bytes_per_h, section.stragglers
    try:
        return SyncSetting(
            algorithm=Algorithm(section.algorithm),
            n_trainers=n_trainers,
            n_threads=section.threads,
            batch=section.batch,
            iteration=duration_of(section.iteration).simulable(),
            dense_bytes=section.dense_size_bytes,
            server_bandwidth_bytes_per_h=section.n_servers
            * (section.server_bandwidth_bytes_per_h or 0.0),
            n_servers=section.n_servers,
            trainer_bandwidth_bytes_per_h=float("inf") if link is None else link,
            every_iterations=section.every_iterations,
            every_h=section.every_h,
            elastic=section.elastic,
            momentum=section.momentum or 0.0,
            block_rate=section.block_rate or 1.0,
            stragglers=Stragglers() if slow is None else Stragglers(slow.trainers, slow.factor),
            shadow_cost_fraction=section.shadow_cost_fraction,
        )
    except ParameterError as error:
        raise ScenarioError.at(loaded.place("sync"), str(error), key="sync") from error


@dataclass(frozen=True, slots=True)
class InStep:
    """One run of a stand-in on several replicas."""

    setting: SyncSetting  # of the stand-in
    quality: Quality  # of the mean of all replicas at the end, on the test clicks
    training_loss: float  # of what the replicas trained, each batch predicted first [nats]
    n_syncs: float  # per trainer


def warm_start(what: StandIn, fraction: float) -> Trainer:
    """One trainer that has trained a share of the clicks alone."""
    trainer = Trainer(what.shape, what.train, what.plan)
    trainer.initialise()
    trainer.run(trainer.on_grid(fraction * trainer.n_samples))
    return trainer


def train_in_step(
    what: StandIn,
    setting: SyncSetting,
    start: Trainer,
    outages: Sequence[Outage] = (),
    before: Callable[[Replicas, int], None] | None = None,
) -> InStep:
    """Train the rest of the clicks on replicas that begin with a trainer's model.

    Parameters
    ----------
    setting : of the stand-in
    outages : trainers and sync servers that fail, in the stand-in's time
    before : called with the replicas and their position before each batch
    """
    if what.plan.epochs != 1:
        raise ParameterError("trainers in step train in one pass: `kernel.epochs` must be 1")
    replicas = Replicas(what.shape, what.train, what.plan, setting)
    replicas.go_on_from(start)
    log = run_log(setting, replicas.n_batches, what.plan.seed, outages)
    tell = None if before is None else (lambda position: before(replicas, position))
    replicas.train(log, tell)
    return InStep(
        setting,
        replicas.evaluate(what.test),
        replicas.summed_loss / max(1, replicas.position - start.position),
        syncs_per_trainer(log, setting),
    )


def syncs_per_trainer(log: SyncLog, setting: SyncSetting) -> float:
    """How often a trainer synchronised in a run, on average."""
    synced = log.trainer[log.kind == SyncEvent.SYNCED]
    n_of_all = int(np.sum(synced == ALL))
    return n_of_all + (len(synced) - n_of_all) / setting.n_trainers
