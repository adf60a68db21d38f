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
    Stage,
    StageKind,
    Tier,
    To,
)

REMOTE, TRAINERS = "remote", "trainers"


def as_system(policy: RecoveryPolicy, costs: Costs, cluster: Cluster) -> Policy:
    """A strategy as a recovery system.

    Raises
    ------
    ParameterError
        the strategy saves rows first, or trainers are replaced while the others go on
    """
    if policy.sub_saves is not None:
        raise ParameterError(f"`{policy.name}` saves rows first: not with `scopes` or `horizon`")
    if cluster.slots_beside:
        raise ParameterError("trainers in step do not go with `scopes` or `horizon`")
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
