"""The common case: jobs under full, partial or no recovery in which nothing varies but failures."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import NamedTuple

from cprsim.failures.distributions import Constant
from cprsim.records import STOPPED_BEYOND, Clock, Cluster, Duration, OnFailure, Storage
from cprsim.recovery.classic import REMOTE, strategy
from cprsim.recovery.giving_up import n_saves_due
from cprsim.recovery.policy import (
    Capture,
    Medium,
    Outside,
    Policy,
    Reverts,
    Stage,
    StageKind,
    Tier,
    To,
)
from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.numbers import NEAR, NO_LINK, NONE, OF_JOB

NO_SAVES = Capture(REMOTE)
KINDS = (StageKind.DETECT, StageKind.WAIT, StageKind.RESCHEDULE, StageKind.LOAD)


class Params(NamedTuple):
    """A job of the common case, in plain numbers: what is the same in all replications."""

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
    n_per_whole: int  # so many make a content
    stall_h: float
    period_h: float  # an interval and the save after it
    detect_h: float
    reschedule_h: float
    load_h: float  # where loads share no link
    first_shard: int
    n_shards: int
    first_replica: int
    n_replicas: int
    # columns of the hours, NONE where there are none
    lost: int
    save: int
    detect: int
    reschedule: int
    load: int
    shard_bytes: float  # to load; 0 where loads share no link
    rate_bytes_per_h: float  # of the link
    server_rate_bytes_per_h: float


@lru_cache(maxsize=1024)
def params_of(job: SimulatedJob) -> Params | None:
    """The parameters of a job, if it is of the common case."""
    policy, cluster = job.policy, job.cluster
    if len(job.scopes) != 1 or job.horizon_h is not None or cluster.n_spares is not None:
        return None
    scope = job.scopes[0]
    if scope.notice_h or not scope.needs_node or not is_steady(policy, cluster):
        return None
    capture = policy.captures[0] if policy.captures else NO_SAVES
    tier_load = policy.tiers[0].load if policy.tiers else None
    link = tier_load if isinstance(tier_load, Storage) else NO_LINK
    if link.bytes_of_shards:
        return None
    load = None if isinstance(tier_load, Storage) else tier_load
    costs = {stage.kind: stage.cost for stage in policy.rules[-1].stages}
    detect = costs[StageKind.DETECT] or scope.detect
    varies = (capture.stall, detect, costs[StageKind.RESCHEDULE], load)
    if any(not (cost is None or isinstance(cost, Constant)) for cost in varies):
        return None

    def column(part: str) -> int:
        return OF_JOB + policy.parts.index(part) if part in policy.parts else NONE

    every_h = capture.every_h or inf
    n_saves = n_saves_due(every_h, job.useful_h)
    interval_h = every_h if n_saves else job.useful_h
    shards, replicas = cluster.shard_slots, cluster.replica_slots
    return Params(
        useful_h=job.useful_h,
        deadline_h=STOPPED_BEYOND * job.useful_h,
        near_h=NEAR * job.useful_h,
        on_progress=job.clock is Clock.PROGRESS,
        on_wall=job.clock is Clock.WALL,
        reloads=policy.rules[-1].reverts is not Reverts.ALL,
        rolls_back=policy.rules[-1].reverts is Reverts.ALL and policy.rules[-1].to is To.NEWEST,
        interval_h=interval_h,
        n_saves=n_saves,
        tail_h=max(0.0, job.useful_h - n_saves * interval_h),
        n_per_whole=capture.parts,
        stall_h=_hours(capture.stall),
        period_h=interval_h + _hours(capture.stall),
        detect_h=_hours(detect),
        reschedule_h=_hours(costs[StageKind.RESCHEDULE]),
        load_h=_hours(load),
        first_shard=shards.start,
        n_shards=len(shards),
        first_replica=replicas.start,
        n_replicas=len(replicas),
        lost=column("lost"),
        save=column("save"),
        detect=column("detect"),
        reschedule=column("reschedule"),
        load=column("load"),
        shard_bytes=link.shard_bytes,
        rate_bytes_per_h=link.bandwidth_bytes_per_h,
        server_rate_bytes_per_h=link.server_bandwidth_bytes_per_h,
    )


def is_steady(policy: Policy, cluster: Cluster) -> bool:
    """Whether a policy is one of the strategies, and its saves do nothing but stall the job."""
    last = policy.rules[-1]
    remote = policy.tiers[0] if policy.tiers else Tier(REMOTE, Medium.REMOTE, Outside(), "")
    on_failure = OnFailure.RELOAD
    stages = last.stages
    if last.reverts is Reverts.ALL:
        on_failure = OnFailure.ROLL_BACK
        if last.to is To.START:
            on_failure, stages = OnFailure.RESTART, (*stages, Stage(StageKind.LOAD))
    known = strategy(policy.name, on_failure, stages, remote, policy.captures, cluster)
    return (
        policy == known
        and policy.elastic is None
        and tuple(stage.kind for stage in stages) == KINDS
        and all(stage.blocks for stage in stages)
        and stages[-1].cost is None
        and isinstance(remote.placement, Outside)
        and (not policy.tiers or cluster.slots(remote.role) == cluster.shard_slots)
        and not remote.p_corrupt
        and len(policy.captures) <= 1
        and all(
            capture.every_h is not None and capture.background is None and not capture.p_fail
            for capture in policy.captures
        )
    )


def _hours(cost: Duration | None) -> float:
    return 0.0 if cost is None else cost.mean_h
