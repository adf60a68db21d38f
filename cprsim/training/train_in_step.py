"""Trainers in step, from a scenario: their setting, and a stand-in trained on as many replicas.

The order of events in time comes from `sync`, their effect on a model from `kernel`. The stand-in
has fewer threads and smaller batches than the scenario's job, and synchronises at the same times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.records import Activity, Cluster, EventKind, EventLog, Floats, Holds, Ints, SubSaves
from cprsim.job.sync_setting import ALL, SyncEvent, SyncLog, SyncSetting
from cprsim.scenario.quantities import duration_of
from cprsim.scenario.reading import LoadedScenario
from cprsim.training.in_step.simulation import run_log
from cprsim.training.in_step.trainers import Outage
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.playing import N_MARKS
from cprsim.training.kernel.replicas import Replicas
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.schedule import of_log
from cprsim.training.kernel.training import ProxyTrainer
from cprsim.training.proxy_model import ProxyModel


def sync_setting(loaded: LoadedScenario) -> SyncSetting:
    """How the trainers of a scenario stay in step.

    Raises ScenarioError where it does not say.
    """
    section = loaded.scenario.sync
    if section is None:
        message = "is missing: say how the trainers stay in step (docs/shadowsync.md)"
        raise loaded.error("sync", message)
    link, algorithm = section.trainer_bandwidth_bytes_per_h, section.algorithm
    n_servers = (section.servers or 0) if algorithm.has_servers else 0  # others stand idle
    return SyncSetting(
        algorithm=algorithm,
        n_trainers=loaded.scenario.cluster.trainers,
        n_threads=section.threads,
        batch=section.batch,
        iteration=duration_of(section.iteration),
        dense_bytes=section.dense_size_bytes,
        server_bandwidth_bytes_per_h=n_servers * (section.server_bandwidth_bytes_per_h or 0.0),
        n_servers=n_servers,
        trainer_bandwidth_bytes_per_h=inf if link is None else link,
        every_iterations=section.every if isinstance(section.every, int) else None,
        every_h=section.every if isinstance(section.every, float) else None,
        elastic=section.elastic,
        momentum=section.momentum or 0.0,
        block_rate=section.block_rate or 1.0,
        stragglers=section.stragglers,
        shadow_cost_fraction=section.shadow_cost_fraction,
    )


@dataclass(frozen=True, slots=True)
class Team:
    """Replicas to train: how they stay in step, and the model that all begin with."""

    stand_in: ProxyModel
    setting: SyncSetting  # of the stand-in
    start: ProxyTrainer

    @property
    def n_trained(self) -> int:
        """Clicks that the replicas train: those that are left."""
        return self.start.n_samples - self.start.position

    def replicas(self) -> Replicas:
        """New ones, at the start of their run."""
        new = Replicas(self.stand_in.shape, self.stand_in.train, self.stand_in.plan, self.setting)
        new.go_on_from(self.start)
        return new

    def log(self, outages: Sequence[Outage] = ()) -> SyncLog:
        """Their events in time; outages in the stand-in's time."""
        plan = self.stand_in.plan
        n_batches = ceil(self.n_trained / plan.batch)
        return run_log(self.setting, n_batches, plan.seed, outages)


def team_of(loaded: LoadedScenario, stand_in: ProxyModel) -> Team:
    """The stand-in's trainers as a scenario describes them."""
    setting, section = sync_setting(loaded), loaded.scenario.sync
    assert section is not None, "else there is no setting"
    small = setting.stand_in(section.stand_in.threads, stand_in.plan.batch)
    return Team(stand_in, small, warm_start(stand_in, section.stand_in.warm_start_fraction))


def warm_start(stand_in: ProxyModel, fraction: float) -> ProxyTrainer:
    """One trainer that has trained a share of the clicks alone.

    Raises ParameterError where a plan has several epochs: trainers in step train in one pass.
    """
    if stand_in.plan.epochs != 1:
        raise ParameterError("trainers in step train in one pass: `kernel.epochs` must be 1")
    trainer = stand_in.trainer()
    trainer.run(trainer.on_grid(fraction * trainer.n_samples))
    return trainer


def train_in_step(team: Team) -> tuple[Quality, float]:
    """Train the rest without failures: the mean replica on the test clicks, syncs per trainer."""
    replicas, log = team.replicas(), team.log()
    replicas.train(log)
    synced = log.trainer[log.kind == SyncEvent.SYNCED]
    n_of_all = int(np.sum(synced == ALL))
    n_syncs = n_of_all + (len(synced) - n_of_all) / team.setting.n_trainers
    return replicas.evaluate(team.stand_in.test), n_syncs


# ----------------------------------------------------------------------------- with failures


def outages_of(log: EventLog, useful_h: float, cluster: Cluster, run_h: float) -> list[Outage]:
    """Trainers and sync servers that failed in a simulated job, in the time of a stand-in's run.

    A node is away from its failure to its replacement, in hours of work: a stop of the whole job
    stops the others too, so that a node replaced during the stop was not away.
    """
    works = np.isin(log.activity[:-1], (Activity.USEFUL, Activity.LOST))
    work_h = np.append(0.0, np.cumsum(np.where(works, np.diff(log.at_h), 0.0)))
    outages = []
    for slots, is_server in (
        (cluster.replica_slots, False),
        (cluster.slots_that_hold(Holds.CENTRAL), True),
    ):
        for i in np.flatnonzero((log.kind == EventKind.FAILED) & np.isin(log.slot, slots)):
            of_slot = np.isin(log.kind, (EventKind.REPLACED, EventKind.FAILED))
            of_slot &= log.slot == log.slot[i]
            later = np.flatnonzero(of_slot[i + 1 :])
            back = i + 1 + int(later[0]) if len(later) else i
            until_h = work_h[back if log.kind[back] == EventKind.REPLACED else i]
            at_h, away_h = (float(h) * run_h / useful_h for h in (work_h[i], until_h - work_h[i]))
            outages.append(Outage(at_h, away_h, int(log.slot[i]) - slots.start, is_server))
    return outages


def train_with_failures(
    team: Team, log: EventLog, useful_h: float, cluster: Cluster, sub_saves: SubSaves | None
) -> tuple[Replicas, Saver]:
    """Train the rest of the clicks with the failures of a simulated job under partial recovery."""
    replicas, batch = team.replicas(), team.stand_in.plan.batch
    saver, start = Saver(replicas.central, team.stand_in.shards, sub_saves), replicas.position
    to_do = deque(of_log(log, 1.0, cluster.shard_slots, cluster.replica_slots))  # at hours
    per_h = team.n_trained / useful_h

    def up_to(position: int) -> None:
        """Apply the job's saves and losses up to a position in the data."""
        while to_do:
            if start + round(to_do[0].at * per_h / batch) * batch > position:
                return
            event = to_do.popleft()
            if event.kind is EventKind.SAVE_STARTED:
                replicas.gather()
            saver.do(event)
            if event.kind is EventKind.REVERTED and saver.takes_layers(event):
                replicas.restart_from_central()

    run_h = float(team.log().at_h[-1])
    replicas.train(team.log(outages_of(log, useful_h, cluster, run_h)), up_to)
    up_to(len(replicas.clicks) + batch)
    return replicas, saver


def loss_curve(replicas: Replicas) -> tuple[Ints, Floats]:
    """Training loss over the clicks that the replicas trained, at regular marks."""
    position, loss = (np.array(column) for column in zip(*replicas.batch_losses, strict=True))
    first = position[0] - replicas.plan.batch
    marks = np.unique(np.linspace(first, position[-1], N_MARKS + 1).round().astype(np.int64))
    summed = np.interp(marks, np.append(first, position), np.append(0.0, np.cumsum(loss)))
    return marks[1:], np.diff(summed) / np.diff(marks)
