"""Jobs for the tests of the simulation: short to write, explicit in what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt

from cprsim.failures.block import BlockFailures
from cprsim.failures.distributions import Constant
from cprsim.records import (
    Activity,
    Clock,
    Cluster,
    Costs,
    Duration,
    EventKind,
    EventLog,
    Failure,
    Floats,
    Holds,
    OnFailure,
    RecoveryPolicy,
    Role,
    Storage,
    SubSaves,
    Transfer,
)
from cprsim.recovery.classic import as_system, draw_names
from cprsim.recovery.policy import Reach, Scope
from cprsim.simulate import cluster
from cprsim.simulate.blocks import BlockDraws
from cprsim.simulate.engines import Block, Engine, Rows
from cprsim.simulate.job import ReplicationOutcome, ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import ScopeShares
from tests.simulate.folding import FOLDED, require_agreement

FULL, PARTIAL, NONE = OnFailure.ROLL_BACK, OnFailure.RELOAD, OnFailure.RESTART
SEED = 3


@dataclass(frozen=True, slots=True)
class JobSetting:
    """A job without its recovery."""

    useful_h: float
    cluster: Cluster
    costs: Costs
    clock: Clock


def policy(
    on_failure: OnFailure, interval_h: float = inf, sub_saves: SubSaves | None = None
) -> RecoveryPolicy:
    return RecoveryPolicy(str(on_failure), on_failure, interval_h, "given", None, sub_saves)


def setting(
    useful_h: float = 10.0,
    *,
    clock: Clock = Clock.WALL,
    n_emb_ps: int = 4,
    n_trainers: int = 0,
    n_spares: int | None = None,
    save_h: float | Duration | Transfer = 0.0,
    background_h: float | Duration | Transfer | None = None,
    load_h: float | Duration | Transfer = 0.0,
    detect_h: float = 0.0,
    reschedule_h: float | Duration = 0.0,
    storage: Storage | None = None,
) -> JobSetting:
    roles = [Role("emb_ps", n_emb_ps, Holds.SHARD)]
    if n_trainers:
        roles.append(Role("trainer", n_trainers, Holds.REPLICA))
    costs = Costs(
        save_stall=_cost(save_h),
        save_background=None if background_h is None else _cost(background_h),
        load=_cost(load_h),
        detect=Constant(detect_h),
        reschedule=_cost(reschedule_h),
        storage=storage,
    )
    return JobSetting(useful_h, Cluster(tuple(roles), n_spares), costs, clock)


def priced(numbers: tuple[float, ...], clock: Clock) -> JobSetting:
    """A job of these useful hours, interval, save, recovery and MTBF [h], as the closed forms take.

    The recovery is split over its stages, which must not matter.
    """
    useful_h, _, save_h, recovery_h, _ = numbers
    return setting(
        useful_h,
        clock=clock,
        save_h=save_h,
        detect_h=recovery_h / 8,
        reschedule_h=recovery_h / 2,
        load_h=recovery_h * 3 / 8,
    )


def z_score(values: Floats, theory: float) -> float:
    """How many standard errors the mean lies from theory; prints all three for a failing test."""
    standard_error = values.std(ddof=1) / sqrt(len(values))
    print(f"mean {values.mean():.5f}, theory {theory:.5f}, SE {standard_error:.5f}")
    return float((values.mean() - theory) / standard_error)


def failures(
    *instants: float | tuple[float, Iterable[int]], repair_h: float = 0.0
) -> list[Failure]:
    """Failures of slot 0, or of the slots named beside the instant."""
    made = []
    for instant in instants:
        at_h, slots = instant if isinstance(instant, tuple) else (instant, (0,))
        slots = tuple(slots)
        made.append(Failure(at_h, slots, (repair_h,) * len(slots)))
    return made


def simulated(job: JobSetting, how: RecoveryPolicy) -> SimulatedJob:
    """The job under a strategy, as the engines take it."""
    system = as_system(how, job.costs, job.cluster)
    scopes = (Scope("node", Reach.NODE, job.costs.detect),)
    renamed = draw_names(scopes, len(system.rules))
    return SimulatedJob(job.useful_h, job.cluster, job.clock, scopes, system, renamed=renamed)


def block_of(job: JobSetting, failing: BlockFailures, number: int = 0, seed: int = SEED) -> Block:
    """A block of failures, each of which kills nodes."""
    shares = ScopeShares((1.0,), (Reach.NODE,), job.cluster.n_nodes)
    return Block(number, failing, seed, shares)


def engine(
    job: JobSetting,
    how: RecoveryPolicy,
    *,
    simpy_alone: bool = False,
    keep_losses: bool = True,
    seed: int = SEED,
) -> Engine:
    """What runs the job; the parts of its hours are those of a folded log."""
    return Engine(
        seed, simulated(job, how), simpy_alone=simpy_alone, keep_losses=keep_losses, parts=FOLDED
    )


def ran(
    job: JobSetting,
    how: RecoveryPolicy,
    failing: BlockFailures,
    replications: range,
    *,
    simpy_alone: bool = False,
    keep_losses: bool = True,
) -> Rows:
    """Some replications of the first block."""
    runs = engine(job, how, simpy_alone=simpy_alone, keep_losses=keep_losses)
    return runs.run(block_of(job, failing), replications)


def run(job: JobSetting, how: RecoveryPolicy, strikes: Iterable[Failure] = ()) -> EventLog:
    """The event log of one replication, event by event; its accounts and losses agree with it."""
    one, struck = simulated(job, how), [scoped(strike) for strike in strikes]

    def outcome(logged: bool) -> tuple[EventLog, ReplicationOutcome]:
        draws = BlockDraws(one, 1, 0, 1, range(1)).of(0)
        played = cluster.run(one, iter(struck), draws, logged=logged, skips=not logged)
        return played.log, played.outcome

    log, accounts = outcome(logged=True)
    booked = (accounts, outcome(logged=False)[1])
    require_agreement(log, booked, one.policy.parts, job.useful_h, job.cluster.n_emb_ps)
    return log


def scoped(failure: Failure) -> ScopedFailure:
    return ScopedFailure(failure.at_h, failure.slots, 0, failure.repair_h)


def told(log: EventLog) -> list[str]:
    """The log in words: wall time, what happened, what the job does from then on, its progress."""
    lines = []
    for at_h, kind, activity, progress_h, slot in zip(
        log.at_h, log.kind, log.activity, log.progress_h, log.slot, strict=True
    ):
        what = EventKind(kind).name.lower() + (f" {slot}" if slot >= 0 else "")
        lines.append(f"{at_h:g} {what} -> {Activity(activity).name.lower()} @{progress_h:g}")
    return lines


def _cost(cost: float | Duration | Transfer) -> Duration | Transfer:
    return Constant(cost) if isinstance(cost, int | float) else cost
