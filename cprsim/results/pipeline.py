"""Simulate an experiment: costs and losses of every strategy, all on the same failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np

from cprsim.accuracy.curve import StalenessCurve
from cprsim.errors import BudgetError, TooManyReplicationsError
from cprsim.failures.block import BlockFailures, block_of, replications_of
from cprsim.failures.sources import memory_bytes, require_room
from cprsim.job.policy import Policy
from cprsim.job.records import (
    ROUNDED_Z_95,
    Cluster,
    CostBreakdown,
    EventLog,
    Failure,
    Floats,
    ShardLoss,
    stacked,
)
from cprsim.scenario.assemble import Experiment
from cprsim.simulation.blocks import Block, Rows
from cprsim.simulation.job import SimulatedJob

N_KEPT = 4  # blocks of failures
FIRST_LOOK = 10  # replications after which a strategy that finished none is given up
STEP = 100  # replications by which those of a precision are counted
MOST_GROWTH = 4  # times the replications so far, until the next look at the precision reached
ROW_BYTES = 700  # of a replication under one strategy, until its results are written
LOSS_BYTES = 300  # of a shard that went back, in the same way
ROWS_SHARE = 0.8  # of the budget, for all these
KEPT_SHARE = 0.2  # of the budget, for the failures of blocks that are not in work
MARGIN = 1.02  # of the replications that it should take, so that few looks are in vain


@dataclass(frozen=True, slots=True)
class StrategyOutcome:
    """Results of one strategy."""

    policy: Policy
    costs: CostBreakdown
    losses: ShardLoss  # none where they are not kept, then their sums are:
    # share x work since the last save, and since the later of save and own reload
    stale_h: tuple[Floats, Floats] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Cost of failures for the job under each strategy."""

    useful_h: float
    cluster: Cluster
    strategies: tuple[StrategyOutcome, ...]
    precision_fraction: float | None = None  # that was asked for; None: a number of replications
    curve: StalenessCurve | None = None  # what stale shards cost in accuracy; None: not known


Blocks = Callable[[], Iterator[BlockFailures]]
"""A function that gives failures block by block, the same at each call."""


def failure_blocks(experiments: Sequence[Experiment]) -> Blocks:
    """The failures of experiments that meet the same.

    The first blocks are kept if they are small, so that each is drawn once for all experiments.
    """
    n_wanted, kept = max(map(_n_at_most, experiments)), dict[int, BlockFailures]()

    def blocks() -> Iterator[BlockFailures]:
        n_done, most_bytes = 0, KEPT_SHARE * memory_bytes() / N_KEPT
        while n_done < n_wanted:
            for large in [at for at, block in kept.items() if block.n_bytes > most_bytes]:
                del kept[large]
            block = kept.get(n_done) or next(_drawn(experiments[0], range(n_done, n_wanted)))
            if len(kept) < N_KEPT:
                kept[n_done] = block
            yield block
            n_done = block.replications.stop

    return blocks


def simulate(
    experiment: Experiment,
    on_progress: Callable[[int, int], None] | None = None,
    failures: Blocks | None = None,
    *,
    keep_losses: bool = True,
) -> Outcome:
    """Simulate all replications under all strategies.

    Replication i meets the same failures under every strategy. If a precision is requested,
    replications are added until every strategy's 95 % interval of the mean overhead reaches it.
    Without the single losses it takes less time.
    """
    simulated, same = _different(experiment)
    rows_of: list[list[Rows]] = [[] for _ in simulated.policies]
    row_bytes, n_losses = ROW_BYTES * len(rows_of), 0
    _require_room(experiment.simulation.replications or 0, row_bytes)
    blocks = failures or failure_blocks([experiment])
    for batch, n_done, n_wanted in _batches(simulated, blocks, keep_losses):
        for all_rows, rows in zip(rows_of, batch, strict=True):
            if rows is not None:
                all_rows.append(rows)
                n_losses += len(rows.losses.slot)
        _require_room(n_done, row_bytes + LOSS_BYTES * n_losses / n_done)
        if on_progress is not None:
            on_progress(n_done, n_wanted)
    return _outcome(experiment, [rows_of[place] for place in same], keep_losses=keep_losses)


def _different(experiment: Experiment) -> tuple[Experiment, list[int]]:
    """The experiment with each of its policies once, and the index of each policy among them."""
    first: dict[Policy, int] = {}
    same = [first.setdefault(policy.as_simulated, len(first)) for policy in experiment.policies]
    policies = tuple(experiment.policies[same.index(place)] for place in range(len(first)))
    return replace(experiment, policies=policies), same


Batch = tuple[Rows | None, ...]  # replications by strategy; None for those that were given up


def _batches(
    experiment: Experiment, blocks: Blocks, keep_losses: bool
) -> Iterator[tuple[Batch, int, int]]:
    """Simulate block after block until there are enough replications.

    Yields a batch, the number of replications done, and the number that they show to be necessary.
    An early first check finds out whether jobs finish. The precision is checked when it should be
    reached, and at the latest after `MOST_GROWTH` times the replications done.
    """
    jobs: list[SimulatedJob | None] = [*map(experiment.simulated_job, experiment.policies)]
    finished, walls_h = [False] * len(jobs), [list[Floats]() for _ in jobs]
    n_done, n_wanted = 0, experiment.simulation.replications or STEP
    for failures in blocks():
        block, last = Block(failures, experiment.shares), failures.replications.stop
        while n_done < min(last, n_wanted):
            look_at = min(_next_look(experiment, n_done, n_wanted), last)
            ahead = range(n_done, look_at)
            for end, rows in _parts(experiment, block, ahead, jobs, keep_losses):
                n_done = end
                for i, strategy_rows in enumerate(rows):
                    if strategy_rows is not None:
                        finished[i] |= bool(strategy_rows.costs.finished.any())
                        if experiment.simulation.replications is None:
                            walls_h[i].append(strategy_rows.costs.wall_h)
                if n_done == look_at:
                    jobs = [job if finished[i] else None for i, job in enumerate(jobs)]
                    going_h = [wall_h for i, wall_h in enumerate(walls_h) if finished[i]]
                    n_wanted = _n_wanted(experiment, n_done, n_wanted, going_h)
                yield rows, n_done, n_wanted
        if n_done >= n_wanted:
            return


def _next_look(experiment: Experiment, n_done: int, n_wanted: int) -> int:
    """Number of replications at which the precision is checked next."""
    if n_done < FIRST_LOOK:
        return min(FIRST_LOOK, n_wanted)
    if experiment.simulation.replications is not None:
        return n_wanted
    n_next = min(n_wanted, MOST_GROWTH * n_done)
    return min(_n_at_most(experiment), ceil(n_next / STEP) * STEP)


def _n_wanted(
    experiment: Experiment, n_done: int, n_wanted: int, walls_h: Sequence[Sequence[Floats]]
) -> int:
    """Number of replications needed, by those of each strategy so far."""
    if experiment.simulation.precision_fraction is None or n_done < STEP:
        return n_wanted
    excess = 0.0  # of the widest interval
    for wall_h in walls_h:
        overhead_h = np.concatenate(wall_h) - experiment.useful_h
        if (mean_h := float(overhead_h.mean())) > 0:
            half_h = ROUNDED_Z_95 * float(overhead_h.std(ddof=1)) / sqrt(n_done)
            excess = max(excess, half_h / mean_h / experiment.simulation.precision_fraction)
    n_needed = n_done if excess <= 1.0 else ceil(n_done * excess**2 * MARGIN)
    return min(_n_at_most(experiment), n_needed)


def _parts(
    experiment: Experiment, block: Block, replications: range,
    jobs: Sequence[SimulatedJob | None], keep_losses: bool,
) -> Iterator[tuple[int, Batch]]:  # fmt: skip
    """Costs of some replications of a block, in parts that fit in memory, and the parts' ends.

    A part draws its failures alone.
    """
    n_of_block, first = block.failures.n_replications, block.failures.replications.start
    at_once = n_of_block
    while replications:
        some = replications[:at_once]
        part, within = block, range(some.start - first, some.stop - first)
        if at_once < n_of_block:
            part = Block(block.failures.of_these(within), experiment.shares)
            within = range(len(some))
        try:
            rows = tuple(
                None if job is None else part.run(job, within, keep_losses=keep_losses)
                for job in jobs
            )
        except TooManyReplicationsError as error:
            block.failures.forget()
            at_once = min(len(some), part.failures.n_replications // 2)
            if at_once == 0:
                message = f"replication {some.start} alone is too large: {error}"
                raise BudgetError(message) from None
            continue
        yield some.stop, rows
        replications = replications[at_once:]


def compile_first(experiment: Experiment) -> None:
    """Compile the simulation in this process, so that no worker has to."""
    block = next(blocks_of(experiment, range(1)))
    block.run(experiment.simulated_job(experiment.policies[0]), range(1), keep_losses=False)


def _n_at_most(experiment: Experiment) -> int:
    """Largest number of replications of an experiment."""
    simulation = experiment.simulation
    return simulation.replications or simulation.at_most or 0


# --------------------------------------------------------------------------- one replication


def replay(experiment: Experiment, replication: int, *, whole: bool = True) -> dict[str, EventLog]:
    """The event log of one replication under each strategy; draws its block alone."""
    block = _block_of_one(experiment, replication)
    return {
        policy.name: block.log(experiment.simulated_job(policy), 0, all_saves=whole)
        for policy in experiment.policies
    }


def outcome_of_one(experiment: Experiment, replication: int) -> Outcome:
    """Costs of one replication under each strategy; draws its block alone."""
    block = _block_of_one(experiment, replication)
    jobs = map(experiment.simulated_job, experiment.policies)
    return _outcome(experiment, [[block.run(job, range(1))] for job in jobs])


def failures_of(experiment: Experiment, replication: int) -> Iterator[Failure]:
    """The failures of one replication, in order, for as long as anybody asks."""
    return _block_of_one(experiment, replication).failures.of(0)


def _block_of_one(experiment: Experiment, replication: int) -> Block:
    """The block of one replication, with it alone."""
    return next(blocks_of(experiment, range(replication, replication + 1)))


def blocks_of(experiment: Experiment, replications: range) -> Iterator[Block]:
    """Blocks that hold these replications and no others, in their order."""
    return (Block(failures, experiment.shares) for failures in _drawn(experiment, replications))


def _drawn(experiment: Experiment, replications: range) -> Iterator[BlockFailures]:
    """The failures of these replications and no others, block by block."""
    source, cluster, useful_h = experiment.failures, experiment.cluster, experiment.useful_h
    most = source.block_replications(cluster, useful_h)
    while replications:
        number = block_of(most, replications.start)
        of_block = replications_of(most, number)
        some = replications[: of_block.stop - replications.start]
        within = range(some.start - of_block.start, some.stop - of_block.start)
        yield BlockFailures(source, cluster, experiment.simulation.seed, number, useful_h, within)
        replications = replications[len(some) :]


def _require_room(n: int, row_bytes: float) -> None:
    """Raise BudgetError for more replications than memory can hold the results of."""
    fit = f"--replications {int(min(ROWS_SHARE * memory_bytes() / row_bytes, n))} would fit"
    require_room(n * row_bytes, f"the results of {n:,} replications", fit, share=ROWS_SHARE)


def _outcome(
    experiment: Experiment, rows_of: Sequence[Sequence[Rows]], *, keep_losses: bool = True
) -> Outcome:
    strategies = [
        StrategyOutcome(
            policy,
            stacked([part.costs for part in rows]),
            stacked([part.losses for part in rows]),
            None
            if keep_losses
            else (
                np.concatenate([part.stale_h for part in rows]),
                np.concatenate([part.stale_since_reload_h for part in rows]),
            ),
        )
        for policy, rows in zip(experiment.policies, rows_of, strict=True)
    ]
    return Outcome(
        experiment.useful_h,
        experiment.cluster,
        tuple(strategies),
        experiment.simulation.precision_fraction,
        experiment.curve,
    )
