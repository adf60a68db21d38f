"""Speed of the compiled loop, beside SimPy and beside a bare draw of the random numbers needed.

One job of 50 h, saves every 1.25 h, MTBF of the job 20 h, as in bench_simulator.py; by one clock of
the job, and by a clock per node at 38, 1,000 and 100,000 nodes. Medians of several rounds, in
replications per second of processor time on one core; what counts is the ratios, all of one run.

    full, partial   drawing the failures and simulating the strategy
    again           simulating full recovery alone, as it is for each further strategy
    simpy           the same from drawn failures, on the SimPy cluster; x: full over simpy
    limit           drawing the bare random numbers, each kind in one call of NumPy. Of one clock:
                    1.1 x 50 h / 20 h + 1 gaps per replication, and who fails (so too for
                    exponential node clocks, which are one). Of a clock per node: how many fail,
                    when (the inverse of the distribution at uniform numbers), who, when again.
    f, p            share of the limit: full and partial over it

The last lines compare the first case with a plain SimPy model of the same job.

`--figure FILE` draws instead how the cost of a replication grows with failures and with nodes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import simpy

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.sources import FailureSource, Start
from cprsim.job.distributions import Constant, Distribution, Exponential, with_mean
from cprsim.job.policy import RELOAD, ROLL_BACK, Reach, Scope
from cprsim.job.records import Clock, Cluster, Costs, Holds, Role
from cprsim.pages.chart import Chart, Panel, Series, chart_figure, floats
from cprsim.pages.figures import save_figure
from cprsim.recovery.paper import strategy
from cprsim.simulation.blocks import Block
from cprsim.simulation.cluster import run_one
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.strikes import ScopeShares

USEFUL_H, INTERVAL_H, MTBF_H = 50.0, 1.25, 20.0
COSTS = Costs(
    save_stall=Constant(0.05), load=Constant(0.1), detect=Constant(0.05), reschedule=Constant(0.15)
)
LIFETIMES = [("exponential", None), ("gamma", 0.7), ("gamma", 2.5)]
NODES = [38, 1_000, 100_000]
BLOCKS, ROUNDS, SIMPY_REPLICATIONS, PLAIN_REPLICATIONS = 10, 5, 200, 2_000
BARE = 100_000  # replications whose random numbers are drawn bare
N_FAILURES = int(1.1 * USEFUL_H / MTBF_H * BARE)  # of all of them
FULL, PARTIAL = ROLL_BACK, RELOAD
MTBFS_H = [50.0, 20.0, 10.0, 5.0, 2.5]  # of the figure: 1 to 20 failures per job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path)
    figure = parser.parse_args().figure
    if figure is None:
        table()
    else:
        draw_figure(figure)


def table() -> None:
    heads = ("full/s", "partial/s", "again/s", "simpy/s", "limit/s")
    print(f"{'case':<32}" + "".join(f"{head:>12}" for head in heads) + f"{'x':>8}{'f':>6}{'p':>6}")
    first: tuple[float, ...] = ()  # the exponential job clock: simulated, and drawn too
    for name, source, n_nodes, life in cases(MTBF_H):
        rounds = [one_round(source, n_nodes, life, number) for number in range(ROUNDS)]
        draw, full, partial, simpy, limit = (median(column) for column in zip(*rounds, strict=True))
        whole = [draw + full, draw + partial]
        cells = "".join(f"{1 / one:>12,.0f}" for one in [*whole, full, simpy, limit])
        shares = "".join(f"{limit / one:>6.0%}" for one in whole)
        print(f"{name:<32}{cells}{simpy / (draw + full):>8,.0f}{shares}", flush=True)
        first = first or (full, draw + full)
    began, rng = process_time(), np.random.default_rng(1)
    walls_h = [plain_wall_h(rng) for _ in range(PLAIN_REPLICATIONS)]
    plain = (process_time() - began) / PLAIN_REPLICATIONS
    again, whole = (plain / one for one in first)
    print(f"plain SimPy model: {1 / plain:,.0f}/s; mean {np.mean(walls_h):.2f} h of wall time")
    print(f"compiled: {again:,.0f} x, with drawing {whole:,.0f} x; mean {compiled_wall_h():.2f} h")


def cases(mtbf_h: float) -> Iterator[tuple[str, FailureSource, int, Distribution]]:
    for family, shape in LIFETIMES:
        word = family if shape is None else f"{family} {shape:g}"
        gap = with_mean(family, mtbf_h, shape)
        yield f"{word}, job clock", JobClock(gap, range(38)), 38, gap
        for n_nodes in NODES:
            life = with_mean(family, mtbf_h * n_nodes, shape)
            nodes = NodeClocks({"emb_ps": life}, start=Start.STATIONARY)
            yield f"{word}, {n_nodes:,} node clocks", nodes, n_nodes, life


def one_round(
    source: FailureSource, n_nodes: int, life: Distribution, number: int
) -> tuple[float, ...]:
    """Seconds per replication: drawing, full, partial, SimPy under full, bare draw."""
    drawing, full, partial = 0.0, 0.0, 0.0
    for i in range(BLOCKS):
        block = block_of(source, n_nodes, BLOCKS * number + i)
        n = block.failures.n_replications
        # the first strategy asks for more failures than the first chunk, the second finds them
        first_chunk = seconds(block.failures.strikes, 1)
        with_more = seconds(in_arrays, block, n_nodes, FULL)
        again = seconds(in_arrays, block, n_nodes, FULL)
        drawing += (first_chunk + with_more - again) / n / BLOCKS
        full += again / n / BLOCKS
        partial += seconds(in_arrays, block, n_nodes, PARTIAL) / n / BLOCKS
    by_simpy = seconds(by_events, block, n_nodes, FULL) / SIMPY_REPLICATIONS
    one_clock = isinstance(source, JobClock) or isinstance(life, Exponential)
    bare = bare_gaps if one_clock else bare_first_failures
    limit = seconds(bare, life, n_nodes, np.random.Generator(np.random.SFC64(number))) / BARE
    return drawing, full, partial, by_simpy, limit


def bare_gaps(life: Distribution, n_nodes: int, rng: np.random.Generator) -> None:
    """The random numbers of one clock."""
    life.sample(rng, N_FAILURES + BARE)
    rng.integers(0, n_nodes, N_FAILURES)


def bare_first_failures(life: Distribution, n_nodes: int, rng: np.random.Generator) -> None:
    """The random numbers of a clock per node."""
    p_fails = N_FAILURES / BARE / n_nodes
    n = int(rng.binomial(n_nodes, p_fails, BARE).sum())
    life.quantile(p_fails * rng.random(n))
    rng.integers(0, n_nodes, n)
    life.sample(rng, n)


def seconds(work: Callable[..., object], *arguments: object) -> float:
    begin = process_time()
    work(*arguments)
    return process_time() - begin


@cache
def cluster_of(n_nodes: int) -> Cluster:
    return Cluster((Role("emb_ps", n_nodes, Holds.SHARD),))


@cache
def job_of(does: str, n_nodes: int) -> SimulatedJob:
    """A job under a strategy; what follows from one is worked out once."""
    cluster, scopes = cluster_of(n_nodes), (Scope("node", Reach.NODE, COSTS.detect),)
    policy = strategy(does, does, COSTS, cluster, INTERVAL_H)
    return SimulatedJob(USEFUL_H, cluster, Clock.WALL, scopes, policy)


def block_of(source: FailureSource, n_nodes: int, number: int) -> Block:
    failures = BlockFailures(source, cluster_of(n_nodes), 1, number, USEFUL_H)
    return Block(failures, ScopeShares((1.0,), (Reach.NODE,), n_nodes))


def in_arrays(block: Block, n_nodes: int, does: str) -> None:
    n = block.failures.n_replications
    block.run(job_of(does, n_nodes), range(n), keep_losses=False)


def by_events(block: Block, n_nodes: int, does: str) -> None:
    job = job_of(does, n_nodes)
    meets = block.meets(job)
    for row in range(SIMPY_REPLICATIONS):
        run_one(job, *meets, row, skips=True)


# --------------------------------------------------------------------------- a plain model


def plain_job(env: simpy.Environment) -> Generator[simpy.Event]:
    """Work, save, and go back to the last save after each failure."""
    saved_h, recovers = 0.0, False
    while saved_h < USEFUL_H:
        try:
            if recovers:
                for cost in (COSTS.detect, COSTS.reschedule, COSTS.load):
                    yield env.timeout(cost.mean_h)
                recovers = False
            work_h = min(INTERVAL_H, USEFUL_H - saved_h)
            yield env.timeout(work_h)
            yield env.timeout(COSTS.save_stall.mean_h)
            saved_h += work_h
        except simpy.Interrupt:
            recovers = True


def plain_failures(
    env: simpy.Environment, job: simpy.Process, rng: np.random.Generator
) -> Generator[simpy.Event]:
    while True:
        yield env.timeout(rng.exponential(MTBF_H))
        job.interrupt()


def plain_wall_h(rng: np.random.Generator) -> float:
    """Wall hours of one job."""
    env = simpy.Environment()
    job = env.process(plain_job(env))
    env.process(plain_failures(env, job, rng))
    env.run(until=job)
    return env.now


def compiled_wall_h() -> float:
    """Mean wall hours of the compiled loop."""
    block = block_of(JobClock(with_mean("exponential", MTBF_H), range(38)), 38, 0)
    n = block.failures.n_replications
    return float(block.run(job_of(FULL, 38), range(n)).costs.wall_h.mean())


# --------------------------------------------------------------------------- the figure


def draw_figure(path: Path) -> None:
    """Cost of a replication over failures per job, a line per number of nodes."""
    in_arrays(block_of(JobClock(with_mean("gamma", MTBF_H, 0.7), range(38)), 38, 0), 38, PARTIAL)
    failures = tuple(USEFUL_H / mtbf_h for mtbf_h in MTBFS_H)
    lines, all_costs_us, all_drawn = [], [], []
    for n_nodes in NODES:
        costs_us, drawn = np.transpose([cost_of(n_nodes, mtbf_h) for mtbf_h in MTBFS_H])
        lines.append(Series(f"{n_nodes:,} nodes", failures, floats(costs_us)))
        all_costs_us.append(costs_us)
        all_drawn.append(drawn)
    each_us = np.sum(all_costs_us) / np.sum(all_drawn)
    fine = np.linspace(failures[0], failures[-1], 50)  # so many that it has no markers
    of_drawn = np.interp(fine, failures, each_us * np.mean(all_drawn, axis=0))
    label = f"{each_us:.2f} µs for each failure drawn"
    lines.append(Series(label, floats(fine), floats(of_drawn)))
    panel = Panel(
        "", "failures per job (useful time / MTBF)", "µs of one core per replication", tuple(lines)
    )
    about = "A clock per node, gamma 0.7; drawing and partial recovery"
    chart = Chart("Cost of a replication over failures per job", about, (panel,))
    save_figure(chart_figure(chart), path.with_suffix(""), formats=("png",))


def cost_of(n_nodes: int, mtbf_h: float) -> tuple[float, float]:
    """Of a replication: µs of drawing and partial recovery, median of several rounds; failures."""
    source = NodeClocks({"emb_ps": with_mean("gamma", mtbf_h * n_nodes, 0.7)})
    costs_us, drawn = [], []
    for number in range(1, ROUNDS + 1):
        block = block_of(source, n_nodes, number)
        n = block.failures.n_replications
        costs_us.append(1e6 * seconds(in_arrays, block, n_nodes, PARTIAL) / n)
        drawn.append(block.failures.n_drawn / n)
    return median(costs_us), median(drawn)


if __name__ == "__main__":
    main()
