"""An experiment in, costs and losses of every strategy out: all on the same failures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from math import ceil, sqrt

import numpy as np

from cprsim.assemble import Experiment
from cprsim.cluster import Block, JobSetting
from cprsim.draws import CostDraws
from cprsim.engine import compile_now, is_compiled, why_not
from cprsim.engines import Arrays, Engine, Events, Rows, folded
from cprsim.failures.block import BlockFailures, block_of
from cprsim.records import (
    Cluster,
    CostBreakdown,
    EventLog,
    Floats,
    RecoveryPolicy,
    ShardLoss,
    stacked,
)
from cprsim.staleness import StalenessCurve

N_KEPT = 4  # blocks of failures
FIRST_LOOK = 10  # replications after which a strategy that finished none is given up
STEP = 100  # replications by which those of a precision are counted
EVENTS_AT_ONCE = 1000  # replications whose events are in memory at the same time
MOST_GROWTH = 4  # times the replications so far, until the next look at the precision reached
MARGIN = 1.02  # of the replications that it should take, so that few looks are in vain
Z_95 = 1.96


@dataclass(frozen=True, slots=True)
class StrategyOutcome:
    """What one strategy cost; `gave_up` where none of its first replications finished."""

    policy: RecoveryPolicy
    costs: CostBreakdown
    losses: ShardLoss
    gave_up: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """Some replications under every strategy; None for those that were given up before."""

    replications: range
    rows: tuple[Rows | None, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What failures cost the job under each strategy."""

    useful_h: float
    cluster: Cluster
    strategies: tuple[StrategyOutcome, ...]
    precision_fraction: float | None = None  # that was asked for; None: a number of replications
    curve: StalenessCurve | None = None  # what stale shards cost in accuracy; None: not known


class FailureBlocks:
    """The failures of an experiment, block by block, for all that is simulated with them.

    The first blocks are kept, so that further simulations do not draw them again.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._kept: dict[int, BlockFailures] = {}

    def block(self, number: int) -> BlockFailures:
        """One block, drawn where it is not there yet."""
        found = self._kept.get(number)
        if found is None:
            found = _failures(self._experiment, number)
            if number < N_KEPT:
                self._kept[number] = found
        return found


def simulate(
    experiment: Experiment,
    on_progress: Callable[[int, int], None] | None = None,
    failures: FailureBlocks | None = None,
) -> Outcome:
    """Simulate all replications under all strategies.

    Replication i meets the same failures under every strategy. Where a precision is asked for,
    replications are added until the 95 % interval of every strategy's mean overhead is that narrow.

    Parameters
    ----------
    on_progress : called with the replications done and, as far as it is known, those to do
    failures : those of an experiment with the same `failures_key`, where several share them
    """
    failures = failures or FailureBlocks(experiment)
    course = _Course(experiment, keep_losses=True)
    kept: list[list[Rows]] = [[] for _ in experiment.policies]
    for number in count():
        for batch in course.through(number, failures.block(number)):
            for rows, all_rows in zip(batch.rows, kept, strict=True):
                all_rows += [] if rows is None else [rows]
            if on_progress is not None:
                on_progress(course.n_done, course.n_wanted)
        if course.is_over:
            return _outcome(experiment, kept, [run.gave_up for run in course.runs])
    raise AssertionError("blocks do not end")


def side_by_side(experiments: Sequence[Experiment]) -> Iterator[tuple[int, Batch | None]]:
    """Run experiments that meet the same failures, block after block.

    Losses have rows only where a staleness curve is there to price them.

    Parameters
    ----------
    experiments : all with the same `failures_key`; each block of failures is drawn once for all

    Yields
    ------
    The number of an experiment and the next batch of its replications, None after the last. What
    an experiment yields does not depend on the others.
    """
    going = {
        place: _Course(one, keep_losses=one.curve is not None)
        for place, one in enumerate(experiments)
    }
    for number in count():
        if not going:
            return
        failures = _failures(next(iter(going.values())).experiment, number)
        for place, course in list(going.items()):
            for batch in course.through(number, failures):
                yield place, batch
            if course.is_over:
                yield place, None
                del going[place]


def failures_key(experiment: Experiment) -> Hashable:
    """Equal for experiments that meet the same failures."""
    source: object = experiment.failures
    try:
        hash(source)
    except TypeError:  # it holds arrays: whoever shares them holds the same object
        source = id(source)
    return source, experiment.cluster, experiment.seed, experiment.useful_h


def compile_engine(experiment: Experiment) -> None:
    """Compile the fast engine if it never was here: seconds that workers would all spend."""
    setting, policy = _setting(experiment), experiment.policies[0]
    if not is_compiled(setting, policy):
        block = _block(experiment, setting, 0, _failures(experiment, 0))
        compile_now(setting, policy, block.failures, block.costs)


def replay(experiment: Experiment, replication: int) -> dict[str, EventLog]:
    """The event log of one replication under each strategy; draws its block alone."""
    most = experiment.failures.block_replications(experiment.cluster, experiment.useful_h)
    number = block_of(most, replication)
    block = _block(experiment, _setting(experiment), number, _failures(experiment, number))
    within = replication - block.failures.replications.start
    return {policy.name: block.simulate(policy, [within]) for policy in experiment.policies}


def fold(experiment: Experiment, logs: dict[str, EventLog]) -> Outcome:
    """What the replications of some event logs cost."""
    block = _block(experiment, _setting(experiment), 0, _failures(experiment, 0))
    kept = [[folded(logs[policy.name], block)] for policy in experiment.policies]
    return _outcome(experiment, kept, [not rows[0].costs.finished.any() for rows in kept])


def _failures(experiment: Experiment, number: int) -> BlockFailures:
    return BlockFailures(
        experiment.failures, experiment.cluster, experiment.seed, number, experiment.useful_h
    )


def _setting(experiment: Experiment) -> JobSetting:
    return JobSetting(
        experiment.useful_h, experiment.cluster, experiment.costs, experiment.failures.clock
    )


def _block(
    experiment: Experiment, setting: JobSetting, number: int, failures: BlockFailures
) -> Block:
    n = failures.n_replications
    costs = CostDraws.of(experiment.costs, experiment.seed, number, n)
    return Block(setting, number, failures, costs)


class _Course:
    """One experiment, as far as it has come."""

    def __init__(self, experiment: Experiment, keep_losses: bool) -> None:
        self.experiment = experiment
        self._setting = _setting(experiment)
        self.runs = [_Run(policy, experiment, keep_losses) for policy in experiment.policies]
        self.n_done = 0
        self.n_wanted = experiment.n_replications or STEP

    @property
    def is_over(self) -> bool:
        return self.n_done >= self.n_wanted

    def through(self, number: int, failures: BlockFailures) -> Iterator[Batch]:
        """The replications of one block, or those that are wanted yet."""
        block = _block(self.experiment, self._setting, number, failures)
        first, last = failures.replications.start, failures.replications.stop
        while self.n_done < last and not self.is_over:
            look_at = min(self._next_look(), last)
            for begin, end in self._stretches(look_at):
                within = range(begin - first, end - first)
                rows = tuple(run.go_on(block, within) for run in self.runs)
                self.n_done = end
                if end == look_at:
                    self._look()
                yield Batch(range(begin, end), rows)

    def _stretches(self, look_at: int) -> Iterator[tuple[int, int]]:
        """Replications to run at once until the next look at them."""
        by_events = any(run.by_events for run in self.runs)
        step = EVENTS_AT_ONCE if by_events else look_at
        edges = range((self.n_done // step + 1) * step, look_at, step)
        yield from pairwise([self.n_done, *edges, look_at])

    def _next_look(self) -> int:
        """How many replications to have before the next look at them.

        The first look is early, to see whether jobs finish at all. A precision is looked at where
        it should be reached; no more than `MOST_GROWTH` times what is there, which tells it.
        """
        if self.n_done < FIRST_LOOK:
            return min(FIRST_LOOK, self.n_wanted)
        if self.experiment.n_replications is not None:
            return self.n_wanted
        wanted = min(max(self.n_wanted, self.n_done + 1), MOST_GROWTH * self.n_done)
        return min(self.experiment.at_most, max(1, ceil(wanted / STEP)) * STEP)

    def _look(self) -> None:
        """How many replications there have to be, as far as the ones so far tell."""
        precision = self.experiment.precision_fraction
        if self.experiment.n_replications is not None or self.n_done < STEP:
            return
        assert precision is not None
        going = [run.half_width_fraction() for run in self.runs if not run.gave_up]
        excess = max(going, default=0.0) / precision
        wanted = self.n_done if excess <= 1.0 else ceil(self.n_done * excess**2 * MARGIN)
        self.n_wanted = min(self.experiment.at_most, wanted)


class _Run:
    """One strategy, as far as it has come."""

    def __init__(self, policy: RecoveryPolicy, experiment: Experiment, keep_losses: bool) -> None:
        self.gave_up = False
        self._useful_h = experiment.useful_h
        fast = experiment.engine != "simpy" and why_not(experiment.cluster, policy) is None
        self.by_events = not fast
        self._engine: Engine = Arrays(policy, keep_losses) if fast else Events(policy)
        self._looks = experiment.n_replications is None
        self._any_finished = False
        self._overhead_h: list[Floats] = []

    def go_on(self, block: Block, replications: range) -> Rows | None:
        """What the next replications cost; None where the strategy is given up."""
        if self.gave_up:
            return None
        rows = self._engine.run(block, replications)
        self._any_finished = self._any_finished or bool(rows.costs.finished.any())
        self.gave_up = not self._any_finished
        if self._looks:
            self._overhead_h.append(rows.costs.wall_h - self._useful_h)
        return rows

    def half_width_fraction(self) -> float:
        """Half-width of the 95 % interval of the mean overhead, as a share of that mean."""
        self._overhead_h = [overhead_h := np.concatenate(self._overhead_h)]
        mean_h = float(overhead_h.mean())
        if mean_h <= 0:
            return 0.0
        return Z_95 * float(overhead_h.std(ddof=1)) / sqrt(len(overhead_h)) / mean_h


def _outcome(
    experiment: Experiment, kept: Sequence[Sequence[Rows]], gave_up: Sequence[bool]
) -> Outcome:
    strategies = tuple(
        StrategyOutcome(
            policy,
            stacked([one.costs for one in rows]),
            stacked([one.losses for one in rows]),
            given_up,
        )
        for policy, rows, given_up in zip(experiment.policies, kept, gave_up, strict=True)
    )
    return Outcome(
        experiment.useful_h,
        experiment.cluster,
        strategies,
        experiment.precision_fraction,
        experiment.curve,
    )
