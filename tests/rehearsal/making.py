"""Small material and orders that several tests of rehearsals share."""

from dataclasses import replace
from functools import cache
from itertools import count
from math import inf
from pathlib import Path

from cprsim.job.model_shape import MODEL_PRESETS, ModelShape
from cprsim.job.policy import RELOAD, Policy
from cprsim.job.records import S_PER_H, ShardBy, SubSaves
from cprsim.rehearsal.material import Material, image_bytes
from cprsim.rehearsal.nodes import ForkServer
from cprsim.rehearsal.orders import Kill, Orders, SaveBehind, Speeds, saves_due
from cprsim.rehearsal.setting import (
    kills_of,
    material_of,
    orders_of,
    policies_to_rehearse,
    speeds_of,
)
from cprsim.rehearsal.supervisor import FinishedRun, Supervisor
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.clicks.records import split
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.training import TrainingPlan
from cprsim.training.proxy_model import proxy_model
from tests.making import SCENARIOS, paper_policy

SCENARIO = SCENARIOS / "rehearsal.yaml"
SMALL = "kernel.samples=20000"
N_SERVERS = 3
LOAD_S = 0.1
NUMBERS = count()  # of runs


def material(
    n: int = 12_000, optimizer: str = "sgd", by: ShardBy = ShardBy.ROWS, n_trainers: int = 1
) -> Material:
    """A small model with its training clicks."""
    tables = MODEL_PRESETS["criteo-kaggle"].tables.capped(500)
    train, _ = split(generate(tables, n, seed=3)[0])
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
    behind: tuple[SaveBehind, ...] = (),
) -> Orders:
    """Orders with so many saves in the job; stall and load are of everybody at once.

    Saves behind the job go as often, of each kind; each server's copies lie on the next.
    """
    policy = paper_policy("x", RELOAD, useful_s / S_PER_H / saves, "", sub_saves=sub_saves)
    size = image_bytes(what)
    due = saves_due(policy, useful_s / S_PER_H, what.n_samples, what.on_grid)
    if behind:
        due = tuple(replace(one, kind=kind) for one in due for kind in range(len(behind)))
    speeds = Speeds(
        heartbeat_s=0.05, timeout_s=0.3, reschedule_s=0.1, save_rate=size / stall_s,
        load_together=N_SERVERS * size / LOAD_S, load_alone=inf,
    )  # fmt: skip
    return Orders(
        name="x",
        rolls_back=rolls_back,
        useful_s=useful_s,
        due=due,
        behind=behind,
        holders=((1,), (2,), (0,)) if any(one.to_peers for one in behind) else (),
        fetch_s=LOAD_S,
        speeds=speeds,
        sub_saves=sub_saves,
        kills=kills,
        n_servers=N_SERVERS,
        n_trainers=what.n_trainers,
        limit_s=60.0,
    )


@cache
def shipped() -> Material:
    """That of the shipped scenario: its shards, and fewer clicks."""
    return material_of(proxy_model(load_scenario(SCENARIO, [SMALL])))


def job(*overrides: str) -> Experiment:
    """The shipped scenario with changes."""
    return assemble(load_scenario(SCENARIO, [SMALL, *overrides]))


def planned(job: Experiment, name: str, trace: int | None = None) -> tuple[Policy, Orders]:
    """A strategy of a scenario, and its orders; with the kills of a trace."""
    (policy,) = policies_to_rehearse(job, (name,))
    kills = () if trace is None else kills_of(job, trace, speeds_of(job, shipped()))[0]
    return policy, orders_of(job, policy, shipped(), kills)


def run(placement: ForkServer, what: Material, todo: Orders) -> FinishedRun:
    """Run orders on real processes."""
    store = placement.folder / f"run-{next(NUMBERS)}"
    return Supervisor(placement, what, todo, store).run()


def descendants(pid: int) -> list[int]:
    """Processes below one that lives or is gone."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [found for word in text.split() for found in (int(word), *descendants(int(word)))]
