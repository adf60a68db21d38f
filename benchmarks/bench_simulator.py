"""Speed of SimPy alone, beside a bare SimPy timeout loop in the same run on the same core.

One job of 50 h, saves every 1.25 h, MTBF of the job 20 h: by one clock of the job (38 nodes), and
by a clock per node (38 and 1,000 nodes). Cycles of work and save are taken at once where nothing
else happens. Drawing the failures is timed apart. Medians of several rounds; ratios are what
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter

import simpy

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.distributions import Constant, Exponential
from cprsim.failures.sources import FailureSource
from cprsim.records import Clock, Cluster, Costs, Holds, OnFailure, RecoveryPolicy, Role
from cprsim.recovery.classic import as_system
from cprsim.recovery.policy import Reach, Scope
from cprsim.simulate.engines import Block, Engine
from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.strikes import ScopeShares

USEFUL_H, INTERVAL_H, MTBF_H = 50.0, 1.25, 20.0
COSTS = Costs(
    save_stall=Constant(0.05), load=Constant(0.1), detect=Constant(0.05), reschedule=Constant(0.15)
)
REPLICATIONS = 500
ROUNDS = 7
BARE_EVENTS = 200_000


def main() -> None:
    print(f"{'case':<34}{'reps/s':>9}{'events/s':>11}{'of bare loop':>14}{'drawing':>9}")
    rows = [measure(name, source, n_nodes, how) for name, source, n_nodes, how in cases()]
    bare = median(row.bare for row in rows)
    print(f"{'bare SimPy timeout loop':<34}{'':>9}{bare:>11,.0f}{1:>14.2f}")
    for row in rows:
        print(
            f"{row.name:<34}{row.replications:>9,.0f}{row.events:>11,.0f}"
            f"{row.ratio:>14.2f}{row.drawing_fraction:>8.0%}"
        )


def cases() -> Iterator[tuple[str, FailureSource, int, OnFailure]]:
    job = JobClock(Exponential(MTBF_H), range(38))
    for how in (OnFailure.ROLL_BACK, OnFailure.RELOAD):
        word = "full" if how is OnFailure.ROLL_BACK else "partial"
        yield f"job clock, 38 nodes, {word}", job, 38, how
        for n_nodes in (38, 1000):
            nodes = NodeClocks({"emb_ps": Exponential(MTBF_H * n_nodes)})
            yield f"node clocks, {n_nodes:,} nodes, {word}", nodes, n_nodes, how


class Row:
    """Medians over the rounds of one case."""

    def __init__(self, name: str, rounds: list[tuple[float, float, float, int]]) -> None:
        self.name = name
        self.bare = median(bare for bare, _, _, _ in rounds)
        self.replications = median(REPLICATIONS / took for _, took, _, _ in rounds)
        self.events = median(n_events / took for _, took, _, n_events in rounds)
        self.ratio = median(n_events / took / bare for bare, took, _, n_events in rounds)
        self.drawing_fraction = median(drew / (drew + took) for _, took, drew, _ in rounds)


def measure(name: str, source: FailureSource, n_nodes: int, how: OnFailure) -> Row:
    cluster = Cluster((Role("emb_ps", n_nodes, Holds.SHARD),))
    policy = RecoveryPolicy("benchmark", how, INTERVAL_H, "given")
    scopes = (Scope("node", Reach.NODE, COSTS.detect),)
    system = as_system(policy, COSTS, cluster)
    job = SimulatedJob(USEFUL_H, cluster, Clock.WALL, scopes, system)
    return Row(name, [one_round(job, source, number) for number in range(ROUNDS)])


def one_round(
    job: SimulatedJob, source: FailureSource, number: int
) -> tuple[float, float, float, int]:
    """Bare events per second, seconds simulating, seconds drawing, events simulated."""
    bare = BARE_EVENTS / seconds(bare_loop)
    failures = BlockFailures(source, job.cluster, 1, number, job.useful_h)
    drew = seconds(lambda: [list(_first(failures, n)) for n in range(REPLICATIONS)])
    block = Block(number, failures, 1, ScopeShares((1.0,), (Reach.NODE,), job.cluster.n_nodes))
    took = seconds(lambda: simulate(block, job))
    return bare, took, drew, events_of(block, job)


def _first(failures: BlockFailures, replication: int) -> Iterator[float]:
    for failure in failures.of(replication):
        yield failure.at_h
        if failure.at_h > 2 * USEFUL_H:
            return


def simulate(block: Block, job: SimulatedJob) -> None:
    Engine(1, job, simpy_alone=True).run(block, range(REPLICATIONS))


def events_of(block: Block, job: SimulatedJob) -> int:
    """How many events SimPy processes, counted in a second run that is not timed."""
    n_events = 0
    step = simpy.Environment.step

    def counting(env: simpy.Environment) -> None:
        nonlocal n_events
        n_events += 1
        step(env)

    simpy.Environment.step = counting  # type: ignore[method-assign]
    try:
        simulate(block, job)
    finally:
        simpy.Environment.step = step  # type: ignore[method-assign]
    return n_events


def bare_loop() -> None:
    env = simpy.Environment()

    def tick() -> Iterator[simpy.Event]:
        for _ in range(BARE_EVENTS):
            yield env.timeout(1.0)

    env.process(tick())
    env.run()


def seconds(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


if __name__ == "__main__":
    main()
