"""What the compiled loops take: one job under one policy, in plain numbers and arrays."""

from __future__ import annotations

from functools import lru_cache
from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np

from cprsim.draws import CostDraws, Draws
from cprsim.failures.distributions import Constant
from cprsim.records import (
    STOPPED_BEYOND,
    Clock,
    Duration,
    Floats,
    OnFailure,
    RecoveryPolicy,
    SubSaves,
    Transfer,
)
from cprsim.setting import JobSetting, n_saves_due

NEAR = 1e-9  # of the job: instants nearer than that may change places by rounding
WHOLE = SubSaves("none", fraction=1.0)  # every save is whole
NOT_DRAWN: Floats = np.zeros((0, 0))


class Plan(NamedTuple):
    """What is the same in all replications."""

    useful_h: float
    deadline_h: float
    near_h: float
    on_progress: bool  # failures age with first-time work alone
    on_wall: bool  # failures age in recoveries too
    reloads: bool  # a failure takes the struck shards back, not everybody
    rolls_back: bool  # to the last save; neither of the two: to the start
    interval_h: float  # between saves, if there are any
    n_saves: int
    tail_h: float  # of work after the last one
    n_per_whole: int  # so many make a whole save: 1 unless there are sub-saves
    fraction: float  # of a drawn save that each costs
    extra_h: float  # that each stalls the job on top
    in_background: bool  # saves go on beside the work
    steady: bool  # all saves stall the job for the same time, and then are valid
    saves_vary: bool
    recovery_varies: bool
    is_common: bool  # steady, and no recovery varies
    # what each costs; NaN where that varies
    stall_h: float
    behind_h: float  # of a save, in the background
    period_h: float  # an interval and the save after it, where it is steady
    detect_h: float
    reschedule_h: float
    load_h: float
    first_shard: int
    n_shards: int
    first_replica: int
    n_replicas: int
    n_slots: int
    shard_bytes: float  # to load; 0 where loading is drawn
    rate_bytes_per_h: float  # of the storage
    server_rate_bytes_per_h: float


class Drawn(NamedTuple):
    """Costs that vary, as far as they are drawn: (n_drawn, n_replications) [h]; else empty."""

    stall_h: Floats
    behind_h: Floats
    detect_h: Floats
    reschedule_h: Floats
    load_h: Floats


@lru_cache(maxsize=1024)
def plan_of(setting: JobSetting, policy: RecoveryPolicy) -> Plan:
    """The terms of a job under a policy."""
    useful_h, costs, cluster = setting.useful_h, setting.costs, setting.cluster
    parts = policy.sub_saves or WHOLE
    interval_h = parts.fraction * policy.save_interval_h
    n_saves = n_saves_due(interval_h, useful_h)
    interval_h = interval_h if n_saves else useful_h
    shards, replicas = cluster.shard_slots, cluster.replica_slots
    loads = costs.storage if isinstance(costs.load, Transfer) else None
    stall_h = parts.fraction * _always_h(costs.save_stall, setting) + parts.extra_h
    behind_h = parts.fraction * _always_h(costs.save_background, setting)
    detect_h, reschedule_h, load_h = (
        _always_h(cost, setting) for cost in (costs.detect, costs.reschedule, costs.load)
    )
    steady = costs.save_background is None and not isnan(stall_h)
    recovery_varies = isnan(detect_h + reschedule_h + load_h)
    return Plan(
        useful_h=useful_h,
        deadline_h=STOPPED_BEYOND * useful_h,
        near_h=NEAR * useful_h,
        on_progress=setting.clock is Clock.PROGRESS,
        on_wall=setting.clock is Clock.WALL,
        reloads=policy.on_failure is OnFailure.RELOAD,
        rolls_back=policy.on_failure is OnFailure.ROLL_BACK,
        interval_h=interval_h,
        n_saves=n_saves,
        tail_h=max(0.0, useful_h - n_saves * interval_h),
        n_per_whole=parts.n_per_interval,
        fraction=parts.fraction,
        extra_h=parts.extra_h,
        in_background=costs.save_background is not None,
        steady=steady,
        saves_vary=isnan(stall_h + behind_h),
        recovery_varies=recovery_varies,
        is_common=steady and not recovery_varies,
        stall_h=stall_h,
        behind_h=behind_h,
        period_h=interval_h + stall_h,
        detect_h=detect_h,
        reschedule_h=reschedule_h,
        load_h=load_h,
        first_shard=shards.start,
        n_shards=len(shards),
        first_replica=replicas.start,
        n_replicas=len(replicas),
        n_slots=cluster.n_nodes,
        shard_bytes=0.0 if loads is None else loads.shard_bytes,
        rate_bytes_per_h=inf if loads is None else loads.bandwidth_bytes_per_h,
        server_rate_bytes_per_h=inf if loads is None else loads.server_bandwidth_bytes_per_h,
    )


def _always_h(cost: Duration | Transfer | None, setting: JobSetting) -> float:
    """Hours that it takes each time, with the storage to itself; NaN where they vary."""
    if not (cost is None or isinstance(cost, Transfer | Constant)):
        return nan
    return setting.costs.mean_h(cost, setting.cluster.n_emb_ps)


def drawn_of(costs: CostDraws) -> Drawn:
    """The costs of a block as far as they are drawn."""

    def table(cost: Draws | Transfer | None) -> Floats:
        return cost.table if isinstance(cost, Draws) else NOT_DRAWN

    return Drawn(
        stall_h=table(costs.save_stall),
        behind_h=table(costs.save_background),
        detect_h=table(costs.detect),
        reschedule_h=table(costs.reschedule),
        load_h=table(costs.load),
    )
