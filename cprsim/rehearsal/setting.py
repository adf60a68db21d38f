"""Turn a scenario into settings of the runtime, and into its failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from cprsim.errors import ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.policy import (
    RELOAD,
    ROLL_BACK,
    Groups,
    Medium,
    Policy,
    Reverts,
    Ring,
    Rule,
    SaveSchedule,
    StageKind,
    To,
    WhenBusy,
)
from cprsim.job.records import S_PER_H, Clock, Cluster, Costs, Duration, Holds, Storage
from cprsim.rehearsal.material import Material, image_bytes
from cprsim.rehearsal.orders import Kill, Orders, SaveBehind, Speeds, saves_due
from cprsim.results import pipeline
from cprsim.scenario.assemble import Experiment
from cprsim.scenario.failures import EMB_PS, InjectedFailures
from cprsim.scenario.schema import Scenario
from cprsim.training.proxy_model import ProxyModel

HEARTBEATS = 8  # in the time that detection takes
LEAST_DETECT_S = 0.2
STRIKES_UNTIL = 10.0  # times the useful time: what comes later strikes nobody
LIMIT = 20.0  # times the useful time, and ...
LIMIT_S = 120.0  # ... so much more: a run that takes longer is given up
WARM = 2  # spares that wait where one is always free
SMOKE = ("job.useful='6 s'", "kernel.samples=10000")
SMOKE_OF_INJECTED = ("failures.count=2",)
SMOKE_STRATEGIES = 2
REHEARSED_STAGES = (StageKind.DETECT, StageKind.WAIT, StageKind.RESCHEDULE, StageKind.LOAD)


def smoke_overrides(scenario: Scenario) -> tuple[str, ...]:
    """Overrides that make a scenario a rehearsal of a minute, as ``key=value``."""
    failures = scenario.failures
    counted = isinstance(failures, InjectedFailures) and failures.count is not None
    return SMOKE + (SMOKE_OF_INJECTED if counted else ())


def chosen_names(
    strategies: str | Sequence[str], scenario: Scenario, smoke: bool
) -> tuple[str, ...]:
    """Names of the strategies that are asked for, as text separated by commas; none: all.

    Raises ParameterError for a repeated name.
    """
    words = strategies.split(",") if isinstance(strategies, str) else strategies
    names = tuple(word.strip() for word in words if word.strip())
    if len(set(names)) < len(names):
        raise ParameterError("names one twice", option="--strategies")
    if smoke and not names:
        return tuple(entry.name for entry in scenario.recovery[:SMOKE_STRATEGIES])
    return names


def material_of(model: ProxyModel, n_trainers: int = 1) -> Material:
    """The model and the clicks that the processes of a rehearsal train."""
    return Material(model.shape, model.train, model.plan, model.shards, n_trainers)


def require_rehearsable(experiment: Experiment) -> None:
    """Raise ParameterError, with the change to make, if real processes can't run a scenario."""
    for cannot, why in _refusals(experiment):
        if cannot:
            raise ParameterError(why)
    _repair_s(experiment.cluster)


def _refusals(experiment: Experiment) -> Iterator[tuple[object, str]]:
    cluster, costs, clock = experiment.cluster, experiment.costs, experiment.failures.clock
    with_shards = [role.name for role in cluster.roles if role.holds is Holds.SHARD]
    held = (Holds.SHARD, Holds.REPLICA)
    others = [role.name for role in cluster.roles if role.holds not in held]
    yield (
        with_shards != [EMB_PS],
        "a rehearsal is of a job with embedding servers, and this one has none: give "
        "`cluster.emb_ps`",
    )
    yield (
        len(cluster.shard_slots) == 1,
        "a rehearsal needs two embedding servers or more: `cluster.emb_ps: 2`",
    )
    yield not cluster.replica_slots, "a rehearsal needs a trainer: `cluster.trainers: 1`"
    yield (
        any(role.others_go_on for role in cluster.roles),
        "trainers of a rehearsal wait for each other: leave `sync` out",
    )
    yield others, f"a rehearsal has no processes for {', '.join(others)}: leave them out"
    yield cluster.accesses, "the servers of a rehearsal are asked alike: leave `access` out"
    yield (
        costs.storage is not None and costs.storage.bytes_of_shards,
        "the servers of a rehearsal hold as much as each other: give `cluster.shard_size` instead "
        "of `shards`",
    )
    yield (
        costs.warmup or costs.restart or experiment.scenario.planned,
        "a rehearsal has no warm-ups, no restarts that fail and no stops: leave `costs.warmup`, "
        "`costs.restart` and `planned` out",
    )
    yield (
        clock is not Clock.WALL,
        "processes are killed by the clock on the wall, and this scenario's failures age on "
        f"`{clock.value}`: set `failures.clock: wall`",
    )
    yield (
        costs.save_background is not None,
        "`costs.save` has a background: give a plain time, and list the strategy `async` for saves "
        "behind the job",
    )
    yield (
        (costs.reliability.p_fail, costs.reliability.p_corrupt) != (0.0, 0.0),
        "the saves of a rehearsal do not fail by chance: leave that out",
    )


def policies_to_rehearse(experiment: Experiment, names: tuple[str, ...] = ()) -> tuple[Policy, ...]:
    """The strategies to run; all strategies of the scenario if none is named.

    Raises ParameterError for one that is not listed, or that the runtime can't do.
    """
    listed = {policy.name: policy for policy in experiment.policies}
    with_costs = {entry.name for entry in experiment.scenario.recovery if entry.costs is not None}
    n_trainers = len(experiment.cluster.replica_slots)
    for name in names or listed:
        if name not in listed:
            message = f"the scenario has no `{name}`; it has {', '.join(listed)}"
            raise ParameterError(message, option="--strategies")
        policy = listed[name]
        if n_trainers > 1 and not policy.from_cpr_paper:
            raise ParameterError(
                f"`{name}` is rehearsed with one trainer: set `cluster.trainers: 1`, or leave it "
                "out"
            )
        if policy.from_cpr_paper and name in with_costs:
            raise ParameterError(
                f"`{name}` has its own costs; a rehearsal takes the section `costs`: put them "
                "there, or leave it out"
            )
        if not can_rehearse(policy):
            raise ParameterError(
                f"`{name}` can't be rehearsed; the runtime does full, partial, cpr, cpr-mfu and "
                "the like, and systems that take the whole job back to files or to copies in "
                "peers' memory, such as async and gemini: leave it out, or name others",
                option="--strategies",
            )
    return tuple(listed[name] for name in names or listed)


def speeds_of(experiment: Experiment, material: Material) -> Speeds:
    """Settings by which real saves, loads and recoveries take the times of the scenario.

    The shards of the stand-in are as small as they are; the throttles are set so that they take the
    scenario's times.
    """
    costs, n = experiment.costs, experiment.cluster.n_emb_ps
    size = image_bytes(material)
    detect_s = _seconds(costs.detect, "costs.detect")
    if detect_s < LEAST_DETECT_S:
        raise ParameterError(
            f"`costs.detect` is {detect_s:g} s; heartbeats notice nothing in less than "
            f"{LEAST_DETECT_S} s"
        )
    heartbeat_s = detect_s / HEARTBEATS
    stall_s = costs.mean_h(costs.save_stall, n) * S_PER_H
    if not isinstance(costs.save_stall, Storage):
        _seconds(costs.save_stall, "costs.save")
    load_together = inf
    if isinstance(costs.load, Storage):
        scale = size / costs.load.shard_bytes / S_PER_H
        load_together = costs.load.bandwidth_bytes_per_h * scale
        load_alone = costs.load.server_bandwidth_bytes_per_h * scale
    else:
        load_s = _seconds(costs.load, "costs.load")
        load_alone = size / load_s if load_s > 0 else inf
    return Speeds(
        heartbeat_s=heartbeat_s,
        timeout_s=detect_s + heartbeat_s / 2,
        reschedule_s=_seconds(costs.reschedule, "costs.reschedule"),
        save_rate=size / stall_s if stall_s > 0 else inf,
        load_together=load_together,
        load_alone=load_alone,
    )


def _seconds(cost: Duration, key: str) -> float:
    if not isinstance(cost, Constant):
        raise ParameterError(f"`{key}` varies; a rehearsal needs a fixed time there")
    return cost.mean_h * S_PER_H


def _repair_s(cluster: Cluster) -> float | None:
    """Time until a node that died is a spare again [s]; None if a spare is always free."""
    if cluster.n_spares is None or cluster.repair is None:  # the scenario has both, or neither
        return None
    return _seconds(cluster.repair, "cluster.repair")


def kills_of(experiment: Experiment, trace: int, speeds: Speeds) -> tuple[tuple[Kill, ...], int]:
    """The failures of one replication as kills, and how many were left out.

    A process that is dead and not noticed yet can't be killed again: such a strike is left out.
    """
    last: dict[int, float] = {}
    kills, n_left_out = [], 0
    for failure in pipeline.failures_of(experiment, trace):
        if failure.at_h >= STRIKES_UNTIL * experiment.useful_h:
            break
        at_s = failure.at_h * S_PER_H
        slots = tuple(
            slot for slot in failure.slots if at_s - last.get(slot, -inf) > speeds.timeout_s
        )
        n_left_out += len(failure.slots) - len(slots)
        last |= dict.fromkeys(slots, at_s)
        if slots:
            kills.append(Kill(at_s, slots))
    return tuple(kills), n_left_out


def orders_of(
    experiment: Experiment, policy: Policy, material: Material, kills: tuple[Kill, ...] = ()
) -> Orders:
    """Orders of one run under a policy."""
    useful_s, cluster = experiment.useful_h * S_PER_H, experiment.cluster
    return Orders(
        name=policy.name,
        rolls_back=not policy.leaves_stale,
        useful_s=useful_s,
        due=saves_due(policy, experiment.useful_h, material.n_samples, material.on_grid),
        speeds=speeds_of(experiment, material),
        sub_saves=policy.sub_saves,
        behind=() if policy.from_cpr_paper else saves_behind(policy),
        holders=holders_of(policy, cluster.n_emb_ps),
        fetch_s=fetch_s(policy),
        kills=kills,
        n_servers=cluster.n_emb_ps,
        n_trainers=len(cluster.replica_slots),
        n_spares=WARM if cluster.n_spares is None else cluster.n_spares,
        repair_s=_repair_s(cluster),
        limit_s=LIMIT * useful_s + LIMIT_S,
    )


# --------------------------------------------------------------------------- recovery systems

# Background saves, and copies in peers' memory: the whole job rolls back to the newest content that
# survives, in files or in the memory of the servers. Other parts of a system have no process here.


def can_rehearse(policy: Policy) -> bool:
    """Whether the runtime supports a policy."""
    return policy.on_failure in (ROLL_BACK, RELOAD) or (
        policy.elastic is None
        and policy.tax.compute == 0.0
        and bool(policy.captures)
        and all(_takes_all_back(rule) for rule in policy.rules)
        and all(_is_plain(policy, capture) for capture in policy.captures)
    )


def _takes_all_back(rule: Rule) -> bool:
    return (
        rule.reverts is Reverts.ALL
        and rule.to is To.NEWEST
        and rule.replay_speed == 1.0
        and not rule.scopes
        and all(stage.kind in REHEARSED_STAGES and stage.blocks for stage in rule.stages)
    )


def _is_plain(policy: Policy, capture: SaveSchedule) -> bool:
    """Whether a capture makes whole saves at intervals, in files or as whole copies on servers."""
    tier = policy.tier(capture.tier)
    place = tier.placement
    copies = isinstance(place, Ring) or (
        isinstance(place, Groups) and place.tolerates == place.size - 1
    )
    return (
        capture.every_h is not None
        and capture.after is None
        and capture.parts == 1
        and capture.p_fail == 0.0
        and not capture.on_notice
        and (tier.generations == 1 if tier.medium is Medium.REMOTE else copies)
        and tier.medium in (Medium.REMOTE, Medium.HOST)
    )


def saves_behind(policy: Policy) -> tuple[SaveBehind, ...]:
    """Settings of the background saves of each capture of a system."""
    return tuple(
        SaveBehind(
            stall_s=Costs.mean_h(capture.stall, 1) * S_PER_H,
            behind_s=Costs.mean_h(capture.background, 1) * S_PER_H,
            to_peers=policy.tier(capture.tier).medium is Medium.HOST,
            in_flight=capture.in_flight,
            skips=capture.when_busy is WhenBusy.SKIP,
        )
        for capture in policy.captures
    )


def holders_of(policy: Policy, n_servers: int) -> tuple[tuple[int, ...], ...]:
    """For each server, the others that hold copies of its rows; empty without copies."""
    servers = range(n_servers)
    tiers = (policy.tier(capture.tier) for capture in policy.captures)
    place = next((tier.placement for tier in tiers if tier.medium is Medium.HOST), None)
    if isinstance(place, Ring):
        return tuple(tuple((i + k) % n_servers for k in range(1, place.copies)) for i in servers)
    if not isinstance(place, Groups):
        return ()
    n_groups, size = n_servers // place.size, place.size
    group = [i % n_groups if place.strided else i // size for i in servers]
    return tuple(tuple(o for o in servers if o != i and group[o] == group[i]) for i in servers)


def fetch_s(policy: Policy) -> float:
    """Time in which a shard is loaded from a peer [s]; 0 without peers."""
    stages = (stage for rule in policy.rules for stage in rule.stages)
    loads = (one.cost for one in stages if one.kind is StageKind.LOAD and one.cost is not None)
    return Costs.mean_h(next(loads, None), 1) * S_PER_H
