"""An experiment in, costs and losses of every strategy out: all on the same failures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from math import ceil, sqrt

import numpy as np

from cprsim.errors import BudgetError, TooManyReplicationsError
from cprsim.experiments.assemble import Experiment
from cprsim.failures.block import BlockFailures, block_of, replications_of
from cprsim.failures.budget import how_to_raise, megabytes, memory_bytes
from cprsim.records import (
    PARTS,
    ROUNDED_Z_95,
    Cluster,
    CostBreakdown,
    EventLog,
    Failure,
    Floats,
    ShardLoss,
    stacked,
)
from cprsim.recovery.policy import Policy
from cprsim.simulate.blocks import Block, Engine, Rows, expect, joined
from cprsim.staleness import StalenessCurve

N_KEPT = 4  # blocks of failures
FIRST_LOOK = 10  # replications after which a strategy that finished none is given up
STEP = 100  # replications by which those of a precision are counted
SIMPY_AT_ONCE = 1000  # replications, until the next word of progress
MOST_GROWTH = 4  # times the replications so far, until the next look at the precision reached
ROW_BYTES = 700  # of a replication under one strategy, until its results are written
LOSS_BYTES = 300  # of a shard that went back, in the same way
ROWS_SHARE = 0.8  # of the budget, for all these
KEPT_SHARE = 0.2  # of the budget, for the failures of blocks that are not in work
MARGIN = 1.02  # of the replications that it should take, so that few looks are in vain


@dataclass(frozen=True, slots=True)
class StrategyOutcome:
    """What one strategy cost; `gave_up` where none of its first replications finished."""

    policy: Policy
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

    The first blocks are kept where there is room, so that further simulations do not draw them
    again.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self.n_wanted = n_at_most(experiment)  # the first ones; no others are drawn
        self._kept: dict[int, BlockFailures] = {}

    def block(self, number: int) -> BlockFailures:
        """One block, drawn where it is not there yet."""
        for other, failures in self._kept.items():
            if other != number and failures.n_bytes > KEPT_SHARE * memory_bytes() / N_KEPT:
                failures.forget()
        found = self._kept.get(number)
        if found is None:
            found = _failures(self._experiment, number, self.n_wanted)
            if number < N_KEPT:
                self._kept[number] = found
        return found


def n_at_most(experiment: Experiment) -> int:
    """How many replications an experiment can come to."""
    return experiment.n_replications or max(experiment.at_most, STEP)


def simulate(
    experiment: Experiment,
    on_progress: Callable[[int, int], None] | None = None,
    failures: FailureBlocks | None = None,
) -> Outcome:
    """Simulate all replications under all strategies.

    Replication i meets the same failures under every strategy. Where a precision is asked for,
    replications are added until the 95 % interval of every strategy's mean overhead is that narrow.
    """
    _expects([experiment])
    course = _Course(experiment, keep_losses=True)
    kept: list[list[Rows]] = [[] for _ in experiment.policies]
    _require_room(experiment.n_replications or 0, ROW_BYTES * len(experiment.policies))
    for number in count():
        for batch in course.through(number, _block_of(experiment, number, failures)):
            for rows, all_rows in zip(batch.rows, kept, strict=True):
                all_rows += [] if rows is None else [rows]
            n_losses = sum(len(rows.losses.slot) for some in kept for rows in some)
            row_bytes = ROW_BYTES * len(kept) + LOSS_BYTES * n_losses / course.n_done
            _require_room(course.n_done, row_bytes)
            if on_progress is not None:
                on_progress(course.n_done, course.n_wanted)
        if course.is_over:
            return _outcome(experiment, kept, [run.gave_up for run in course.runs])
    raise AssertionError("blocks do not end")


def side_by_side(experiments: Sequence[Experiment]) -> Iterator[tuple[int, Batch | None]]:
    """Run experiments that meet the same failures, block after block.

    Losses have rows only where a staleness curve is there to price them.
    """
    _expects(experiments)
    going = {
        place: _Course(one, keep_losses=one.curve is not None)
        for place, one in enumerate(experiments)
    }
    for number in count():
        if not going:
            return
        n_wanted = max(n_at_most(course.experiment) for course in going.values())
        failures = _failures(next(iter(going.values())).experiment, number, n_wanted)
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


def compile_engine(experiment: Experiment, n_alike: float = 1.0) -> None:
    """Compile the loop if that pays for so many experiments: seconds that workers would spend."""
    if _expects([experiment], n_alike):
        block = next(blocks_of(experiment, range(1)))
        engine_of(experiment.policies[0], experiment, keep_losses=False).run(block, range(1))


def _expects(experiments: Sequence[Experiment], n_alike: float = 1.0) -> bool:
    """Whether the replications of all experiments are so many that the loop is compiled."""
    by_loop = [one for one in experiments if one.engine != "simpy"]
    n = sum(n_at_most(one) * len(one.policies) for one in by_loop)
    return bool(by_loop) and expect(n_alike * n)


def replay(experiment: Experiment, replication: int, *, whole: bool = True) -> dict[str, EventLog]:
    """The event log of one replication under each strategy; draws its block alone."""
    block = _block_of_one(experiment, replication)
    return {
        policy.name: engine_of(policy, experiment).log(block, 0, whole=whole)
        for policy in experiment.policies
    }


def outcome_of_one(experiment: Experiment, replication: int) -> Outcome:
    """What one replication costs under each strategy; draws its block alone."""
    block = _block_of_one(experiment, replication)
    kept = [[engine_of(policy, experiment).run(block, range(1))] for policy in experiment.policies]
    return _outcome(experiment, kept, [not rows[0].costs.finished.any() for rows in kept])


def failures_of(experiment: Experiment, replication: int) -> Iterator[Failure]:
    """The failures of one replication, in order, for as long as anybody asks."""
    return _block_of_one(experiment, replication).failures.of(0)


def _block_of_one(experiment: Experiment, replication: int) -> Block:
    """The block of one replication, with it alone."""
    most = experiment.failures.block_replications(experiment.cluster, experiment.useful_h)
    number = block_of(most, replication)
    within = replication - replications_of(most, number).start
    only = _failures(experiment, number).of_these(range(within, within + 1))
    return Block(only, experiment.shares)


def blocks_of(experiment: Experiment, replications: range) -> Iterator[Block]:
    """Blocks that hold these replications and no others, in their order."""
    most = experiment.failures.block_replications(experiment.cluster, experiment.useful_h)
    first = replications.start
    while first < replications.stop:
        number = block_of(most, first)
        whole = replications_of(most, number)
        last = min(replications.stop, whole.stop)
        kept = range(first - whole.start, last - whole.start)
        yield Block(_failures(experiment, number).of_these(kept), experiment.shares)
        first = last


def _failures(experiment: Experiment, number: int, n_wanted: int | None = None) -> BlockFailures:
    """A block of failures, as far as it is among the first replications, as many as are wanted."""
    whole = BlockFailures(
        experiment.failures, experiment.cluster, experiment.seed, number, experiment.useful_h
    )
    if n_wanted is None or whole.replications.stop <= n_wanted:
        return whole
    return whole.of_these(range(max(1, n_wanted - whole.replications.start)))


def _block_of(experiment: Experiment, number: int, failures: FailureBlocks | None) -> BlockFailures:
    n_wanted = n_at_most(experiment)
    if failures is not None and n_wanted <= failures.n_wanted:
        return failures.block(number)
    return _failures(experiment, number, n_wanted)


class _Course:
    """One experiment, as far as it has come."""

    def __init__(self, experiment: Experiment, keep_losses: bool) -> None:
        self.experiment = experiment
        self.runs = [_Run(policy, experiment, keep_losses) for policy in experiment.policies]
        self.n_done = 0
        self.n_wanted = experiment.n_replications or STEP

    @property
    def is_over(self) -> bool:
        return self.n_done >= self.n_wanted

    def through(self, number: int, failures: BlockFailures) -> Iterator[Batch]:
        """The replications of one block, or those that are wanted yet."""
        last, block = failures.replications.stop, Block(failures, self.experiment.shares)
        while self.n_done < last and not self.is_over:
            look_at = min(self._next_look(), last)
            for begin, end in self._stretches(look_at):
                rows = self._rows(block, range(begin, end))
                for run, of_run in zip(self.runs, rows, strict=True):
                    run.note(of_run)
                self.n_done = end
                if end == look_at:
                    self._look()
                yield Batch(range(begin, end), rows)

    def _rows(self, block: Block, replications: range) -> tuple[Rows | None, ...]:
        """What some replications of a block cost: at once, or by halves where there is no room."""
        failures, n = block.failures, len(replications)
        first = replications.start - failures.replications.start
        try:
            return tuple(run.rows(block, range(first, first + n)) for run in self.runs)
        except TooManyReplicationsError as error:
            failures.forget()
            if n == failures.n_replications == 1:
                message = f"replication {replications.start} alone is too large: {error}"
                raise BudgetError(message) from None
        middle = n // 2 if n == failures.n_replications else n
        parts = []
        for some in (replications[:middle], replications[middle:]):
            if some:
                start = some.start - failures.replications.start
                kept = failures.of_these(range(start, start + len(some)))
                parts.append(self._rows(Block(kept, self.experiment.shares), some))
        return tuple(_all_of(some) for some in zip(*parts, strict=True))

    def _stretches(self, look_at: int) -> Iterator[tuple[int, int]]:
        """Replications to run at once until the next look at them."""
        step = SIMPY_AT_ONCE if self.experiment.engine == "simpy" else look_at
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

    def __init__(self, policy: Policy, experiment: Experiment, keep_losses: bool) -> None:
        self.gave_up = False
        self._useful_h = experiment.useful_h
        self.engine = engine_of(policy, experiment, keep_losses)
        self._looks = experiment.n_replications is None
        self._any_finished = False
        self._overhead_h: list[Floats] = []

    def rows(self, block: Block, replications: range) -> Rows | None:
        """What some replications cost; None where the strategy is given up."""
        return None if self.gave_up else self.engine.run(block, replications)

    def note(self, rows: Rows | None) -> None:
        """Take note of what the next replications cost."""
        if rows is None:
            return
        self._any_finished = self._any_finished or bool(rows.costs.finished.any())
        self.gave_up = not self._any_finished
        if self._looks:
            self._overhead_h.append(rows.costs.wall_h - self._useful_h)

    def half_width_fraction(self) -> float:
        """Half-width of the 95 % interval of the mean overhead, as a share of that mean."""
        self._overhead_h = [overhead_h := np.concatenate(self._overhead_h)]
        mean_h = float(overhead_h.mean())
        if mean_h <= 0:
            return 0.0
        return ROUNDED_Z_95 * float(overhead_h.std(ddof=1)) / sqrt(len(overhead_h)) / mean_h


def engine_of(policy: Policy, experiment: Experiment, keep_losses: bool = True) -> Engine:
    """What runs the replications under a policy."""
    parts = None
    if policy.is_strategy:
        parts = (*PARTS, *(part for part in policy.parts if part not in PARTS))
    return Engine(
        experiment.simulated_job(policy),
        simpy_alone=experiment.engine == "simpy",
        keep_losses=keep_losses,
        parts=parts,
    )


def _all_of(parts: Sequence[Rows | None]) -> Rows | None:
    """The rows of one strategy in some replications; None where it is given up."""
    there = [rows for rows in parts if rows is not None]
    return joined(there) if there else None


def _require_room(n: int, row_bytes: float) -> None:
    """Refuse more replications than there is room for the results of."""
    most = ROWS_SHARE * memory_bytes()
    if n * row_bytes > most:
        raise BudgetError(
            f"the results of {n:,} replications would take {megabytes(n * row_bytes)} of memory, "
            f"where {megabytes(most)} are left for that: --replications {int(most / row_bytes)} "
            f"would fit; {how_to_raise()}"
        )


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
