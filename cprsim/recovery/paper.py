"""The strategies of the paper (Maeng et al. 2021) as recovery systems.

CPR compares the first-order overhead of partial recovery at its interval with that of full recovery
at Young's, and takes the cheaper; both prices go into the policy, so that the choice can be shown
and explained. Where the user names the interval and no target PLS, there is nothing to decide:
recovery is partial, at that interval.

Priority saving cuts each interval into sub-saves of the most urgent rows, at equal bytes. Which
rows those are is what its four strategies differ in; the simulator prices them alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, Literal

from cprsim.errors import ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.intervals import (
    cpr_h,
    daly_h,
    expected_pls,
    full_overhead_fraction,
    n_saves_due,
    partial_overhead_fraction,
    young_h,
)
from cprsim.job.legal import MOST_UNITS
from cprsim.job.losses import TRACKERS
from cprsim.job.policy import (
    RELOAD,
    RESTART,
    ROLL_BACK,
    Elastic,
    Groups,
    Medium,
    Outside,
    PartOf,
    Policy,
    Reverts,
    Rule,
    SaveSchedule,
    Stage,
    StageKind,
    Tier,
    To,
)
from cprsim.job.records import (
    STATE,
    Clock,
    Cluster,
    Costs,
    Decision,
    Duration,
    Holds,
    Storage,
    SubSaves,
)
from cprsim.recovery.building_blocks import DETECT, LOAD, REMOTE, WAIT, row, with_restarts
from cprsim.recovery.system import Family, JobProfile, Provenance

MOST_SAVES = 1_000_000  # in a job
NEVER = "never"  # the rule of a strategy that saves nothing
FELL_BACK = "young (fell back to full)"  # that of CPR where full recovery is cheaper
TRAINERS, CENTRAL = "trainers", "central"  # tiers
UNDIVIDED = SubSaves("none", fraction=1.0)  # every save is whole
PRIORITY_PREFIX = "cpr-"  # and a tracker: the strategies that save the most urgent rows first


# --------------------------------------------------------------------------- the mechanism


def strategy(
    name: str, on_failure: str, costs: Costs, cluster: Cluster, interval_h: float = inf,
    interval_rule: str = "", *, decision: Decision | None = None, sub_saves: SubSaves | None = None,
) -> Policy:  # fmt: skip
    """A strategy at an interval.

    Partial recovery rolls back the struck shards, unless the dense model is lost with the last
    trainer: then it rolls back all shards. Synchronised trainers continue without a lost one, at
    the speed of the remaining trainers.
    """
    roles = [role.name for role in cluster.roles if role.holds is Holds.SHARD]
    role = STATE if len(roles) > 1 else "".join(roles)
    stages = (DETECT, WAIT, Stage(StageKind.RESCHEDULE, costs.reschedule), LOAD)
    tiers: tuple[Tier, ...] = (Tier(REMOTE, Medium.REMOTE, Outside(), role, load=costs.load),)
    captures: tuple[SaveSchedule, ...] = ()
    if interval_h < inf:
        captures = (_capture(interval_h, sub_saves or UNDIVIDED, costs, len(cluster.slots(role))),)
    elastic = None
    if on_failure == RESTART:
        rules: tuple[Rule, ...] = (Rule(Reverts.ALL, stages[:-1], To.START),)
        tiers = captures = ()
    elif on_failure == ROLL_BACK:
        rules = (Rule(Reverts.ALL, stages, sources=(REMOTE,)),)
    else:
        rules, live, elastic = _partial(stages, cluster)
        tiers += live
    policy = Policy(
        name, rules, tiers, captures, elastic, interval_h=interval_h, interval_rule=interval_rule,
        decision=decision, sub_saves=sub_saves, from_cpr_paper=True,
    )  # fmt: skip
    return with_restarts(policy.with_storage(costs.reliability), costs)


def at_costs(policy: Policy, costs: Costs, cluster: Cluster) -> Policy:
    """A strategy that does the same at other costs."""
    return strategy(
        policy.name, policy.on_failure, costs, cluster, policy.interval_h, policy.interval_rule,
        decision=policy.decision, sub_saves=policy.sub_saves,
    )  # fmt: skip


def _partial(
    stages: tuple[Stage, ...], cluster: Cluster
) -> tuple[tuple[Rule, ...], tuple[Tier, ...], Elastic | None]:
    """The rules of partial recovery, the state of trainers and sync servers, and its speed."""
    struck_go_back = partial(Rule, Reverts.STRUCK, stages, sources=(REMOTE,))
    all_go_back = Rule(Reverts.SHARDS, stages, sources=(REMOTE,))
    first = {role.holds: role for role in reversed(cluster.roles)}
    trainers, central = first.get(Holds.REPLICA), first.get(Holds.CENTRAL)
    if trainers is None:
        return (struck_go_back(), all_go_back), (), None
    n = trainers.n_nodes
    live = [Tier(TRAINERS, Medium.DEVICE, Groups(n, n - 1), trainers.name)]
    if central is not None:
        live.append(Tier(CENTRAL, Medium.DEVICE, Groups(central.n_nodes, 0), central.name))
    other_roles = tuple(role.name for role in cluster.roles if role is not trainers)
    dense_rules = (struck_go_back(needs=(tier.name,)) for tier in live)
    rules = (struck_go_back(roles=other_roles), *dense_rules, all_go_back)
    background_roles = tuple(role.name for role in cluster.roles if role.others_go_on)
    if not background_roles:
        return rules, tuple(live), None
    meanwhile = tuple(Stage(stage.kind, stage.cost, blocks=False) for stage in stages[:-1])
    go_on = Rule(Reverts.NOBODY, meanwhile, needs=(TRAINERS,), roles=background_roles)
    speeds = tuple(1.0 - d / n for d in range(min(n + 1, MOST_UNITS)))
    return (go_on, *rules), tuple(live), Elastic(trainers.name, speeds)


def _capture(interval_h: float, parts: SubSaves, costs: Costs, n_servers: int) -> SaveSchedule:
    """Saves at an interval, in parts; a transfer has the storage to itself."""

    def part_of(cost: Duration | Storage | None, extra_h: float = 0.0) -> Duration | None:
        if cost is None:
            return None
        if isinstance(cost, Storage | Constant):
            return Constant(parts.cost_share * costs.mean_h(cost, n_servers) + extra_h)
        is_whole = (parts.cost_share, extra_h) == (1.0, 0.0)
        return cost if is_whole else PartOf(cost, parts.cost_share, extra_h)

    return SaveSchedule(
        REMOTE,
        every_h=parts.fraction * interval_h,
        stall=part_of(costs.save_stall, parts.extra_h),
        background=part_of(costs.save_background),
        parts=parts.n_per_interval,
    )


# --------------------------------------------------------------------------- the interval

INTERVAL_RULES: dict[str, Callable[[JobProfile, Any], float]] = {
    "young": lambda job, o: young_h(job.stall_h, job.mtbf_h),
    "daly": lambda job, o: daly_h(job.stall_h, job.mtbf_h),
    "cpr": lambda job, o: cpr_interval_h(job, o.target_pls),
    "cpr-undivided": lambda job, o: cpr_interval_h(job, o.target_pls, undivided=True),
    NEVER: lambda job, o: inf,
}


def cpr_interval_h(job: JobProfile, target_pls: float, *, undivided: bool = False) -> float:
    """CPR's interval for a target PLS [h]; infinite where no failure can lose a shard.

    Undivided it is as published: one shard a failure, and saves that take no time.
    """
    if job.n_shards_together == 0:
        return inf if target_pls > 0 else 0.0
    if undivided:
        return cpr_h(target_pls, job.cluster.n_emb_ps, job.mtbf_shard_h)
    return cpr_h(target_pls, **_losing(job))


def _losing(job: JobProfile) -> dict[str, Any]:
    """How often shards go back, how many together, and how late saves are.

    On the wall clock failures also strike while the job recovers and waits for spares, on uptime
    while it saves.
    """
    saves = job.costs.reliability
    late_h, per_h = job.background_h, 1.0
    if job.clock is not Clock.PROGRESS:
        late_h += job.stall_h
    if job.clock is Clock.WALL:
        per_h = (1.0 + _recovery_h(job) / job.mtbf_h) * (1.0 + job.waiting_fraction)
    return {
        "n_emb_ps": job.cluster.n_emb_ps,
        "mtbf_shard_h": job.mtbf_shard_h / per_h,
        "n_together": job.n_shards_together,
        "late_h": late_h,
        "p_bad": 1.0 - (1.0 - saves.p_fail) * (1.0 - saves.p_corrupt),
    }


def _recovery_h(job: JobProfile) -> float:
    """How long partial recovery stalls the job at a failure, on average."""
    costs = job.costs
    restart_h = costs.detect.mean_h + costs.reschedule.mean_h + costs.further_h
    recovery_h = restart_h * (1.0 - job.overlapped_fraction)
    if job.mtbf_shard_h == inf:
        return recovery_h
    load_h = costs.mean_h(costs.load, max(1, round(job.n_shards_together)))
    return recovery_h + job.mtbf_h / job.mtbf_shard_h * costs.mean_attempts * load_h


def _interval(job: JobProfile, o: Any) -> tuple[float, str]:
    """Hours between saves, and in words how they came about.

    Raises ParameterError where the rule gives no positive interval (a free save, a target of 0),
    or one so short that the job would do little else than save.
    """
    if isinstance(o.interval, str):
        return _sensible_h(INTERVAL_RULES[o.interval](job, o), o.interval, job, o), o.interval
    return _sensible_h(o.interval, "given", job, o), "given"


def _sensible_h(interval_h: float, rule: str, job: JobProfile, o: Any) -> float:
    """The interval; raises ParameterError where the job would do little else than save."""
    parts = o.sub_saves or UNDIVIDED
    n_saves = parts.n_per_interval * (job.useful_h / interval_h if interval_h > 0 else inf)
    if n_saves > MOST_SAVES:
        raise ParameterError(
            f"the interval rule `{rule}` gives {interval_h:.3g} h between saves, {n_saves:.3g} "
            f"saves in {job.useful_h:g} h; at most {MOST_SAVES:,} make sense: "
            "name the interval as a time"
        )
    return interval_h


# --------------------------------------------------------------------------- first-order prices


def _decide(job: JobProfile, o: Any) -> tuple[Decision, str]:
    """Price both ways to recover and choose the cheaper; partial recovery where they tie.

    A target PLS that no interval keeps, such as 0, leaves only full recovery. A failure that
    strikes no shard loads nothing under partial recovery.
    """
    costs, save_h, full_h = job.costs, job.stall_h, young_h(job.stall_h, job.mtbf_h)
    restart_h = costs.detect.mean_h + costs.reschedule.mean_h + costs.further_h
    full_restart_h = restart_h + costs.mean_attempts * job.load.mean_h
    full = full_overhead_fraction(full_h, save_h, full_restart_h, job.mtbf_h)
    is_undivided = o.interval != "cpr"
    if job.n_shards_together and not cpr_interval_h(job, o.target_pls, undivided=is_undivided):
        return Decision("full", 0.0, full_h, inf, full, 0.0), "cpr"
    partial_h, rule = _interval(job, o)
    parts = o.sub_saves or UNDIVIDED
    save_h = parts.bytes_share * save_h + parts.n_per_interval * parts.extra_h
    saves = n_saves_due(parts.fraction * partial_h, job.useful_h) > 0
    every_h = partial_h if saves else inf
    stale = partial_overhead_fraction(every_h, save_h, _recovery_h(job), job.mtbf_h)
    late = {} if saves else {"late_h": 0.0, "p_bad": 0.0}
    lost = expected_pls(min(partial_h, job.useful_h), **_losing(job) | late)
    chosen: Literal["partial", "full"] = "partial" if stale <= full else "full"
    return Decision(chosen, partial_h, full_h, stale, full, lost), rule


# --------------------------------------------------------------------------- the strategies


def _never(job: JobProfile, o: Any) -> Policy:
    return strategy(o.name, RESTART, job.costs, job.cluster, interval_rule="never saves")


def _saving(job: JobProfile, o: Any, *, on_failure: str) -> Policy:
    return strategy(o.name, on_failure, job.costs, job.cluster, *_interval(job, o))


def _cpr(job: JobProfile, o: Any) -> Policy:
    settled = isinstance(o.interval, float) or o.interval == NEVER
    decision = None
    if settled and o.target_pls is None:
        interval_h, rule = _interval(job, o)
    else:
        decision, rule = _decide(job, o)
        interval_h = decision.partial_interval_h
    make = partial(strategy, o.name, costs=job.costs, cluster=job.cluster, decision=decision)
    if decision is None or decision.chosen == "partial":
        return make(RELOAD, interval_h=interval_h, interval_rule=rule, sub_saves=o.sub_saves)
    interval_h = _sensible_h(decision.full_interval_h, "young", job, o)
    return make(ROLL_BACK, interval_h=interval_h, interval_rule=FELL_BACK)


_row = partial(row, family=Family.ONE_SAVE)
_paper = partial(_row, source="Maeng et al. 2021 (MLSys)", interval="interval")
CITED, TARGET = ("MLSys'21", Provenance.PUBLISHED), "interval target_pls"
YOUNG, CPR = {"interval": "young"}, {"interval": "cpr"}
SYSTEMS = (
    _row("none", "", _never, {}, "", None,
         "no checkpoints: after a failure the job starts again from nothing", source="",
         runs_as="any trainer"),
    _row("full", "interval", _saving, {"on_failure": ROLL_BACK}, "", None,
         "full recovery: after a failure all nodes go back to the last checkpoint", source="",
         overrides=YOUNG, interval="interval", runs_as="torch.save, PyTorch DCP"),
    _paper("partial", TARGET, _saving, {"on_failure": RELOAD}, *CITED,
           "partial recovery: only the failed shards go back, at full recovery's interval",
           overrides=YOUNG),
    _paper("cpr", TARGET, _cpr, {}, *CITED,
           "CPR: partial recovery at the interval that a target PLS allows, or full recovery where "
           "that is cheaper", overrides=CPR),
    *(
        _paper(f"{PRIORITY_PREFIX}{tracker}", f"{TARGET} sub_saves", _cpr, {}, *CITED,
               f"CPR that saves first {rows}", overrides=CPR)
        for tracker, rows in TRACKERS.items()
    ),
)  # fmt: skip
STRATEGIES = tuple(system.name for system in SYSTEMS)
