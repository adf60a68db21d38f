"""The paper's strategies as recovery systems: none, full, partial, and priority saving."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from cprsim.failures.distributions import Constant
from cprsim.records import (
    STATE,
    Cluster,
    Costs,
    Duration,
    Floats,
    Holds,
    OnFailure,
    RecoveryPolicy,
    Role,
    Storage,
    SubSaves,
    Transfer,
)
from cprsim.recovery.legal import MOST_UNITS
from cprsim.recovery.policy import (
    Capture,
    Elastic,
    Groups,
    Medium,
    Outside,
    Policy,
    Reverts,
    Rule,
    Scope,
    Stage,
    StageKind,
    Tier,
    To,
)

REMOTE, TRAINERS, CENTRAL = "remote", "trainers", "central"  # tiers
DETECT_STAGE, RESCHEDULE_STAGE = 0, 2  # of every rule
WHOLE = SubSaves("none", fraction=1.0)  # every save is whole


def draw_names(scopes: tuple[Scope, ...], n_rules: int) -> tuple[tuple[str, str], ...]:
    """Names of the draws of costs as systems have them, and as the strategies' own engines do."""
    return (
        (f"stall/{REMOTE}", "save/stall"),
        (f"background/{REMOTE}", "save/background"),
        (f"load/{REMOTE}", "load"),
        *((f"detect/{scope.name}", "detect") for scope in scopes),
        *((f"stage/{rule}/{DETECT_STAGE}", "detect") for rule in range(n_rules)),
        *((f"stage/{rule}/{RESCHEDULE_STAGE}", "reschedule") for rule in range(n_rules)),
    )


def as_system(policy: RecoveryPolicy, costs: Costs, cluster: Cluster) -> Policy:
    """A strategy as a recovery system.

    Partial recovery takes the struck shards back, unless the dense model is lost with the last
    trainer: then all shards go back with it. Trainers that stay in step go on without a lost one,
    at the speed of those that are left.
    """
    roles = [role.name for role in cluster.roles if role.holds is Holds.SHARD]
    role = STATE if len(roles) > 1 else "".join(roles)
    stages = (
        Stage(StageKind.DETECT),
        Stage(StageKind.WAIT),
        Stage(StageKind.RESCHEDULE, costs.reschedule),
        Stage(StageKind.LOAD),
    )
    remote = Tier(REMOTE, Medium.REMOTE, Outside(), role, load=_load(costs))
    captures = _captures(policy, costs, len(cluster.slots(role)))
    made = strategy(policy.name, policy.on_failure, stages, remote, captures, cluster)
    return made.with_storage(costs.reliability)


def strategy(
    name: str,
    on_failure: OnFailure,
    stages: tuple[Stage, ...],
    remote: Tier,
    captures: tuple[Capture, ...],
    cluster: Cluster,
) -> Policy:
    """One of the strategies; the last of the stages loads from the tier."""
    if on_failure is OnFailure.RESTART:
        return Policy(name, (Rule(Reverts.ALL, stages[:-1], To.START),))
    if on_failure is OnFailure.ROLL_BACK:
        rules = (Rule(Reverts.ALL, stages, sources=(remote.name,)),)
        return Policy(name, rules, (remote,), captures)
    return _partial(name, stages, remote, captures, cluster)


def _partial(
    name: str,
    stages: tuple[Stage, ...],
    remote: Tier,
    captures: tuple[Capture, ...],
    cluster: Cluster,
) -> Policy:
    """Partial recovery."""
    all_go_back = Rule(Reverts.SHARDS, stages, sources=(remote.name,))
    replicas = next((one for one in cluster.roles if one.holds is Holds.REPLICA), None)
    if replicas is None:
        struck_go_back = Rule(Reverts.STRUCK, stages, sources=(remote.name,))
        return Policy(name, (struck_go_back, all_go_back), (remote,), captures)
    tiers = [remote, _live(TRAINERS, replicas, replicas.n_nodes - 1)]
    others = tuple(one.name for one in cluster.roles if one is not replicas)
    held = [Rule(Reverts.STRUCK, stages, needs=(TRAINERS,), sources=(remote.name,))]
    central = next((one for one in cluster.roles if one.holds is Holds.CENTRAL), None)
    if central is not None:
        tiers.append(_live(CENTRAL, central, 0))
        held.append(Rule(Reverts.STRUCK, stages, needs=(CENTRAL,), sources=(remote.name,)))
    go_on, elastic = _in_step(stages, replicas, cluster)
    no_trainer_is_struck = Rule(Reverts.STRUCK, stages, sources=(remote.name,), roles=others)
    rules = (*go_on, no_trainer_is_struck, *held, all_go_back)
    return Policy(name, rules, tuple(tiers), captures, elastic)


def _in_step(
    stages: tuple[Stage, ...], replicas: Role, cluster: Cluster
) -> tuple[tuple[Rule, ...], Elastic | None]:
    """What is done about nodes that nobody waits for, and the speed without some trainers."""
    beside = tuple(role.name for role in cluster.roles if role.others_go_on)
    if not beside:
        return (), None
    meanwhile = tuple(Stage(stage.kind, stage.cost, blocks=False) for stage in stages[:-1])
    speeds = [1.0 - n / replicas.n_nodes for n in range(replicas.n_nodes + 1)]
    return (
        (Rule(Reverts.NOBODY, meanwhile, needs=(TRAINERS,), roles=beside),),
        Elastic(replicas.name, tuple(speeds[:MOST_UNITS])),
    )


def _live(name: str, role: Role, tolerates: int) -> Tier:
    """State that is always current, and lost with more nodes of a role than these."""
    return Tier(name, Medium.DEVICE, Groups(role.n_nodes, tolerates), role.name)


def _captures(policy: RecoveryPolicy, costs: Costs, n_servers: int) -> tuple[Capture, ...]:
    if policy.save_interval_h == inf:
        return ()
    parts = policy.sub_saves or WHOLE
    return (
        Capture(
            REMOTE,
            every_h=parts.fraction * policy.save_interval_h,
            stall=_part_of(costs, costs.save_stall, n_servers, parts.cost_share, parts.extra_h),
            background=_part_of(costs, costs.save_background, n_servers, parts.cost_share),
            parts=parts.n_per_interval,
        ),
    )


def _load(costs: Costs) -> Duration | Storage | None:
    return costs.storage if isinstance(costs.load, Transfer) else costs.load


def _part_of(
    costs: Costs,
    cost: Duration | Transfer | None,
    n_servers: int,
    fraction: float,
    extra_h: float = 0.0,
) -> Duration | None:
    """What a part of a save takes; a transfer has the storage to itself."""
    if cost is None:
        return None
    if isinstance(cost, Transfer | Constant):
        return Constant(fraction * costs.mean_h(cost, n_servers) + extra_h)
    return cost if (fraction, extra_h) == (1.0, 0.0) else PartOf(cost, fraction, extra_h)


@dataclass(frozen=True, slots=True)
class PartOf:
    """A fraction of a duration, and a time on top of it."""

    whole: Duration
    fraction: float
    extra_h: float

    @property
    def mean_h(self) -> float:
        return self.fraction * self.whole.mean_h + self.extra_h

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """(size,) draws [h], of the same draws of the whole."""
        return self.fraction * self.whole.sample(rng, size) + self.extra_h
