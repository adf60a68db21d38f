"""Speed of recovery systems: the compiled loop beside SimPy, drawing included.

One job of 50 h on 16 nodes, one exponential clock of the job with an MTBF of 20 h. Medians of
several rounds, in replications per second of processor time on one core; what counts is the ratios,
all of one run.

    fast     drawing the failures and simulating the system
    again    simulating alone, as it is for each further system on the same failures
    simpy    from drawn failures, on the SimPy cluster
    x        fast over simpy

gemini copies to a peer every 10 s and saves remotely every 3 h, so that 50 h have 18,000 copies.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from time import process_time

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.job.distributions import Constant, Exponential
from cprsim.job.policy import RELOAD, ROLL_BACK, Policy, Reach, Scope
from cprsim.job.records import Clock, Cluster, Costs, Holds, Role, Storage
from cprsim.recovery.paper import strategy
from cprsim.recovery.system import JobProfile
from cprsim.recovery.systems import SYSTEMS
from cprsim.simulation.blocks import Block
from cprsim.simulation.cluster import run_one
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.strikes import ScopeShares

USEFUL_H, MTBF_H, N_NODES = 50.0, 20.0, 16
STEP_H = 10.0 / 3600.0
GB = 1e9
ROLE = "worker"
CLUSTER = Cluster((Role(ROLE, N_NODES, Holds.SHARD),))
SCOPES = (
    Scope("process", Reach.PROCESS, Constant(0.02), needs_node=False),
    Scope("node", Reach.NODE, Constant(0.05)),
)
SHARES = ScopeShares((0.5, 0.5), (Reach.PROCESS, Reach.NODE), N_NODES)
COSTS = Costs(
    save_stall=Constant(0.05), load=Constant(0.1), detect=Constant(0.05), reschedule=Constant(0.15)
)
BLOCKS, ROUNDS, SIMPY_REPLICATIONS = 3, 5, 60


def systems() -> dict[str, Policy]:
    """The systems that are timed."""
    facts = JobProfile(
        useful_h=USEFUL_H,
        cluster=CLUSTER,
        role=ROLE,
        scopes=SCOPES,
        mtbf_h=MTBF_H,
        costs=replace(COSTS, save_stall=Constant(0.01), storage=Storage(5 * GB * 3600.0)),
        step_h=STEP_H,
        replicas=len(CLUSTER.slots(ROLE)),
        state_bytes=100 * GB,
        node_bytes_per_h=50 * GB * 3600.0,
    )
    options = {
        "gemini": {"every": STEP_H},
        "moc": {"experts": 16, "saved_each": 4, "every": 0.5, "snapshot": 0.003, "persist": 0.1},
        "hsdp": {"group": 2},
        "oobleck": {},
        "varuna": {"every": 36 * STEP_H},
    }
    return {
        "full": strategy("full", ROLL_BACK, COSTS, CLUSTER, 1.25),
        "partial": strategy("partial", RELOAD, COSTS, CLUSTER, 1.25),
        **{name: SYSTEMS[name].plan(facts, given, name) for name, given in options.items()},
    }


def main() -> None:
    heads = ("fast/s", "again/s", "simpy/s")
    print(f"{'system':<12}" + "".join(f"{head:>12}" for head in heads) + f"{'x':>8}")
    for name, policy in systems().items():
        job = SimulatedJob(USEFUL_H, CLUSTER, Clock.WALL, SCOPES, policy)
        block_of(0).run(job, range(1), keep_losses=False)  # compiled
        rounds = [one_round(job, number) for number in range(ROUNDS)]
        fast, alone, simpy = (median(column) for column in zip(*rounds, strict=True))
        cells = "".join(f"{1 / one:>12,.0f}" for one in (fast, alone, simpy))
        print(f"{name:<12}{cells}{simpy / fast:>8,.0f}")


def one_round(job: SimulatedJob, number: int) -> tuple[float, float, float]:
    """Seconds per replication: drawing and simulating, simulating again, SimPy."""
    fast = alone = 0.0
    for i in range(BLOCKS):
        block = block_of(1 + BLOCKS * number + i)
        n = block.failures.n_replications
        fast += seconds(job, block, n) / n / BLOCKS
        alone += seconds(job, block, n) / n / BLOCKS
    meets, begin = block.meets(job), process_time()
    for row in range(SIMPY_REPLICATIONS):
        run_one(job, *meets, row, skips=True)
    return fast, alone, (process_time() - begin) / SIMPY_REPLICATIONS


def seconds(job: SimulatedJob, block: Block, n: int) -> float:
    begin = process_time()
    block.run(job, range(n), keep_losses=False)
    return process_time() - begin


def block_of(number: int) -> Block:
    source = JobClock(Exponential(MTBF_H), range(N_NODES))
    return Block(BlockFailures(source, CLUSTER, 1, number, USEFUL_H), SHARES)


if __name__ == "__main__":
    main()
