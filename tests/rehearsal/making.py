"""Small material and orders that several tests of rehearsals share."""

from __future__ import annotations

from dataclasses import replace

from cprsim.experiments.assemble import Experiment, assemble
from cprsim.kernel.clicks.generated import generate
from cprsim.kernel.clicks.records import split
from cprsim.kernel.shape import PRESETS, ModelShape
from cprsim.kernel.shards import Shards
from cprsim.kernel.training import TrainingPlan
from cprsim.records import ShardBy, SubSaves
from cprsim.recovery.policy import RELOAD, Policy
from cprsim.rehearsal.log import event_log
from cprsim.rehearsal.material import Material, image_bytes
from cprsim.rehearsal.nodes import ForkServer
from cprsim.rehearsal.orders import SECONDS, Kill, Orders, SaveBehind, Speeds, saves_due
from cprsim.rehearsal.prediction import FoldedRun, folded
from cprsim.rehearsal.setting import kills_of, orders_of, policies_to_rehearse, speeds_of
from cprsim.rehearsal.supervisor import FinishedRun, Supervisor
from cprsim.rehearsal.verdict import ReplayCheck, check_replay
from cprsim.scenario.reading import load_scenario
from tests.making import SCENARIOS, paper_policy

SCENARIO = SCENARIOS / "rehearsal.yaml"
SMALL = "kernel.samples=20000"
N_SERVERS = 3
SPEEDS = Speeds(
    heartbeat_s=0.05, timeout_s=0.3, reschedule_s=0.1, save_rate=0.0, load_together=0.0,
    load_alone=float("inf"),
)  # fmt: skip


def material(
    n: int = 12_000, optimizer: str = "sgd", by: ShardBy = ShardBy.ROWS, n_trainers: int = 1
) -> Material:
    """A small model with its training clicks."""
    tables = PRESETS["criteo-kaggle"].tables.capped(500)
    train, _ = split(generate(tables, n, seed=3).clicks)
    plan = TrainingPlan(rate=0.1, schedule="linear", optimizer=optimizer)
    shape = ModelShape(tables, 8, (16,), (16,))
    return Material(shape, train, plan, Shards(tables, N_SERVERS, by), n_trainers)


def orders(
    what: Material,
    *kills: Kill,
    rolls_back: bool = False,
    useful_s: float = 2.0,
    saves: float = 3.3,
    sub_saves: SubSaves | None = None,
    stall_s: float = 0.1,
    load_s: float = 0.1,
    behind: tuple[SaveBehind, ...] = (),
) -> Orders:
    """Orders with so many saves in the job; stall and load are of everybody at once.

    Saves behind the job go as often, of each kind; each server's copies lie on the next.
    """
    policy = paper_policy("x", RELOAD, useful_s / SECONDS / saves, "", sub_saves=sub_saves)
    size = image_bytes(what)
    due = saves_due(policy, useful_s / SECONDS, what.n_samples, what.on_grid)
    if behind:
        due = tuple(replace(one, kind=kind) for one in due for kind in range(len(behind)))
    speeds = replace(SPEEDS, save_rate=size / stall_s, load_together=N_SERVERS * size / load_s)
    return Orders(
        name="x",
        rolls_back=rolls_back,
        useful_s=useful_s,
        due=due,
        behind=behind,
        holders=((1,), (2,), (0,)) if any(one.to_peers for one in behind) else (),
        fetch_s=load_s,
        speeds=speeds,
        sub_saves=sub_saves,
        kills=kills,
        n_servers=N_SERVERS,
        n_trainers=what.n_trainers,
        limit_s=60.0,
    )


def job(*overrides: str) -> Experiment:
    """The shipped scenario with changes."""
    return assemble(load_scenario(SCENARIO, [SMALL, *overrides]))


def planned(
    job: Experiment, what: Material, name: str, trace: int | None = None
) -> tuple[Policy, Orders]:
    """A strategy of a scenario, and its orders; with the kills of a trace."""
    (policy,) = policies_to_rehearse(job, (name,))
    kills = () if trace is None else kills_of(job, trace, speeds_of(job, what))[0]
    return policy, orders_of(job, policy, what, kills)


def run(placement: ForkServer, what: Material, todo: Orders, name: str) -> FinishedRun:
    """Run orders on real processes."""
    store = placement.folder / f"run-{name}"
    return Supervisor(placement, what, todo, store).run()


def beside_replay(ran: FinishedRun, what: Material) -> tuple[FoldedRun, ReplayCheck]:
    """The run as a log that adds up, and what the kernel makes of that."""
    useful_h = ran.orders.useful_s / SECONDS
    log = event_log(ran.facts, ran.orders, what.n_samples, 0)
    measured = folded(log, useful_h, N_SERVERS)
    return measured, check_replay(ran, log, what)
