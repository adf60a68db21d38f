"""Every simulator behind one call: all that tests know of the inside of `cprsim.simulation`.

`ran` is one replication of given `failures` by one of `SIMULATORS`; `run_many`
runs many. `job_of` makes a job under one of the paper's strategies.
"""

from collections.abc import Sequence
from dataclasses import fields
from itertools import product
from math import inf, isclose, sqrt
from typing import Any

import pytest
from numpy.typing import NDArray

from cprsim.job.distributions import Constant
from cprsim.job.policy import RELOAD, RESTART, ROLL_BACK, Reach, Scope
from cprsim.job.records import (
    Activity,
    Clock,
    Cluster,
    CostBreakdown,
    Costs,
    Duration,
    EventKind,
    EventLog,
    Floats,
    Holds,
    Role,
    ShardLoss,
    Storage,
    SubSaves,
)  # fmt: skip
from cprsim.recovery.paper import strategy
from cprsim.results.pipeline import blocks_of
from cprsim.scenario.assemble import Experiment
from cprsim.simulation.blocks import run_block
from cprsim.simulation.cluster import JobResult, ReplicationBlock, SharedCluster, run_fleet, run_one
from cprsim.simulation.draws import BlockDraws
from cprsim.simulation.folding import cost_breakdown, shard_loss
from cprsim.simulation.job import NOTICE, ScopedFailure, SimulatedJob
from cprsim.simulation.storage import SharedSaves
from cprsim.simulation.strikes import given_failures
from tests.recovery import naive
from tests.recovery.outcome import ReplicationDraws, ReplicationOutcome, StaleShard

FULL, PARTIAL, NONE = ROLL_BACK, RELOAD, RESTART
SEED = 3
CLOSE = 1e-9  # relative, or in hours
SIMULATORS = ("simpy", "loop", "naive")

# --------------------------------------------------------------------------- one replication


def draws_of(job: SimulatedJob, seed: int = 0, n: int = 1) -> BlockDraws:
    """What varies in n replications."""
    return BlockDraws(job, seed, 0, n, range(n))


def ran(
    simulator: str, job: SimulatedJob, failures: Sequence[ScopedFailure], draws: BlockDraws
) -> ReplicationOutcome:
    """What one simulator makes of one replication."""
    if simulator == "naive":
        return naive.Replication(job, failures, ReplicationDraws(job, draws)).run()
    given = given_failures((tuple(failures),))
    if simulator == "simpy":
        return by_simpy(job, given, draws, 0)
    if simulator == "storage":
        return over_storage(job, given, draws)
    ran = run_block(job, given, draws, range(1), keep_losses=True)
    return outcome_of(ran.costs, ran.costs.hours[0], ran.losses)


def by_simpy(
    job: SimulatedJob, failures: Any, draws: BlockDraws, row: int, skips: bool = True
) -> ReplicationOutcome:
    """One replication on the SimPy cluster."""
    of, _ = run_one(job, failures, draws, row, skips=skips)
    return outcome_of_result(of)


def over_storage(job: SimulatedJob, failures: Any, draws: BlockDraws) -> ReplicationOutcome:
    """One replication on a SimPy cluster whose storage is as fast as all saves and loads need."""
    captures = frozenset(range(len(job.policy.captures)))
    cluster = SharedCluster(n_spares=job.cluster.n_spares, storage_bytes_per_h=1e15)
    block = ReplicationBlock(job, failures, draws, SharedSaves(captures))
    (of,) = run_fleet(cluster, [0.0], [(block, 0)])
    return outcome_of_result(of)


def outcome_of_result(of: JobResult) -> ReplicationOutcome:
    """What became of a job on the SimPy cluster."""
    stale = tuple(
        StaleShard(at_h, int(slot), at_h - old_h, at_h - net_h)
        for _, slot, at_h, old_h, net_h in of.losses.tolist()
    )
    return ReplicationOutcome(
        of.finished, of.wall_h, of.useful_h, tuple(of.hours), of.n_failures, of.n_saves, stale
    )


def assert_cluster_agrees(experiment: Experiment, n: int) -> None:
    """The first n replications are the same on the SimPy cluster, under each strategy."""
    for block, policy in product(blocks_of(experiment, range(n)), experiment.policies):
        job = experiment.simulated_job(policy)
        meets = block.meets(job)
        n_rows = meets[0].n_replications
        costs = run_block(job, *meets, range(n_rows)).costs
        for row in range(n_rows):
            assert_row(by_simpy(job, *meets, row), costs, row, policy.name)


def assert_row(of: ReplicationOutcome, costs: CostBreakdown, row: int, note: object = "") -> None:
    """An outcome is that of a row."""
    counts = costs.finished[row], costs.n_failures[row], costs.n_saves[row]
    assert (of.finished, of.n_failures, of.n_saves) == counts, (note, row)
    hours = [costs.wall_h[row], costs.useful_h[row], *costs.hours[row]]
    expected = pytest.approx(hours, rel=CLOSE, abs=CLOSE)
    assert [of.wall_h, of.useful_h, *of.hours] == expected, (note, row)


def outcome_of(
    costs: CostBreakdown, hours: Sequence[float] | Floats, losses: ShardLoss
) -> ReplicationOutcome:
    """One replication's row."""
    columns = (losses.progress_h, losses.slot, losses.since_save_h, losses.since_reload_h)
    stale = tuple(
        StaleShard(float(at_h), int(slot), float(at_h - old_h), float(at_h - net_h))
        for at_h, slot, old_h, net_h in zip(*columns, strict=True)
    )
    return ReplicationOutcome(
        bool(costs.finished[0]), float(costs.wall_h[0]), float(costs.useful_h[0]),
        tuple(map(float, hours)), int(costs.n_failures[0]), int(costs.n_saves[0]), stale,
    )  # fmt: skip


def logged(
    job: SimulatedJob, failures: Sequence[ScopedFailure], draws: BlockDraws | None = None
) -> EventLog:
    """The whole log of one replication, by SimPy."""
    _, log = run_one(job, given_failures((tuple(failures),)), draws or draws_of(job))
    return log


def told(log: EventLog) -> list[str]:
    """The log in words: wall time, event, slot, what the job does from then on, its progress."""
    lines = []
    for at_h, kind, activity, progress_h, slot in zip(
        log.at_h, log.kind, log.activity, log.progress_h, log.slot, strict=True
    ):
        what = EventKind(kind).name.lower() + (f" {slot}" if slot >= 0 else "")
        lines.append(f"{at_h:g} {what} {Activity(activity).name.lower()} @{progress_h:g}")
    return lines


def assert_folds(log: EventLog, job: SimulatedJob, booked: ReplicationOutcome) -> None:
    """The log of a strategy folds to what was booked."""
    costs, losses = cost_breakdown(log, job.useful_h), shard_loss(log, job.cluster.n_emb_ps)
    hours = [float(costs.hours_of(part)[0]) for part in job.policy.parts]
    assert costs.hours.sum() <= sum(hours) + CLOSE  # no other part
    assert_same_outcome(outcome_of(costs, hours, losses), booked)


def assert_same_outcome(
    ours: ReplicationOutcome, theirs: ReplicationOutcome, note: object = "", times: float = 1.0
) -> None:
    """All numbers are equal to rounding, theirs in hours of so many times the length."""
    (counts, hours), (their_counts, their_hours) = numbers_of(ours), numbers_of(theirs)
    assert counts == their_counts, note
    pairs = [(own, times * their) for own, their in zip(hours, their_hours, strict=True)]
    assert [pair for pair in pairs if not isclose(*pair, rel_tol=CLOSE, abs_tol=CLOSE)] == [], note


def numbers_of(outcome: ReplicationOutcome) -> tuple[list[int], list[float]]:
    """Its counts, and its hours."""
    slots = [shard.slot for shard in outcome.stale]
    stale = [hours for shard in outcome.stale for hours in (shard.progress_h, shard.content_h)]
    counts = [outcome.finished, outcome.n_failures, outcome.n_saves, *slots]
    return counts, [outcome.wall_h, outcome.useful_h, *outcome.hours, *stale]


# --------------------------------------------------------------------------- many replications


def run_many(job: SimulatedJob, failures: Any) -> tuple[CostBreakdown, Floats]:
    """Costs and summed staleness [h] of as many replications as failures were drawn for."""
    n = failures.n_replications
    rows = run_block(job, failures, draws_of(job, SEED, n), range(n))
    return rows.costs, rows.stale_h * max(job.cluster.n_emb_ps, 1)


def columns_of(record: CostBreakdown | ShardLoss) -> dict[str, NDArray[Any]]:
    """A record's columns by name."""
    if isinstance(record, CostBreakdown):
        return record.columns()
    return {column.name: getattr(record, column.name) for column in fields(record)}


def z_score(values: Floats, theory: float) -> float:
    """How many standard errors the mean lies from theory; prints all three for a failing test."""
    standard_error = values.std(ddof=1) / sqrt(len(values))
    print(f"mean {values.mean():.6g}, theory {theory:.6g}, standard error {standard_error:.2g}")
    return float((values.mean() - theory) / standard_error)


# --------------------------------------------------------------------------- jobs of strategies


def job_of(
    on_failure: str,
    interval_h: float = inf,
    sub_saves: SubSaves | None = None,
    *,
    useful_h: float = 10.0,
    clock: Clock = Clock.WALL,
    n_emb_ps: int = 4,
    n_trainers: int = 0,
    n_sync_ps: int = 0,
    in_step: bool = False,
    save_h: float | Duration | Storage = 0.0,
    background_h: float | None = None,
    load_h: float | Duration | Storage = 0.0,
    detect_h: float = 0.0,
    reschedule_h: float | Duration = 0.0,
) -> SimulatedJob:
    """A job under a strategy; trainers `in_step` and sync servers go on without each other."""
    roles = [
        Role("emb_ps", n_emb_ps, Holds.SHARD),
        Role("trainer", n_trainers, Holds.REPLICA, others_go_on=in_step),
        Role("sync_ps", n_sync_ps, Holds.CENTRAL, others_go_on=True),
    ]
    costs = Costs(
        save_stall=_cost(save_h),
        save_background=None if background_h is None else Constant(background_h),
        load=_cost(load_h),
        detect=Constant(detect_h),
        reschedule=_cost(reschedule_h),
    )
    cluster = Cluster(tuple(role for role in roles if role.n_nodes))
    policy = strategy(on_failure, on_failure, costs, cluster, interval_h, sub_saves=sub_saves)
    scopes = (Scope("node", Reach.NODE, costs.detect),)
    return SimulatedJob(useful_h, cluster, clock, scopes, policy)


def _cost(cost: float | Duration | Storage) -> Duration | Storage:
    return Constant(cost) if isinstance(cost, int | float) else cost


def failures(
    words: str, scopes: Sequence[str] = ("node",), repair_h: float = 1.0
) -> list[ScopedFailure]:
    """Failures as words: ``3 node 0 1, 3.5 process 2 repair 4``: instant, scope, slots, repair [h].

    ``2.5 notice`` announces the next. Repairs are of all slots, or of each.
    """
    numbers = {"notice": NOTICE} | {name: number for number, name in enumerate(scopes)}
    found = []
    for word in filter(str.strip, words.split(",")):
        struck, _, repairs = word.partition("repair")
        at_h, scope, *slots = struck.split()
        hours = tuple(map(float, repairs.split())) or (repair_h,)
        hours = hours if len(hours) == len(slots) else hours * len(slots)
        found.append(ScopedFailure(float(at_h), tuple(map(int, slots)), numbers[scope], hours))
    return found
