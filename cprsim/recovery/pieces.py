"""What several recovery systems are put together from: stages, tiers, times of saves, intervals.

A copy to host memory, or to wherever a system copies first, is called a snapshot; writing it to
where it is kept is called persisting it. Costs that vary are taken at their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, comb, inf, isfinite, sqrt
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Duration
from cprsim.recovery.intervals import young_h
from cprsim.recovery.legal import MOST_UNITS
from cprsim.recovery.policy import (
    GROWTH_H,
    OWN,
    Capture,
    Elastic,
    Groups,
    Level,
    Medium,
    Outside,
    Policy,
    Reach,
    Reverts,
    Ring,
    Rule,
    Scope,
    Stage,
    StageKind,
    Tier,
    To,
)
from cprsim.recovery.system import JobFacts

ROUNDING = 1e-9  # of an interval: what is longer by no more fits
REMOTE = "remote"
LOAD = Stage(StageKind.LOAD)


def restart(facts: JobFacts, *more: Stage, reschedule: Duration | None = None) -> tuple[Stage, ...]:
    """The whole job stops until the failure is noticed and its nodes are replaced."""
    return (
        Stage(StageKind.DETECT),
        Stage(StageKind.WAIT),
        Stage(StageKind.RESCHEDULE, facts.reschedule if reschedule is None else reschedule),
        *more,
    )


def left_out(facts: JobFacts, reconfigure_h: float, grows: float | str) -> tuple[Stage, ...]:
    """The others reconfigure, make copies again and go on; and again to take nodes in."""
    reconfigure = Stage(StageKind.REGROUP, Constant(reconfigure_h))
    return (
        Stage(StageKind.DETECT),
        replace(reconfigure, copies_again=True),
        Stage(StageKind.WAIT, blocks=False, each=True),
        Stage(StageKind.RESCHEDULE, facts.reschedule, blocks=False),
        *until_it_grows(grows),
        reconfigure,
    )


def remote_tier(facts: JobFacts, load: Duration | None = None) -> Tier:
    """The remote storage; without a `load` of its own it takes what the job's do."""
    return Tier(REMOTE, Medium.REMOTE, Outside(), facts.role, facts.load if load is None else load)


def back_to_remote(facts: JobFacts, reschedule: Duration | None = None) -> Rule:
    """All go back to the newest save on the remote storage."""
    return Rule(Reverts.ALL, restart(facts, LOAD, reschedule=reschedule), sources=(REMOTE,))


def retry(live: str, stages: tuple[Stage, ...]) -> Rule:
    """As long as a live tier is there all retry the step in hand."""
    return Rule(Reverts.ALL, stages, To.STEP_BEGUN, needs=(live,))


def backed(
    name: str, facts: JobFacts, rule: Rule, live: Tier, every_h: float, **more: Any
) -> Policy:
    """A rule that needs a live tier, and beyond it the job's own saves at this interval."""
    return Policy(
        name,
        rules=(rule, back_to_remote(facts)),
        tiers=(live, remote_tier(facts)),
        captures=(remote_saves(facts, every_h),),
        **more,
    )


def remote_saves(facts: JobFacts, every_h: float) -> Capture:
    """The job's own saves, at this interval."""
    return Capture(
        REMOTE, min(every_h, facts.useful_h), stall=facts.save_stall,
        background=facts.save_background,
    )  # fmt: skip


def snapshot_h(facts: JobFacts, given_h: float | None, wanted_by: str) -> float:
    """How long a copy of a node's state to its host memory takes [h]."""
    if given_h is not None:
        return given_h
    if facts.save_background is None:
        raise ParameterError(
            f"{wanted_by} copies to host memory and writes behind the job; nothing says how long "
            "that copy takes: give `snapshot`, or `costs.save` with `stall` and `background`"
        )
    return facts.save_stall.mean_h


def persist_h(facts: JobFacts, given_h: float | None) -> float:
    """How long a whole save takes to be written to where it is kept, copies before it apart [h]."""
    if given_h is not None:
        return given_h
    return (facts.save_background or facts.save_stall).mean_h


def interval_h(
    facts: JobFacts, given_h: float | None, stall_h: float, behind_h: float, wanted_by: str
) -> float:
    """Progress between saves: the one given, else Young's, no shorter than a save is written [h].

    A save that stalls nobody is made in each step, or as often as there is room.
    """
    if given_h is not None:
        require_positive(wanted_by, every=given_h)
        return given_h
    best_h = young_h(stall_h, facts.mtbf_h) if stall_h > 0.0 else 0.0
    every_h = max(best_h, behind_h, facts.step_h or 0.0)
    if not every_h > 0.0:
        raise ParameterError(f"saves of {wanted_by} take no time here: give `every`")
    return min(every_h, facts.useful_h)


def own_interval_h(facts: JobFacts, given_h: float | None, wanted_by: str) -> float:
    """Progress between the job's own saves: the one given, else as `interval_h` finds it [h]."""
    return interval_h(facts, given_h, facts.save_stall.mean_h, facts.background_h, wanted_by)


def backstop_h(
    facts: JobFacts, given_h: float | None, group: Groups, down_h: float, *, neighbours: bool
) -> float:
    """Progress between the saves that stand behind copies: the one given, else Young's [h]."""
    if given_h is not None:
        return given_h
    every_h = for_losses_beyond_h(facts, group, down_h)
    return for_whole_losses_h(facts, every_h, neighbours=neighbours)


def for_losses_beyond_h(facts: JobFacts, group: Groups, down_h: float) -> float:
    """Young's interval for the failures that strike a group with all down that it can spare [h].

    Each of the others is down for a share ``q = down_h lambda/n`` of the time, n all nodes of the
    job, so that ``C(size - 1, tolerates) q^tolerates`` of the failures of the role meet that many.
    First order in q. Saves without a stall follow one another. Source: derived here.
    """
    p_down = min(1.0, down_h / (facts.mtbf_h * facts.cluster.n_nodes))
    ways = comb(group.size - 1, group.tolerates)
    share = facts.n_nodes / facts.cluster.n_nodes * ways * p_down**group.tolerates
    if share == 0.0:
        return facts.useful_h  # no saves
    every_h = max(young_h(facts.save_stall.mean_h, facts.mtbf_h / share), facts.background_h)
    if every_h == 0.0:
        raise ParameterError("saves cost nothing, so no rule says how often: give `backstop`")
    return every_h


def for_whole_losses_h(facts: JobFacts, every_h: float, *, neighbours: bool) -> float:
    """An interval of saves behind copies, for failures that strike all copies at once too [h].

    Young's interval for the sum of both rates: ``1/w^2 = 1/every^2 + lambda/(2 s)``, lambda the
    rate of such failures. Copies that lie far apart are taken to outlive a rack. Source: derived
    here.
    """
    least = Reach.RACK if neighbours else Reach.ALL
    rate = sum(facts.failures_per_h(one) for one in facts.scopes if one.reach >= least)
    stall_h = facts.save_stall.mean_h
    if rate == 0.0 or stall_h == 0.0:
        return every_h
    others = 0.0 if every_h >= facts.useful_h else every_h**-2.0
    found_h: float = (others + rate / (2.0 * stall_h)) ** -0.5
    return max(found_h, facts.background_h)


def nth_that_fits(behind_h: float, every_h: float) -> int:
    """Of how many saves one can be copied on, if that takes `behind_h` hours."""
    return max(1, ceil(behind_h / every_h - ROUNDING))


def elastic_of(
    facts: JobFacts, throughput: Sequence[float] | None, unit_nodes: int, wanted_by: str
) -> Elastic:
    """How fast a job works without some units of the role whose state is saved."""
    if unit_nodes < 1 or facts.n_nodes % unit_nodes:
        raise ParameterError(
            f"{wanted_by}: units of {unit_nodes} nodes do not divide the {facts.n_nodes} nodes of "
            f"`{facts.role}`"
        )
    n_units = facts.n_nodes // unit_nodes
    if throughput is None:
        n_known = min(n_units + 1, MOST_UNITS)
        return Elastic(facts.role, tuple(1.0 - d / n_units for d in range(n_known)), unit_nodes)
    _check(throughput, n_units, wanted_by)
    return Elastic(facts.role, tuple(here / throughput[0] for here in throughput), unit_nodes)


def _check(throughput: Sequence[float], n_units: int, wanted_by: str) -> None:
    if not 1 <= len(throughput) <= min(n_units + 1, MOST_UNITS):
        raise ParameterError(
            f"{wanted_by}: `throughput` has {len(throughput)} numbers; give one for all "
            f"{n_units} units, one for a unit fewer and so on, at most {n_units + 1}"
        )
    if not throughput[0] > 0.0 or any(not isfinite(here) or here < 0.0 for here in throughput):
        raise ParameterError(
            f"{wanted_by}: `throughput` must be positive with all units and never negative"
        )
    for fewer, here in enumerate(throughput):
        if here > throughput[0]:
            raise ParameterError(
                f"{wanted_by}: `throughput` is {here} without {fewer} units and {throughput[0]} "
                "with all: begin with the number for all units"
            )


def until_it_grows(when: float | str) -> tuple[Stage, ...]:
    """What slots whose nodes are back wait for."""
    grows_h = GROWTH_H[when] if isinstance(when, str) else when
    return (Stage(StageKind.WAIT, blocks=False, grows_h=grows_h),) if grows_h else ()


def nearest_failures_per_h(facts: JobFacts, tiers: Sequence[Tier]) -> list[float]:
    """Rate of the failures for which each tier is the nearest that survives [1/h]."""
    rates = [0.0] * len(tiers)
    for scope in facts.scopes:
        nearest = next((n for n, tier in enumerate(tiers) if outlives(tier, scope)), None)
        if nearest is None:
            continue
        rates[nearest] += facts.failures_per_h(scope)
        if nearest + 1 < len(tiers) and scope.wipes is Level.DISK:
            both = facts.failures_per_h(scope) * p_another_is_down(facts, tiers[nearest])
            rates[nearest] -= both
            rates[nearest + 1] += both
    return rates


def outlives(tier: Tier, scope: Scope) -> bool:
    """Whether a tier survives a failure of this scope that strikes no node that others' need."""
    if tier.medium.level > scope.wipes:
        return True
    if scope.reach is Reach.ALL or tier.placement == OWN:
        return False
    return scope.reach < Reach.RACK or isinstance(tier.placement, Groups)


def interval_of_level_h(
    facts: JobFacts, rate: float, stall_h: float, behind_h: float, wanted_by: str, tier: str
) -> float:
    """``sqrt(2 s/lambda)``, no shorter than a save is written; as long as the job for no save [h].

    `rate` is of the failures for which the level is the nearest that survives.
    """
    every_h = sqrt(2.0 * stall_h / rate) if rate > 0.0 else inf
    if every_h == 0.0:
        raise ParameterError(
            f"saves of {wanted_by} to `{tier}` stall nobody: give `every` as a time"
        )
    return min(facts.useful_h, max(every_h, behind_h))


def p_another_is_down(facts: JobFacts, tier: Tier) -> float:
    """Probability that as many holders of a struck shard are down already as it can spare.

    First order in the share of the time that a node is down. Source: derived here.
    """
    q = min(1.0, facts.replaced_h / (facts.mtbf_h * facts.cluster.n_nodes))
    place = tier.placement
    if isinstance(place, Groups):
        return min(1.0, comb(place.size - 1, place.tolerates) * q**place.tolerates)
    return min(1.0, 2.0 * q) if isinstance(place, Ring) and place.copies > 1 else 0.0


def require_layers(facts: JobFacts, wanted_by: str) -> None:
    """Raise ParameterError for a role whose nodes can't compute for each other."""
    if facts.is_emb_ps:
        raise ParameterError(f"{wanted_by} needs replicas; shards of embedding servers exist once")


def replicas_of_job(facts: JobFacts, wanted_by: str, option: str = "") -> int:
    """Replicas of the state that the job has; raises ParameterError where it has one."""
    require_layers(facts, wanted_by)
    if facts.replicas == 1:
        listed = f", or list {wanted_by} with {option}" if option else ""
        raise ParameterError(
            f"{wanted_by} needs replicas; the {facts.n_nodes} nodes of `{facts.role}` hold the "
            f"state once: give `cluster.replicas`{listed}"
        )
    return facts.replicas


def n_replicas(facts: JobFacts, group: int | None, wanted_by: str) -> int:
    """Replicas of the state: of `group` nodes each, by default those of the job."""
    n = facts.n_nodes
    if group is None:
        return replicas_of_job(facts, wanted_by, "`group`, the nodes of a replica")
    if group < 1 or n % group or n == group:
        raise ParameterError(
            f"{wanted_by}: {n} nodes of `{facts.role}` make no replica groups of {group}: give a "
            "`group` that divides them and leaves two or more"
        )
    if facts.replicas > 1 and group * facts.replicas < n:
        raise ParameterError(
            f"{wanted_by}: `group` is {group}, and {facts.replicas} replicas on {n} nodes of "
            f"`{facts.role}` take {n // facts.replicas} nodes each"
        )
    return n // group


def n_pipelines(facts: JobFacts, given: int | None, wanted_by: str) -> int:
    """Pipelines with the whole state each, by default one for each replica of the job."""
    n = replicas_of_job(facts, wanted_by, "`pipelines`") if given is None else given
    if n < 2 or facts.n_nodes % n:
        raise ParameterError(
            f"`pipelines` of {wanted_by} is {n}; it is 2 at least and divides the {facts.n_nodes} "
            f"nodes of `{facts.role}`"
        )
    return n


def replicas(facts: JobFacts, n_groups: int) -> Tier:
    """The state as each replica group shards it over its nodes: current, while one copy is left."""
    place = Groups(n_groups, n_groups - 1, strided=True)
    return Tier("replicas", Medium.DEVICE, place, facts.role)


def require_positive(wanted_by: str, **values: float | None) -> None:
    """Raise ParameterError for options that are given and are not positive."""
    for name, value in values.items():
        if value is not None and not value > 0.0:
            raise ParameterError(f"`{name}` of {wanted_by} is {value}; it must be positive")


def require_not_negative(wanted_by: str, **values: float | None) -> None:
    """Raise ParameterError for options that are given and negative."""
    for name, value in values.items():
        if value is not None and not value >= 0.0:
            raise ParameterError(f"`{name}` of {wanted_by} is {value}; it can't be negative")
