"""Prediction of a run by the simulator: same failures, same interval, own costs.

It gets the scenario, the calibration and the kills as they were ordered; nothing of the run itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isinf

import numpy as np

from cprsim.failures.injected import Injected
from cprsim.job.distributions import Constant
from cprsim.job.policy import Policy, Stage, StageKind, Tier
from cprsim.job.records import (
    S_PER_H,
    Clock,
    CostBreakdown,
    Costs,
    Duration,
    EventLog,
    ShardLoss,
    Storage,
)
from cprsim.recovery.paper import at_costs
from cprsim.rehearsal.calibration import RunCalibration
from cprsim.rehearsal.material import Material, image_bytes
from cprsim.rehearsal.orders import Orders
from cprsim.results import pipeline
from cprsim.scenario.assemble import Experiment
from cprsim.simulation.folding import cost_breakdown, shard_loss
from cprsim.training.kernel.saving import Saver


@dataclass(frozen=True, slots=True)
class FoldedRun:
    """One replication, simulated or real: its log, with the costs and losses computed from it."""

    log: EventLog
    costs: CostBreakdown
    losses: ShardLoss

    @property
    def pls(self) -> float:
        """Portion of lost samples, the paper's."""
        useful_h = float(self.log.progress_h[-1])
        return float(np.sum(self.losses.since_save_h * self.losses.share) / useful_h)


def folded(log: EventLog, useful_h: float, n_emb_ps: int) -> FoldedRun:
    """A log with its costs and losses. Raises AccountingError where it does not add up."""
    return FoldedRun(log, cost_breakdown(log, useful_h), shard_loss(log, n_emb_ps))


def predict(model: Experiment, trace: int) -> FoldedRun:
    """One run, simulated."""
    (log,) = pipeline.replay(model, 0).values()
    log = replace(log, replication=np.full_like(log.replication, trace))
    return folded(log, model.useful_h, model.cluster.n_emb_ps)


def model_of(
    experiment: Experiment,
    policy: Policy,
    orders: Orders,
    calibration: RunCalibration,
    material: Material,
) -> Experiment:
    """The scenario with calibrated costs and the kills as its failures."""
    costs = costs_of_run(orders, calibration, material)
    if policy.from_cpr_paper:
        policy = _strategy(policy, orders, calibration, material)
        policy = at_costs(policy, costs, experiment.cluster)
    else:
        policy = _system(policy, costs.reschedule, calibration)
    return replace(
        experiment.simulated(replications=1),
        costs=costs,
        scopes=tuple(replace(scope, detect=costs.detect) for scope in experiment.scopes),
        failures=injected(orders, experiment),
        policies=(policy,),
    )


def injected(orders: Orders, experiment: Experiment) -> Injected:
    """The kills as failures of wall time."""
    return Injected(
        experiment.useful_h,
        range(experiment.cluster.n_nodes),
        at_h=tuple(kill.at_s / S_PER_H for kill in orders.kills),
        repair=None if orders.repair_s is None else Constant(orders.repair_s / S_PER_H),
        clock=Clock.WALL,
        slots_at=tuple(kill.slots for kill in orders.kills),
    )


def costs_of_run(orders: Orders, calibration: RunCalibration, material: Material) -> Costs:
    """Saves as calibrated; loads at the bandwidth that this implies; the rest as configured."""
    speeds, size = orders.speeds, image_bytes(material)
    slower = calibration.slower
    storage = Storage(
        speeds.load_together / slower * S_PER_H,
        speeds.load_alone / slower * S_PER_H,
        size,
    )
    shares = not isinf(speeds.load_together)
    fixed = Constant(size / speeds.load_alone * slower / S_PER_H)
    return Costs(
        save_stall=Constant(calibration.stall_s / S_PER_H),
        load=storage if shares else fixed,
        detect=Constant(speeds.detect_s / S_PER_H),
        reschedule=Constant((speeds.reschedule_s + calibration.activation_s) / S_PER_H),
        storage=storage if shares else None,
    )


def _strategy(
    policy: Policy, orders: Orders, calibration: RunCalibration, material: Material
) -> Policy:
    """A strategy, its sub-saves by the bytes that the kernel writes."""
    if policy.sub_saves is None or not orders.due:
        return policy
    share = bytes_share(policy, orders, material)
    extra_h = calibration.extra_s.get(policy.name, calibration.overhead_s) / S_PER_H
    return replace(policy, sub_saves=replace(policy.sub_saves, bytes_share=share, extra_h=extra_h))


def _system(system: Policy, reschedule: Duration, calibration: RunCalibration) -> Policy:
    """A recovery system: each of its saves stops the job to be captured, and takes a bit more."""
    pause_h, more_h = calibration.pause_s / S_PER_H, calibration.overhead_s / S_PER_H

    def rescheduled(stage: Stage) -> Stage:
        return replace(stage, cost=reschedule) if stage.kind is StageKind.RESCHEDULE else stage

    def loaded(tier: Tier) -> Tier:
        if tier.load is None or isinstance(tier.load, Storage):
            return tier
        return replace(tier, load=Constant(tier.load.mean_h * calibration.slower))

    return replace(
        system,
        captures=tuple(
            replace(
                capture,
                stall=Constant(Costs.mean_h(capture.stall, 1) + pause_h),
                background=Constant(Costs.mean_h(capture.background, 1) + more_h),
            )
            for capture in system.captures
        ),
        tiers=tuple(map(loaded, system.tiers)),
    ).with_stages(rescheduled)


def bytes_share(policy: Policy, orders: Orders, material: Material) -> float:
    """Bytes of the sub-saves of a run without failures over those of as many whole saves."""
    trainer = material.trainer()
    saver = Saver(trainer, material.shards, policy.sub_saves)
    assert policy.sub_saves is not None
    for due in orders.due:
        trainer.run(due.position)
        saver.save(ends_interval=due.ends_interval)
    all_bytes = material.shards.layout.n_rows * material.row_bytes
    n_wholes = len(orders.due) * policy.sub_saves.fraction
    n_dense = sum(due.ends_interval for due in orders.due)
    dense = trainer.model.dense.nbytes + trainer.optimizer.dense_state.nbytes
    return (saver.bytes_written - n_dense * dense) / (n_wholes * all_bytes)
