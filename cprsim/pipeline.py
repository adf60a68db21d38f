"""An experiment in, costs and losses of every strategy out: all on the same failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np

from cprsim.assemble import Experiment
from cprsim.cluster import Block, JobSetting, cost_breakdown, shard_loss
from cprsim.draws import CostDraws
from cprsim.engine import why_not
from cprsim.engines import Arrays, Engine, Events
from cprsim.failures.block import BlockFailures, StackedFailures
from cprsim.failures.sources import MOST_REPLICATIONS
from cprsim.records import Cluster, CostBreakdown, EventLog, RecoveryPolicy, ShardLoss, stacked
from cprsim.staleness import StalenessCurve

FIRST_LOOK = 10  # replications after which a strategy that finished none is given up
STEP = 100  # replications between two looks at the precision reached
STACKED_FAILURES = 100_000  # that blocks stacked as one should have
Z_95 = 1.96


@dataclass(frozen=True, slots=True)
class StrategyOutcome:
    """What one strategy cost; `gave_up` where none of its first replications finished."""

    policy: RecoveryPolicy
    costs: CostBreakdown
    losses: ShardLoss
    gave_up: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What failures cost the job under each strategy."""

    useful_h: float
    cluster: Cluster
    strategies: tuple[StrategyOutcome, ...]
    precision_fraction: float | None = None  # that was asked for; None: a number of replications
    curve: StalenessCurve | None = None  # what stale shards cost in accuracy; None: not known


def simulate(
    experiment: Experiment, on_progress: Callable[[int, int], None] | None = None
) -> Outcome:
    """Simulate all replications under all strategies.

    Replication i meets the same failures under every strategy. Where a precision is asked for,
    replications are added until the 95 % interval of every strategy's mean overhead is that narrow.

    Parameters
    ----------
    on_progress : called with the replications done and, as far as it is known, those to do
    """
    runs = [_Run(policy, experiment) for policy in experiment.policies]
    n_stacked = _n_stacked(experiment, runs)
    step = STEP if n_stacked is None else MOST_REPLICATIONS * n_stacked
    for number, block in enumerate(_blocks(experiment, n_stacked or 1)):
        for first, last in _steps(block.failures.n_replications, step):
            begins_at = number * block.failures.n_replications + first
            wanted = _wanted(experiment, runs, begins_at)
            if begins_at >= wanted:
                return _outcome(experiment, runs)
            last = min(last, first + wanted - begins_at)
            for run in runs:
                run.go_on(block, range(first, last))
            if on_progress is not None:
                on_progress(begins_at + last - first, wanted)
    raise AssertionError("blocks do not end")


def replay(experiment: Experiment, replication: int) -> dict[str, EventLog]:
    """The event log of one replication under each strategy; draws its block alone."""
    n_replications = experiment.failures.block_replications(experiment.cluster, experiment.useful_h)
    number, within = divmod(replication, n_replications)
    block = _block(experiment, number)
    return {policy.name: block.simulate(policy, [within]) for policy in experiment.policies}


def fold(experiment: Experiment, logs: dict[str, EventLog]) -> Outcome:
    """What the replications of some event logs cost."""
    runs = [_Run(policy, experiment) for policy in experiment.policies]
    for run in runs:
        run.add(logs[run.policy.name])
    return _outcome(experiment, runs)


def _blocks(experiment: Experiment, n_stacked: int) -> Iterator[Block]:
    number = 0
    while True:
        yield _block(experiment, number, n_stacked)
        number += 1


def _block(experiment: Experiment, number: int, n_stacked: int = 1) -> Block:
    """A block of replications, or several stacked as one."""
    first = number * n_stacked
    stacked_failures = [
        BlockFailures(
            experiment.failures, experiment.cluster, experiment.seed, first + i, experiment.useful_h
        )
        for i in range(n_stacked)
    ]
    n_replications = stacked_failures[0].n_replications
    failures = stacked_failures[0] if n_stacked == 1 else StackedFailures(stacked_failures)
    costs = CostDraws.of(experiment.costs, experiment.seed, first, n_replications, n_stacked)
    setting = JobSetting(
        experiment.useful_h, experiment.cluster, experiment.costs, experiment.failures.clock
    )
    return Block(setting, number, failures, costs)


def _n_stacked(experiment: Experiment, runs: list[_Run]) -> int | None:
    """How many blocks to run as one in arrays; None where a precision is looked at between."""
    if experiment.n_replications is None or not all(run.in_arrays for run in runs):
        return None
    cluster, useful_h = experiment.cluster, experiment.useful_h
    of_a_block = experiment.failures.block_replications(cluster, useful_h)
    n_failures = useful_h / experiment.failures.expected(cluster, useful_h).mtbf_h
    affordable = STACKED_FAILURES / (of_a_block * max(1.0, n_failures))
    return max(1, min(-(-experiment.n_replications // of_a_block), int(affordable)))


def _in_arrays(policy: RecoveryPolicy, experiment: Experiment) -> bool:
    """Whether the fast engine runs this strategy."""
    if experiment.engine == "simpy":
        return False
    reason = why_not(experiment.useful_h, experiment.cluster, experiment.costs, policy)
    return reason is None


def _steps(n_replications: int, step: int) -> Iterator[tuple[int, int]]:
    """Stretches of a block; the first is short, to see early whether jobs finish at all."""
    edges = [0, FIRST_LOOK, *range(step, n_replications, step)]
    within = [edge for edge in edges if edge < n_replications]
    yield from pairwise([*within, n_replications])


class _Run:
    """One strategy, as far as it has come."""

    def __init__(self, policy: RecoveryPolicy, experiment: Experiment) -> None:
        self.policy = policy
        self.gave_up = False
        self._useful_h = experiment.useful_h
        self._n_emb_ps = experiment.cluster.n_emb_ps
        self.in_arrays = _in_arrays(policy, experiment)
        self._engine: Engine = (Arrays if self.in_arrays else Events)(policy)
        self._costs: list[CostBreakdown] = []
        self._losses: list[ShardLoss] = []

    def go_on(self, block: Block, replications: range) -> None:
        if self.gave_up:
            return
        costs, losses = self._engine.run(block, replications)
        self._costs.append(costs)
        self._losses.append(losses)
        self.gave_up = not any(costs.finished.any() for costs in self._costs)

    def add(self, log: EventLog) -> None:
        self._costs.append(cost_breakdown(log, self._useful_h))
        self._losses.append(shard_loss(log, self._n_emb_ps))

    def half_width_fraction(self) -> float:
        """Half-width of the 95 % interval of the mean overhead, as a share of that mean."""
        wall_h = np.concatenate([costs.wall_h for costs in self._costs])
        overhead_h = wall_h - self._useful_h
        mean_h = float(overhead_h.mean())
        if mean_h <= 0:
            return 0.0
        return Z_95 * float(overhead_h.std(ddof=1)) / sqrt(len(overhead_h)) / mean_h

    def outcome(self) -> StrategyOutcome:
        return StrategyOutcome(
            self.policy, stacked(self._costs), stacked(self._losses), self.gave_up
        )


def _wanted(experiment: Experiment, runs: list[_Run], n_done: int) -> int:
    """How many replications there have to be, as far as the ones so far tell."""
    if experiment.n_replications is not None:
        return experiment.n_replications
    assert experiment.precision_fraction is not None
    if n_done < STEP:
        return STEP
    going = [run.half_width_fraction() for run in runs if not run.gave_up]
    excess = max(going, default=0.0) / experiment.precision_fraction
    if excess <= 1.0:
        return n_done
    return min(experiment.at_most, max(n_done + 1, int(n_done * excess**2)))


def _outcome(experiment: Experiment, runs: list[_Run]) -> Outcome:
    strategies = tuple(run.outcome() for run in runs)
    return Outcome(
        experiment.useful_h,
        experiment.cluster,
        strategies,
        experiment.precision_fraction,
        experiment.curve,
    )
