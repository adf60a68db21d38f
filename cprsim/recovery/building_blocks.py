"""What several recovery systems are put together from: rows, stages, tiers, intervals, speeds.

A copy to host memory, or to wherever a system copies first, is called a snapshot; writing it to
where it is kept is called persisting it. Costs that vary are taken at their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import ceil, comb, inf, isnan, nan, sqrt
from types import MappingProxyType
from typing import Any

from cprsim.errors import ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.intervals import ROUNDING, young_h
from cprsim.job.legal import MOST_UNITS
from cprsim.job.options import options
from cprsim.job.policy import (
    GROWTH_H,
    OWN,
    STOP,
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
    SaveSchedule,
    Scope,
    Stage,
    StageKind,
    Tier,
    To,
)
from cprsim.job.records import Costs, Duration
from cprsim.recovery.system import JobProfile, Provenance, System

REMOTE = "remote"
YOUNG_H = nan  # an interval that follows from the failures
DETECT, WAIT, LOAD = (Stage(kind) for kind in (StageKind.DETECT, StageKind.WAIT, StageKind.LOAD))
NEIGHBOURS = Groups(3, 1)  # of a ring, as many copies as are lost with one more of two
PUBLISHED, SECONDARY, RECALLED = Provenance
Mechanism = Callable[..., Policy]  # of a job and of options, the entry's name among them


def row(
    name: str,
    keys: str,
    mechanism: Mechanism,
    parameters: Mapping[str, Any],
    cited: str,
    mark: Provenance | None,
    summary: str,
    *,
    source: str,
    overrides: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> System:
    """A system: a mechanism of many, with parameters and with options by their names.

    `overrides` has the options that differ from those of that name, or their defaults.
    """
    declared = options(keys, overrides)
    plan = partial(mechanism, **parameters)
    return System(name, summary, source, declared, plan, cited=cited, mark=mark, **more)


# --------------------------------------------------------------------------- stages, tiers, rules


def load_in(hours: float, *, blocks: bool = True) -> Stage:
    """A load that takes this, from wherever."""
    return Stage(StageKind.LOAD, Constant(hours), blocks)


def regroup(hours: float) -> Stage:
    """Those that work make new groups."""
    return Stage(StageKind.REGROUP, Constant(hours))


def restart(job: JobProfile, *more: Stage, reschedule: Duration | None = None) -> tuple[Stage, ...]:
    """The whole job stops until the failure is noticed and its nodes are replaced."""
    replaced = Stage(StageKind.RESCHEDULE, job.reschedule if reschedule is None else reschedule)
    return (DETECT, WAIT, replaced, *more)


def meanwhile(job: JobProfile, *, each: bool = False) -> tuple[Stage, ...]:
    """Lost nodes are replaced while the others work."""
    return (
        Stage(StageKind.WAIT, blocks=False, each=each),
        Stage(StageKind.RESCHEDULE, job.reschedule, blocks=False),
    )


def until_it_grows(when: float | str) -> tuple[Stage, ...]:
    """What slots whose nodes are back wait for."""
    grows_h = GROWTH_H[when] if isinstance(when, str) else when
    return (Stage(StageKind.WAIT, blocks=False, grows_h=grows_h),) if grows_h else ()


def shrink_and_regroup(job: JobProfile, o: Any) -> tuple[Stage, ...]:
    """Stages without lost nodes: reconfigure and copy again; reconfigure to readmit nodes."""
    again = Stage(StageKind.REGROUP, Constant(o.reconfigure), copies_again=True)
    taken_in = (*until_it_grows(o.grows), regroup(o.reconfigure))
    return (DETECT, again, *meanwhile(job, each=True), *taken_in)


def remote_tier(job: JobProfile, load: Duration | None = None) -> Tier:
    """Return the remote storage as a tier; `load` is by default the job's."""
    return Tier(REMOTE, Medium.REMOTE, Outside(), job.role, job.load if load is None else load)


def periodic_capture(
    tier: str, every_h: float, stall_h: float, behind_h: float, **more: Any
) -> SaveSchedule:
    """Saves to a tier, at an interval."""
    behind = Constant(behind_h) if behind_h else None
    return SaveSchedule(tier, every_h, stall=Constant(stall_h), background=behind, **more)


def remote_capture(job: JobProfile, every_h: float) -> SaveSchedule:
    """The job's own saves, at this interval."""
    every_h = min(every_h, job.useful_h)
    return SaveSchedule(REMOTE, every_h, stall=job.save_stall, background=job.save_background)


def live_tier(job: JobProfile, name: str, n: int, *, strided: bool = False) -> Tier:
    """State that lies on each of n slots, so that one of them is enough."""
    return Tier(name, Medium.DEVICE, Groups(n, n - 1, strided), job.role)


def go_back(stages: tuple[Stage, ...], *sources: str, needs: tuple[str, ...] = ()) -> Rule:
    """All go back to the newest content that survives in one of the sources."""
    return Rule(Reverts.ALL, stages, sources=sources, needs=needs)


def go_on(live: str, stages: tuple[Stage, ...], **more: Any) -> Rule:
    """Continue without a rollback while the live tier survives."""
    return Rule(Reverts.NOBODY, stages, needs=(live,), **more)


def back_to_remote(job: JobProfile, reschedule: Duration | None = None) -> Rule:
    """All go back to the newest save on the remote storage."""
    return go_back(restart(job, LOAD, reschedule=reschedule), REMOTE)


def retry(job: JobProfile, live: str, stages: tuple[Stage, ...], to: To = To.STEP_BEGUN) -> Rule:
    """Retry the current step in all slots while the live tier survives."""
    job.needed("step_h", "it retries the current step, which")
    return Rule(Reverts.ALL, stages, to, needs=(live,))


def with_backstop(
    o: Any, job: JobProfile, rule: Rule, live: Tier, every_h: float | None,
    beyond: Rule | None = None, **more: Any,
) -> Policy:  # fmt: skip
    """A rule that needs a live tier; beyond it the job's own saves at this interval, or its start.

    With a rule that goes back by steps, the policy says how long one is.
    """
    if rule.to in (To.STEP_BEGUN, To.STEP_BEFORE):
        more["step_h"] = job.step_h
    if every_h is None:
        rules = rule, Rule(Reverts.ALL, restart(job), To.START)
        return Policy(o.name, rules, (live,), **more)
    return Policy(
        o.name,
        rules=(rule, beyond or back_to_remote(job)),
        tiers=(live, remote_tier(job)),
        captures=(remote_capture(job, every_h),),
        **more,
    )


# --------------------------------------------------------------------------- times and intervals


def interval_h(job: JobProfile, stall_h: float, behind_h: float) -> float:
    """Progress between saves: Young's, at least the time to write a save [h].

    A save without a stall is made in each step, or when the one before is written.
    """
    best_h = young_h(stall_h, job.mtbf_h) if stall_h > 0.0 else 0.0
    every_h = max(best_h, behind_h, job.step_h or 0.0)
    if not every_h > 0.0:
        raise ParameterError("saves take no time here: give `every`")
    return min(every_h, job.useful_h)


def own_interval_h(job: JobProfile) -> float:
    """Progress between the job's own saves, as `interval_h` finds it [h]."""
    return interval_h(job, job.stall_h, job.background_h)


def backstop_h(job: JobProfile, group: Groups, down_h: float, *, neighbours: bool) -> float:
    """Young's interval between the saves that protect against the loss of all copies [h].

    For failures that strike a group with no node left to spare, and for those that strike all
    copies simultaneously, at a rate lambda: ``1/w^2 = 1/every^2 + lambda/(2 s)``. Copies that lie
    far apart are assumed to survive the failure of a rack. Saves without a stall follow one
    another. Source: derived here.
    """
    stall_h = job.stall_h
    share = job.n_nodes / job.cluster.n_nodes * _p_others_down(job, group, down_h)
    every_h = job.useful_h  # no saves
    if share:
        every_h = max(young_h(stall_h, job.mtbf_h / share), job.background_h)
    if every_h == 0.0:
        raise ParameterError("saves cost nothing, so no rule says how often: give `backstop`")
    least = Reach.RACK if neighbours else Reach.ALL
    rate = sum(job.failures_per_h(scope) for scope in job.scopes if scope.reach >= least)
    if rate == 0.0 or stall_h == 0.0:
        return every_h
    per_h2 = 0.0 if every_h >= job.useful_h else every_h**-2.0
    found_h: float = (per_h2 + rate / (2.0 * stall_h)) ** -0.5
    return max(found_h, job.background_h)


def _p_others_down(job: JobProfile, group: Groups, down_h: float) -> float:
    """Probability that, of the others of a struck group, as many are down as it can spare.

    Each is down for a share ``q = down_h lambda/n`` of the time, n all nodes of the job:
    ``C(size - 1, tolerates) q^tolerates``, first order in q. Source: derived here.
    """
    q = min(1.0, down_h / (job.mtbf_h * job.cluster.n_nodes))
    return comb(group.size - 1, group.tolerates) * q**group.tolerates


def nth_that_fits(behind_h: float, every_h: float) -> int:
    """Return n: every nth save can be copied on, if a copy takes `behind_h` hours."""
    return max(1, ceil(behind_h / every_h - ROUNDING))


def nearest_failures_per_h(job: JobProfile, tiers: Sequence[Tier]) -> dict[str, float]:
    """By tier, the rate of the failures for which it is the nearest that survives [1/h]."""
    rates = [0.0] * len(tiers)
    for scope in job.scopes:
        nearest = next((n for n, tier in enumerate(tiers) if _outlives(tier, scope)), None)
        if nearest is None:
            continue
        rates[nearest] += job.failures_per_h(scope)
        place = tiers[nearest].placement
        group = NEIGHBOURS if isinstance(place, Ring) and place != OWN else place
        last = nearest + 1 == len(tiers)
        if scope.wipes is Level.DISK and isinstance(group, Groups) and not last:
            p = min(1.0, _p_others_down(job, group, job.replaced_h))
            both_per_h = job.failures_per_h(scope) * p
            rates[nearest] -= both_per_h
            rates[nearest + 1] += both_per_h
    return {tier.name: rate for tier, rate in zip(tiers, rates, strict=True)}


def _outlives(tier: Tier, scope: Scope) -> bool:
    """Whether a tier survives a failure of this scope that strikes no node that others' need."""
    if tier.medium.level > scope.wipes:
        return True
    if scope.reach is Reach.ALL or tier.placement == OWN:
        return False
    return scope.reach < Reach.RACK or isinstance(tier.placement, Groups)


def at_own_intervals(
    job: JobProfile, captures: Sequence[SaveSchedule], tiers: Sequence[Tier]
) -> tuple[SaveSchedule, ...]:
    """Intervals `YOUNG_H` as hours: ``sqrt(2 s/lambda)``, no shorter than a save is written.

    s is the stall of a save of the tier, lambda the rate of the failures for which it is the
    nearest of those written that survives. As long as the job where none is. Source: derived here.
    """
    written, timed = {capture.tier for capture in captures}, []
    rates = nearest_failures_per_h(job, [tier for tier in tiers if tier.name in written])
    for capture in captures:
        every_h = capture.every_h
        if every_h is not None and isnan(every_h):
            costs = (capture.stall, capture.background)
            stall_h, behind_h = (0.0 if cost is None else cost.mean_h for cost in costs)
            rate = rates.get(capture.tier, 0.0)
            least_h = sqrt(2.0 * stall_h / rate) if rate > 0.0 else inf
            if least_h == 0.0:
                raise ParameterError(
                    f"saves to `{capture.tier}` do not stall the job: give `every` as a time"
                )
            every_h = min(job.useful_h, max(least_h, behind_h))
        timed.append(replace(capture, every_h=every_h))
    return tuple(timed)


# --------------------------------------------------------------------------- groups and speeds


def in_groups(job: JobProfile, size: int, give: str) -> int:
    """The size of groups that divide the nodes; raises ParameterError where it does not."""
    if job.n_nodes % size:
        raise ParameterError(
            f"{job.n_nodes} nodes of `{job.role}` make no groups of {size}: give {give} divides "
            "them"
        )
    return size


def require_layers(job: JobProfile) -> None:
    """Raise ParameterError for a role whose nodes can't compute for each other."""
    if job.is_emb_ps:
        raise ParameterError("it needs replicas; shards of embedding servers exist once")


def replicas_of_job(job: JobProfile, option: str = "") -> int:
    """Replicas of the state that the job has; raises ParameterError where it has one."""
    require_layers(job)
    if job.replicas == 1:
        raise ParameterError(
            f"it needs replicas; the {job.n_nodes} nodes of `{job.role}` hold the state once: "
            f"give `cluster.replicas`{option and f', or the option {option}'}"
        )
    return job.replicas


def n_replicas(job: JobProfile, group: int | None) -> int:
    """Replicas of the state: of `group` nodes each, by default those of the job."""
    n = job.n_nodes
    if group is None:
        return replicas_of_job(job, "`group`, the nodes of a replica")
    if group < 1 or n % group or n == group:
        raise ParameterError(
            f"{n} nodes of `{job.role}` make no replica groups of {group}: give a `group` that "
            "divides them and leaves two or more"
        )
    if job.replicas > 1 and group * job.replicas < n:
        raise ParameterError(
            f"`group` is {group}, and {job.replicas} replicas on {n} nodes of `{job.role}` take "
            f"{n // job.replicas} nodes each"
        )
    return n // group


def elastic_of(job: JobProfile, o: Any, derived: tuple[float, ...] = ()) -> Elastic:
    """How fast a job works without some units of the role whose state is saved.

    By the table `throughput`, else as `derived`, else in proportion to the units left.
    """
    n_units, table = job.n_nodes // o.unit_nodes, o.throughput
    most = min(n_units + 1, MOST_UNITS)
    if table is None:
        speed = derived or tuple(1.0 - d / n_units for d in range(most))
        return Elastic(job.role, speed, o.unit_nodes)
    first = table[0] if table else 0.0
    falls = 0.0 < first < inf and all(0.0 <= rate <= first for rate in table)
    if not falls or len(table) > most:
        raise ParameterError(
            f"`throughput` is {table}; give 1 to {most} numbers: a positive one for all units, and "
            "for each unit fewer one that is neither negative nor above that"
        )
    return Elastic(job.role, tuple(rate / first for rate in table), o.unit_nodes)


# --------------------------------------------------------------------------- restarts and stops


def with_restarts(policy: Policy, costs: Costs) -> Policy:
    """The policy with the warm-up and the failed attempts of the rules that start processes again.

    Those rules reschedule. A stage that a rule names itself stays as it is.
    """
    rules = tuple(replace(rule, stages=_restarting(rule.stages, costs)) for rule in policy.rules)
    return replace(policy, rules=rules)


def _restarting(stages: tuple[Stage, ...], costs: Costs) -> tuple[Stage, ...]:
    """Stages with a warm-up behind each reschedule and its load, and behind the first a retry."""
    kinds, attempts = [stage.kind for stage in stages], costs.restart
    begin = [n for n, kind in enumerate(kinds) if kind is StageKind.RESCHEDULE]
    made = [*stages[: begin[0] if begin else len(stages)]]
    for first, after in pairwise([*begin, len(stages)]):
        restart = stages[first:after]
        if costs.warmup is not None and StageKind.WARM_UP not in kinds:
            restart = _behind(restart, Stage(StageKind.WARM_UP, costs.warmup))
        is_tried = first == begin[0] and StageKind.RETRY not in kinds
        if attempts is not None and attempts.p_fail > 0.0 and is_tried:
            retry = Stage(
                StageKind.RETRY, attempts.retry, p_fail=attempts.p_fail,
                gives_up_after=attempts.gives_up_after, operator=attempts.operator,
            )  # fmt: skip
            restart = _behind(restart, retry)
        made += restart
    warmup = costs.warmup or Constant(0.0)
    return tuple(
        replace(stage, cost=stage.cost or warmup) if stage.kind is StageKind.WARM_UP else stage
        for stage in made
    )


RESTART_STAGES = {StageKind.RESCHEDULE, StageKind.LOAD, StageKind.WARM_UP}


def _behind(stages: tuple[Stage, ...], more: Stage) -> tuple[Stage, ...]:
    """Stages with one more behind the last of a restart; it blocks the job if that does."""
    last = max(n for n, stage in enumerate(stages) if stage.kind in RESTART_STAGES)
    more = replace(more, blocks=stages[last].blocks)
    return (*stages[: last + 1], more, *stages[last + 1 :])


def with_stops(policy: Policy, length: Duration, save: SaveSchedule) -> Policy:
    """Return the policy with planned stops: all slots stop for `length`, then restart.

    They roll back by the last rule, to remote contents or to the start; if no capture makes
    such contents, `save` is added.
    """
    last, stops = policy.rules[-1], (STOP,)
    restart = [
        replace(stage, blocks=True, each=False, copies_again=False)
        for stage in last.stages
        if stage.kind in RESTART_STAGES | {StageKind.WAIT, StageKind.RETRY, StageKind.REGROUP}
        and stage.grows_h is None
    ]
    sources = tuple(name for name in last.sources if policy.tier(name).medium is Medium.REMOTE)
    stop = Stage(StageKind.PLANNED, length)
    anew = (stop, *(stage for stage in restart if stage.kind is not StageKind.LOAD))
    rules = [Rule(Reverts.ALL, anew, To.START, scopes=stops), *policy.rules]
    if sources:
        rules.insert(0, Rule(Reverts.ALL, (stop, *restart), scopes=stops, sources=sources))
    if sources and policy.written.isdisjoint(sources):
        policy = replace(policy, captures=(*policy.captures, replace(save, tier=sources[0])))
    return replace(policy, rules=tuple(rules))
