"""Candidates priced by simulation: what one way to recover costs and loses at one interval.

All candidates meet the same failures (replication i is the same history for everybody), so that
their differences are known far better than they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from math import floor, inf, isclose, log10

import numpy as np

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import SELECTED, Experiment, policy_of
from cprsim.experiments.pipeline import StrategyOutcome
from cprsim.records import Floats, SubSaves
from cprsim.recovery.intervals import n_saves_due
from cprsim.recovery.losses import lost_portion
from cprsim.recovery.paper import strategy as paper_policy
from cprsim.recovery.policy import RELOAD, ROLL_BACK, Capture, Policy
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.recovery import RecoverySection
from cprsim.staleness.expected import Prediction

FULL = "full"
AT_ONCE = 8  # candidates simulated together: their losses stand in memory until they are summed
NEVER = inf
SHORT = 1e-6  # of a job: an interval that no system takes as it is, if it takes only longer ones
ROUND = 0.002  # of an interval: by how much it may be rounded up
FAILURES = 20_000  # that a candidate should meet, over all replications
FEWEST, MOST = 200, 4000  # replications of a candidate
FEWEST_OF_A_TAIL = 1000  # where a quantile of single jobs is asked for

Way = SubSaves | RecoverySection | None
"""How a strategy saves: sub-saves, as the entry of a recovery system says, or whole (None)."""

Losing = Callable[[Policy, StrategyOutcome], Prediction]


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """A candidate on every replication; all arrays (n_replications,)."""

    strategy: str
    policy: Policy
    n_saves: int  # whole ones that are due
    n_writes: int  # saves and sub-saves that are due: what a candidate pays for
    finished_fraction: float
    overhead: Floats  # (wall - useful) / useful, of what is done up to a horizon
    pls: Floats
    lost: Prediction  # in the quantity that is limited

    @property
    def finished(self) -> bool:
        """Whether all replications did: else its means would mislead."""
        return self.finished_fraction == 1.0

    @property
    def mean_overhead(self) -> float:
        return float(self.overhead.mean()) if self.finished else inf


@dataclass(slots=True)
class Bench:
    """Prices candidates of one experiment, each once."""

    experiment: Experiment  # whose policies do not matter
    ways: Mapping[str, Way]  # how each strategy saves, by its name
    losing: Losing  # what the losses of a simulated strategy cost each replication
    on_priced: Callable[[], None] = lambda: None  # called after each simulation
    # what is left of the job after the last write, as a share of the progress between two, by
    # strategy; all of it where none is named
    tails: dict[str, float] = field(default_factory=dict)
    _known: dict[tuple[str, float], Priced] = field(default_factory=dict)
    _failures: pipeline.FailureBlocks = field(init=False)
    _saves: dict[str, tuple[float, float]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._failures = pipeline.FailureBlocks([self.experiment])

    def price(self, strategy: str, intervals_h: Iterable[float]) -> list[Priced]:
        """The candidates of one strategy at some intervals [h], in order."""
        wanted = list(intervals_h)
        new = dict.fromkeys(w for w in wanted if (strategy, w) not in self._known)
        for some in _batches(new, AT_ONCE):
            self._simulate(strategy, some)
        return [self._known[strategy, interval_h] for interval_h in wanted]

    def with_writes(self, strategy: str, n_writes: Iterable[int]) -> list[Priced]:
        """The candidates of one strategy with so many writes each."""
        tail = self.tails.get(strategy, 1.0)
        return self.price(strategy, [self.interval_with(strategy, n, tail) for n in n_writes])

    def interval_with(self, strategy: str, n_writes: int, tail: float) -> float:
        """The interval between whole saves [h] at which a strategy has so many writes."""
        return interval_with(n_writes, self.experiment.useful_h, tail, self.part(strategy))

    @property
    def n_looked_at(self) -> int:
        """Strategies of which a candidate was simulated."""
        return len({strategy for strategy, _ in self._known})

    def part(self, strategy: str) -> float:
        """A write's share of a whole save, and of the interval between whole saves."""
        return part_of(self.ways[strategy])

    def _simulate(self, strategy: str, intervals_h: list[float]) -> None:
        policies = tuple(self.policy(strategy, w, str(i)) for i, w in enumerate(intervals_h))
        experiment = replace(self.experiment, policies=policies)
        outcome = pipeline.simulate(experiment, failures=self._failures)
        alike = [name for name in self.ways if self._cost_alike(name, strategy)]
        for interval_h, one in zip(intervals_h, outcome.strategies, strict=True):
            for name in alike:
                policy = self.policy(name, interval_h, name)
                self._known[name, interval_h] = self._priced(name, policy, one)
            self.on_priced()

    def _cost_alike(self, a: str, b: str) -> bool:
        """Whether two strategies differ by nothing that a simulation sees."""
        both = kind_of(self.ways[a]), kind_of(self.ways[b])
        return a == b or (FULL not in (a, b) and both[0] == both[1])

    def policy(self, strategy: str, interval_h: float, name: str) -> Policy:
        """The strategy at an interval, as the engines take it."""
        way = self.ways[strategy]
        if isinstance(way, RecoverySection):
            return replace(self._of_system(strategy, interval_h), name=name)
        return replace(policy_at(strategy, way, self.experiment, interval_h), name=name)

    def _of_system(self, strategy: str, interval_h: float | None = None) -> Policy:
        """A recovery system as the scenario has it, or at another interval."""
        way = self.ways[strategy]
        assert isinstance(way, RecoverySection), "asked of recovery systems alone"
        return policy_of(way, self.experiment, interval_h)

    def as_it_is(self, strategy: str) -> Priced:
        """A recovery system as the scenario has it."""
        return self.price(strategy, [self._of_system(strategy).interval_h])[0]

    def saves(self, strategy: str) -> tuple[float, float]:
        """The shortest interval that a recovery system takes, and the mean stall of a save [h, h].

        0 and 0 where that can't be told: where no capture has the interval as it is given.
        """
        if strategy not in self._saves:
            one = self._capture(strategy, SHORT * self.experiment.useful_h)
            stall_h = 0.0 if one is None or one.stall is None else one.stall.mean_h
            self._saves[strategy] = 0.0 if one is None else one.every_h or 0.0, stall_h
        return self._saves[strategy]

    def own_interval_h(self, strategy: str) -> float | None:
        """The interval of a recovery system as the scenario has it [h]; None: it can't be told."""
        one = self._capture(strategy, None)
        return None if one is None else one.every_h

    def _capture(self, strategy: str, interval_h: float | None) -> Capture | None:
        """What a recovery system saves at the interval that is chosen, at one interval."""
        longest_h = self.experiment.useful_h
        for place, one in enumerate(self._of_system(strategy, longest_h).captures):
            if one.every_h is not None and isclose(one.every_h, longest_h):
                captures = self._of_system(strategy, interval_h).captures
                return captures[place] if place < len(captures) else None
        return None

    def _priced(self, strategy: str, policy: Policy, one: StrategyOutcome) -> Priced:
        costs, losses, useful_h = one.costs, one.losses, self.experiment.useful_h
        finished, done_h = costs.finished, np.full(len(costs.finished), useful_h)
        if self.experiment.scenario.job.horizon_h is not None:
            done_h = np.where(finished, costs.useful_h, useful_h)
        return Priced(
            strategy=strategy,
            policy=policy,
            n_saves=n_saves_due(policy.interval_h, useful_h),
            n_writes=n_saves_due(part_of(policy.sub_saves) * policy.interval_h, useful_h),
            finished_fraction=float(finished.mean()),
            overhead=costs.wall_h / done_h - 1.0,
            pls=lost_portion(losses.since_save_h, losses, costs.replication, useful_h),
            lost=self.losing(policy, one),
        )


def affordable(experiment: Experiment, *, tail: bool) -> int:
    """How many replications tell candidates apart at a price worth paying."""
    expected = experiment.failures.expected(experiment.cluster, experiment.useful_h)
    n_failures = experiment.useful_h / expected.mtbf_h
    fewest = FEWEST_OF_A_TAIL if tail else FEWEST
    return max(fewest, min(MOST, int(FAILURES / max(n_failures, 1.0))))


def policy_at(strategy: str, way: Way, experiment: Experiment, interval_h: float) -> Policy:
    """A strategy at an interval; a recovery system as it is where it has none to choose."""
    if isinstance(way, RecoverySection):
        return policy_of(way, experiment, interval_h=interval_h)
    costs, cluster = experiment.costs, experiment.cluster
    does = ROLL_BACK if strategy == FULL else RELOAD
    return paper_policy(strategy, does, costs, cluster, interval_h, SELECTED, sub_saves=way)


def option_of(way: RecoverySection) -> str | None:
    """The option that is a recovery system's interval; None where it has none to choose."""
    return SYSTEMS[way.strategy].interval


def part_of(way: Way) -> float:
    """A write's share of a whole save; 1 where every save is whole."""
    return way.fraction if isinstance(way, SubSaves) else 1.0


def kind_of(way: Way) -> object:
    """Equal for strategies that differ from each other by nothing that a simulation sees."""
    if isinstance(way, SubSaves):
        return way.fraction, way.bytes_share, way.extra_h
    return way and way.name


def interval_with(n_writes: int, useful_h: float, tail: float = 1.0, part: float = 1.0) -> float:
    """The interval between whole saves that gives a number of writes [h]; infinite for none.

    It is rounded up, in the unit in which people say it, to few digits that keep the number of
    writes: what is shown can be typed, and gives the same writes.
    """
    if n_writes == 0:
        return NEVER
    exact_h = useful_h / (n_writes + tail) / part
    per_hour = 1.0 if exact_h >= 1 else 60.0 if exact_h >= 1 / 60 else 3600.0
    for digits in range(3, 12):
        interval_h = _rounded_up(exact_h * per_hour, digits) / per_hour
        near = exact_h < interval_h <= exact_h * (1 + ROUND)
        if near and n_saves_due(part * interval_h, useful_h) == n_writes:
            return interval_h
    return exact_h * (1 + 1e-7)


def _rounded_up(value: float, digits: int) -> float:
    """The next number with so many significant digits that lies above."""
    decimals = digits - 1 - floor(log10(value))
    above = floor(value * 10.0**decimals * (1 + 1e-12)) + 1
    return float(round(above / 10.0**decimals, max(decimals, 0)))


def _batches(items: Iterable[float], size: int) -> Iterator[list[float]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def common(a: Priced, b: Priced) -> Floats:
    """Overhead of `a` less that of `b`, replication by replication, (n,)."""
    n = min(len(a.overhead), len(b.overhead))  # one may have been given up early
    return np.asarray(a.overhead[:n] - b.overhead[:n])
