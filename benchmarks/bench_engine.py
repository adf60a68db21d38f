"""Speed of the fast engine, beside SimPy and beside a bare draw of the random numbers needed.

One job of 50 h, saves every 1.25 h, MTBF of the job 20 h, as in bench_simulator.py; by one clock of
the job, and by a clock per node at 38, 1,000 and 100,000 nodes. Medians of several rounds, in
replications per second on one core; what counts is the ratios, all of one run.

engine: from failures to rows. all: drawing the failures and the engine. limit: drawing bare gaps,
(1.1 x 50 h / 20 h + 1) per replication in one call, which nothing that draws gaps can beat.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import perf_counter

import numpy as np

from cprsim import engine
from cprsim.cluster import Block, JobSetting, cost_breakdown, shard_loss
from cprsim.draws import CostDraws
from cprsim.failures.block import BlockFailures, StackedFailures
from cprsim.failures.distributions import Constant, Distribution, with_mean
from cprsim.failures.job_clock import JobClock
from cprsim.failures.node_clocks import NodeClocks
from cprsim.failures.sources import FailureSource, Start
from cprsim.records import Clock, Cluster, Costs, Holds, OnFailure, RecoveryPolicy, Role

USEFUL_H, INTERVAL_H, MTBF_H = 50.0, 1.25, 20.0
COSTS = Costs(
    save_stall=Constant(0.05), load=Constant(0.1), detect=Constant(0.05), reschedule=Constant(0.15)
)
LIFETIMES = [("exponential", None), ("gamma", 0.7), ("gamma", 2.5)]
NODES = [38, 1_000, 100_000]
BLOCKS, ROUNDS = 25, 5  # blocks stacked as one, as the pipeline does
SIMPY_REPLICATIONS = 200
POLICIES = {
    "full": RecoveryPolicy("full", OnFailure.ROLL_BACK, INTERVAL_H, "given"),
    "partial": RecoveryPolicy("partial", OnFailure.RELOAD, INTERVAL_H, "given"),
}


def main() -> None:
    heads = ("drawing/s", "full", "partial", "all, full", "simpy/s", "x simpy", "limit/s", "share")
    print(f"{'case':<36}" + "".join(f"{head:>12}" for head in heads))
    for name, source, n_nodes, lifetime in cases():
        rounds = [one_round(source, n_nodes, lifetime, number) for number in range(ROUNDS)]
        draw, full, partial, simpy, limit = (median(column) for column in zip(*rounds, strict=True))
        whole = 1 / (1 / draw + 1 / full)
        numbers = f"{draw:>12,.0f}{full:>12,.0f}{partial:>12,.0f}{whole:>12,.0f}{simpy:>12,.0f}"
        print(f"{name:<36}{numbers}{full / simpy:>12,.0f}{limit:>12,.0f}{whole / limit:>12.1%}")


def cases() -> Iterator[tuple[str, FailureSource, int, Distribution]]:
    for family, shape in LIFETIMES:
        word = family if shape is None else f"{family} {shape:g}"
        gap = with_mean(family, MTBF_H, shape)
        yield f"{word}, job clock", JobClock(gap, range(38)), 38, gap
        for n_nodes in NODES:
            life = with_mean(family, MTBF_H * n_nodes, shape)
            nodes = NodeClocks({"emb_ps": life}, start=Start.STATIONARY)
            yield f"{word}, {n_nodes:,} node clocks", nodes, n_nodes, gap


def one_round(
    source: FailureSource, n_nodes: int, gap: Distribution, number: int
) -> tuple[float, ...]:
    """Replications per second: drawing, full, partial, SimPy under full, bare draw."""
    cluster = Cluster((Role("emb_ps", n_nodes, Holds.SHARD),))
    setting = JobSetting(USEFUL_H, cluster, COSTS, Clock.WALL)
    begin = perf_counter()
    blocks = [block_of(source, cluster, BLOCKS * number + i) for i in range(BLOCKS)]
    drawn = perf_counter() - begin
    stacked = StackedFailures(blocks)
    n = stacked.n_replications
    costs = CostDraws.of(COSTS, 1, 0, blocks[0].n_replications, BLOCKS)
    block = Block(setting, number, stacked, costs)
    engines = [seconds_in_arrays(block, policy) for policy in POLICIES.values()]
    simpy = seconds_by_events(block, POLICIES["full"])
    limit = bare_draw(gap, n)
    return n / drawn, *(n / took for took in engines), SIMPY_REPLICATIONS / simpy, n / limit


def block_of(source: FailureSource, cluster: Cluster, number: int) -> BlockFailures:
    """A block whose failures are drawn as far as the job goes."""
    failures = BlockFailures(source, cluster, 1, number, USEFUL_H)
    failures.chunk(1)
    return failures


def seconds_in_arrays(block: Block, policy: RecoveryPolicy) -> float:
    n = block.failures.n_replications
    begin = perf_counter()
    engine.simulate(block.setting, policy, block.failures, block.costs, range(n))
    return perf_counter() - begin


def seconds_by_events(block: Block, policy: RecoveryPolicy) -> float:
    next(block.failures.of(0), None)  # the objects that SimPy reads are drawing, not simulating
    begin = perf_counter()
    log = block.simulate(policy, range(SIMPY_REPLICATIONS))
    cost_breakdown(log, USEFUL_H)
    shard_loss(log, block.setting.cluster.n_emb_ps)
    return perf_counter() - begin


def bare_draw(gap: Distribution, n_replications: int) -> float:
    rng = np.random.Generator(np.random.SFC64(1))
    n_gaps = int(n_replications * (1.1 * USEFUL_H / MTBF_H + 1))
    begin = perf_counter()
    gap.sample(rng, n_gaps)
    return perf_counter() - begin


if __name__ == "__main__":
    main()
