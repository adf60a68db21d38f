"""The paper's strategies as recovery systems: full, partial and none at all.

The same hours as the engines that know them by heart; for jobs whose failures have scopes, or that
end at a wall horizon, which those do not know.
"""

from __future__ import annotations

from math import inf

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Cluster, Costs, Duration, Holds, OnFailure, RecoveryPolicy, Transfer
from cprsim.recovery.policy import (
    Capture,
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

REMOTE, TRAINERS = "remote", "trainers"
DETECT_STAGE, RESCHEDULE_STAGE = 0, 2  # of every rule


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


def unlike_a_system(policy: RecoveryPolicy, costs: Costs, cluster: Cluster) -> str | None:
    """Why a strategy can't run as a system, with the very same hours; None where it can."""
    if policy.sub_saves is not None:
        return "rows are saved first (sub_saves)"
    if cluster.slots_beside and policy.on_failure is OnFailure.RELOAD:
        return "lost trainers are replaced while the others go on (sync)"
    if policy.on_failure is OnFailure.RELOAD and isinstance(costs.load, Transfer):
        return "loads that overlap share the storage's bandwidth (costs.load)"
    return None


def as_system(policy: RecoveryPolicy, costs: Costs, cluster: Cluster) -> Policy:
    """A strategy as a recovery system.

    Raises
    ------
    ParameterError
        no system has the same hours (`unlike_a_system`)
    """
    reason = unlike_a_system(policy, costs, cluster)
    if reason is not None:
        raise ParameterError(f"`{policy.name}` is no recovery system: {reason}")
    role = next((role.name for role in cluster.roles if role.holds is Holds.SHARD), "")
    begin = (
        Stage(StageKind.DETECT),
        Stage(StageKind.WAIT),
        Stage(StageKind.RESCHEDULE, costs.reschedule),
    )
    if policy.on_failure is OnFailure.RESTART:
        return Policy(policy.name, (Rule(Reverts.ALL, begin, To.START),))
    stages = (*begin, Stage(StageKind.LOAD))
    n_servers = len(cluster.slots(role))
    load = _hours(costs, costs.load, n_servers)
    tiers = [Tier(REMOTE, Medium.REMOTE, Outside(), role, load=load)]
    captures: tuple[Capture, ...] = ()
    if policy.save_interval_h < inf:
        stall = _hours(costs, costs.save_stall, n_servers)
        background = _hours(costs, costs.save_background, n_servers)
        captures = (
            Capture(REMOTE, every_h=policy.save_interval_h, stall=stall, background=background),
        )
    if policy.on_failure is OnFailure.ROLL_BACK:
        rules: tuple[Rule, ...] = (Rule(Reverts.ALL, stages, sources=(REMOTE,)),)
        return Policy(policy.name, rules, tuple(tiers), captures)
    needs: tuple[str, ...] = ()
    replicas = next((role for role in cluster.roles if role.holds is Holds.REPLICA), None)
    if replicas is not None:
        place = Groups(replicas.n_nodes, replicas.n_nodes - 1)
        tiers.append(Tier(TRAINERS, Medium.DEVICE, place, replicas.name))
        needs = (TRAINERS,)
    rules = (
        Rule(Reverts.STRUCK, stages, needs=needs, sources=(REMOTE,)),
        Rule(Reverts.SHARDS, stages, sources=(REMOTE,)),
    )
    return Policy(policy.name, rules, tuple(tiers), captures)


def _hours(costs: Costs, cost: Duration | Transfer | None, n_servers: int) -> Duration | None:
    """A cost as a duration; a transfer takes what it takes with nobody else about."""
    if cost is None or not isinstance(cost, Transfer):
        return cost
    return Constant(costs.mean_h(cost, n_servers))
