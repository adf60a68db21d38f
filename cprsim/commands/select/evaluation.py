"""Evaluation of candidates, entries of `recovery` at one interval: cost and accuracy loss.

Replication i has the same failures for all candidates, so their paired differences are far more
precise than their values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import floor, inf, isclose, log10

import numpy as np

from cprsim.accuracy.curve import Prediction, exactly
from cprsim.errors import ParameterError
from cprsim.job.intervals import ROUNDING, n_saves_due
from cprsim.job.losses import WHOLE, lost_portion
from cprsim.job.policy import MOST_GENERATIONS, Policy, SaveSchedule, WhenBusy
from cprsim.job.records import Estimate, Floats
from cprsim.recovery.paper import NEVER, STRATEGIES
from cprsim.results import pipeline
from cprsim.results.limit import Limit
from cprsim.results.money import USEFUL, JobUse, prices_of
from cprsim.results.pipeline import StrategyOutcome
from cprsim.scenario.assemble import Experiment, policy_of
from cprsim.scenario.cluster import OwnCosts
from cprsim.scenario.failures import EMB_PS
from cprsim.scenario.prices import STORAGE_WRITTEN
from cprsim.scenario.recovery import RecoverySection, SubSavesSection
from cprsim.scenario.schema import dump_entry

CANDIDATES_AT_ONCE = 8  # simulated together; their losses, shard by shard, are in memory at once
SHORTEST_INTERVAL = 1e-6  # of useful time; a system raises it to its own shortest interval
MAX_ROUNDING = 0.002  # of an interval
FAILURES_PER_CANDIDATE = 20_000  # wanted, in all replications together
MIN_REPLICATIONS, MAX_REPLICATIONS = 100, 4000  # of a candidate, unless the user gives them
MIN_ALLOWED = 100  # fewest replications that a user may give
MIN_FOR_QUANTILE = 1000  # replications for a limit on a share of jobs


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """Results of a candidate in every replication; all arrays (n_replications,)."""

    strategy: str
    policy: Policy
    n_saves: int  # whole saves that become due
    n_writes: int  # sub-saves that become due, or whole saves if there are no sub-saves
    finished_fraction: float
    overhead: Floats  # (wall - useful) / useful; with a horizon, useful is the work done by then
    pls: Floats
    lost: Prediction  # in the limit's quantity
    waiting: float = 0.0  # mean hours of `wait` / work done
    n_committed: float = 0.0  # mean committed saves, of all tiers
    write_cost_fraction: float = 0.0  # price of its writes / price of the useful hours

    @property
    def finished(self) -> bool:
        """Whether all replications finished; otherwise means would mislead."""
        return self.finished_fraction == 1.0

    @property
    def cost_fraction(self) -> float:
        """Mean overhead plus the relative price of writes; infinite if not all finish."""
        return float(self.overhead.mean()) + self.write_cost_fraction if self.finished else inf

    @property
    def loses(self) -> bool:
        """Whether it leaves shards stale, or loses accuracy by the curve."""
        return self.policy.leaves_stale or bool(self.lost.loss.any())

    def within_limit(self, limit: Limit) -> bool:
        """Whether it finishes, with the upper bound of its loss within the limit."""
        return self.finished and limit.bound(self.lost) <= limit.most

    def excess_over(self, other: Evaluated) -> Estimate:
        """Own minus other overhead, paired, with 95 % interval; NaN if either is unfinished.

        Differences of the size of rounding count as 0.
        """
        if not (self.finished and other.finished):
            return Estimate(np.nan, np.nan, np.nan, len(other.overhead))
        more = self.overhead - other.overhead
        return Estimate.of_mean(np.where(np.abs(more) < ROUNDING, 0.0, more))

    def significantly_cheaper(self, other: Evaluated) -> bool:
        """Whether its overhead is significantly smaller; unfinished candidates rank last."""
        if not self.finished:
            return False
        return not other.finished or other.excess_over(self).low > 0


@dataclass(slots=True)
class CandidateEvaluator:
    """Simulates candidates of one experiment, and stores the results."""

    experiment: Experiment  # its policies are ignored; its curve gives the loss
    options: Mapping[str, RecoverySection]  # by name
    limit: Limit  # losses are in its quantity
    left_out: tuple[str, ...] = ()  # options whose loss the curve does not predict
    _simulated: dict[tuple[str, float], Evaluated] = field(init=False, default_factory=dict)
    _failures: pipeline.Blocks = field(init=False)
    # stored, because building a policy takes milliseconds
    _save_times: dict[str, tuple[float, float]] = field(init=False, default_factory=dict)
    _simulation_keys: dict[str, object] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._failures = pipeline.failure_blocks([self.experiment])

    @property
    def is_limited(self) -> bool:
        """Whether an option leaves shards stale, or loses accuracy by the curve."""
        options = self.options.items()
        return any(
            leaves_stale(option, self.experiment) or self.is_predicted(name)
            for name, option in options
        )

    def is_predicted(self, name: str) -> bool:
        """Whether only a curve tells its accuracy loss, and does so in the limit's metric."""
        policy, curve = self.policy(name, self.experiment.useful_h), self.experiment.curve
        if policy.accuracy_model is None or curve is None or self.limit.metric is None:
            return False
        return curve.of_policy(policy, self.limit.metric) is not None

    def evaluate(self, name: str, intervals_h: Iterable[float]) -> list[Evaluated]:
        """The candidates of one option at some intervals [h], in order."""
        wanted_h = list(intervals_h)
        new = [*dict.fromkeys(h for h in wanted_h if (name, h) not in self._simulated)]
        for at in range(0, len(new), CANDIDATES_AT_ONCE):
            self._simulate(name, new[at : at + CANDIDATES_AT_ONCE])
        return [self._simulated[name, interval_h] for interval_h in wanted_h]

    def with_writes(self, name: str, n_writes: Iterable[int]) -> list[Evaluated]:
        """The candidates of one option, one per number of writes."""
        useful_h, part = self.experiment.useful_h, self.options[name].part
        return self.evaluate(name, [interval_with(n, useful_h, part) for n in n_writes])

    def policy(self, name: str, interval_h: float) -> Policy:
        """The policy of an option at an interval."""
        return replace(policy_of(self.options[name], self.experiment, interval_h), name=name)

    def simulation_key(self, name: str) -> object:
        """A key that is equal for options with equal simulations, judged at two intervals."""
        if name not in self._simulation_keys:
            useful_h = self.experiment.useful_h
            policies = [self.policy(name, h).as_simulated for h in (useful_h, 0.01 * useful_h)]
            self._simulation_keys[name] = policies
        return self._simulation_keys[name]

    def _simulate(self, name: str, intervals_h: list[float]) -> None:
        policies = [self.policy(name, interval_h) for interval_h in intervals_h]
        numbered = tuple(replace(policy, name=str(n)) for n, policy in enumerate(policies))
        experiment = replace(self.experiment, policies=numbered)
        simulated = pipeline.simulate(experiment, failures=self._failures).strategies
        key = self.simulation_key(name)
        for same in (other for other in self.options if self.simulation_key(other) == key):
            for interval_h, outcome in zip(intervals_h, simulated, strict=True):
                policy = self.policy(same, interval_h)
                self._simulated[same, interval_h] = self._summarise(same, policy, outcome)

    def save_times(self, name: str) -> tuple[float, float]:
        """The shortest interval of an option, and the mean stall of a write [h, h].

        At shorter intervals saves would queue and stall the job. CPR's strategies have no
        shortest interval (0). Both are 0 if no save schedule has the interval that is searched.
        """
        if name not in self._save_times:
            useful_h, of_paper = self.experiment.useful_h, self.options[name].strategy in STRATEGIES
            capture = self._capture(name, useful_h if of_paper else SHORTEST_INTERVAL * useful_h)
            stall_h = 0.0 if capture is None or capture.stall is None else capture.stall.mean_h
            shortest_h = 0.0
            if capture is not None and not of_paper:
                waits = capture.when_busy is WhenBusy.WAIT
                costs = (capture.stall, capture.background) if waits else ()
                busy_h = sum(cost.mean_h for cost in costs if cost is not None)
                # saves in flight share the storage's bandwidth
                alone_h = min(busy_h, self.experiment.facts.write_h or 0.0)
                shortest_h = max(capture.every_h or 0.0, busy_h / capture.in_flight, alone_h)
            self._save_times[name] = shortest_h, stall_h
        return self._save_times[name]

    def own_interval_h(self, name: str) -> float | None:
        """The interval of an option in its entry [h]; None: unknown."""
        capture = self._capture(name, None)
        return None if capture is None else capture.every_h

    def _capture(self, name: str, interval_h: float | None) -> SaveSchedule | None:
        """The save schedule whose interval is searched, at `interval_h`; None without one."""
        option, longest_h = self.options[name], self.experiment.useful_h
        for place, capture in enumerate(policy_of(option, self.experiment, longest_h).captures):
            if capture.every_h is not None and isclose(capture.every_h, option.part * longest_h):
                captures = policy_of(option, self.experiment, interval_h).captures
                return captures[place] if place < len(captures) else None
        return None

    def _summarise(self, name: str, policy: Policy, outcome: StrategyOutcome) -> Evaluated:
        costs, losses, useful_h = outcome.costs, outcome.losses, self.experiment.useful_h
        finished, done_h = costs.finished, np.full(len(costs.finished), useful_h)
        if self.experiment.scenario.job.horizon_h is not None:
            done_h = np.where(finished, costs.useful_h, useful_h)
        part = 1.0 if policy.sub_saves is None else policy.sub_saves.fraction
        pls = lost_portion(losses.since_save_h, losses, costs.replication, useful_h)
        n_committed, cents = float(costs.n_saves.mean()), Counter[str]()
        if (prices := prices_of(self.experiment.scenario)) is not None:
            cents.update(prices.billed(policy, JobUse(useful_h, {}, n_committed)).job.cents)
        return Evaluated(
            strategy=name,
            policy=policy,
            n_saves=n_saves_due(policy.interval_h, useful_h),
            n_writes=n_saves_due(part * policy.interval_h, useful_h),
            finished_fraction=float(finished.mean()),
            overhead=costs.wall_h / done_h - 1.0,
            waiting=float((costs.hours_of("wait") / done_h).mean()),
            pls=pls,
            lost=self._lost(policy, outcome, pls),
            n_committed=n_committed,
            write_cost_fraction=cents[STORAGE_WRITTEN] / (cents[USEFUL] or inf),
        )

    def _lost(self, policy: Policy, outcome: StrategyOutcome, pls: Floats) -> Prediction:
        """Loss of each replication in the limit's quantity."""
        metric, curve, useful_h = self.limit.metric, self.experiment.curve, self.experiment.useful_h
        if metric is None:
            return exactly(pls)
        lost = None
        if curve is not None:
            lost = curve.predict(policy, metric, outcome.losses, outcome.costs, useful_h)
        if lost is None:
            assert not policy.leaves_stale, "only options that the curve knows are compared"
            return exactly(np.zeros(len(pls)))
        return lost


def evaluator_of(
    experiment: Experiment, limit: Limit, options: Mapping[str, RecoverySection] | None = None
) -> CandidateEvaluator:
    """Create the evaluator of an experiment and a limit. Raises ParameterError."""
    n = experiment.simulation.replications
    if n is None or n < MIN_ALLOWED:
        raise ParameterError(
            f"a selection needs a fixed number of replications, at least {MIN_ALLOWED}: not "
            f"{'a `precision`' if n is None else n}"
        )
    compared = options_of(experiment) if options is None else options
    known = {FULL: strategy_entry(FULL), **_comparable(experiment, limit, compared)}
    if experiment.scenario.silent is not None:
        known = {
            name: with_kept_saves(one, MOST_GENERATIONS, experiment) for name, one in known.items()
        }
    return CandidateEvaluator(
        experiment,
        known,
        limit,
        left_out=tuple(name for name in compared if name not in known),
    )


def _comparable(
    experiment: Experiment, limit: Limit, options: Mapping[str, RecoverySection]
) -> dict[str, RecoverySection]:
    """All options; with a limit of a metric, without those that the curve can't predict."""
    metric, curve = limit.metric, experiment.curve
    losing = {name for name, option in options.items() if leaves_stale(option, experiment)}
    if metric is None or not losing:
        return dict(options)
    if curve is None:
        raise ParameterError(f"a limit of {limit.quantity.value} needs a staleness curve")
    if unfit := curve.why_unfit(metric):
        raise ParameterError(f"curve {curve.name} is not fit for use: {'; '.join(unfit)}")
    known = {
        name: option
        for name, option in options.items()
        if name not in losing
        or curve.of_policy(policy_of(option, experiment, experiment.useful_h), metric) is not None
    }
    if not known:
        raise ParameterError(
            f"curve {curve.name} has no {metric.value} response for {', '.join(options)} with "
            f"these settings; its metrics: {', '.join(curve.metrics)}"
        )
    return known


def choose_replications(experiment: Experiment, *, tail: bool) -> int:
    """Number of replications with enough failures to compare candidates, within bounds."""
    expected = experiment.failures.expected(experiment.cluster, experiment.useful_h)
    n_failures = experiment.useful_h / expected.mtbf_h
    fewest = MIN_FOR_QUANTILE if tail else MIN_REPLICATIONS
    return max(fewest, min(MAX_REPLICATIONS, int(FAILURES_PER_CANDIDATE / max(n_failures, 1.0))))


def interval_with(n_writes: int, useful_h: float, part: float = 1.0) -> float:
    """The interval between whole saves that gives a number of writes [h]; infinite for 0.

    It is rounded up in h, min or s, to the fewest digits (at least 3) that give the same number of
    writes, so that a user can type it.
    """
    if n_writes == 0:
        return inf
    exact_h = useful_h / (n_writes + 1) / part
    per_hour = 1.0 if exact_h >= 1 else 60.0 if exact_h >= 1 / 60 else 3600.0
    for digits in range(3, 12):
        interval_h = _rounded_up(exact_h * per_hour, digits) / per_hour
        near = exact_h < interval_h <= exact_h * (1 + MAX_ROUNDING)
        if near and n_saves_due(part * interval_h, useful_h) == n_writes:
            return interval_h
    return exact_h * (1 + 1e-7)


def _rounded_up(value: float, digits: int) -> float:
    """The next larger number with `digits` significant digits."""
    decimals = digits - 1 - floor(log10(value))
    above = floor(value * 10.0**decimals * (1 + 1e-12)) + 1
    return float(round(above / 10.0**decimals, max(decimals, 0)))


# --------------------------------------------------------------------------- options

FULL = "full"
RELOADING = (WHOLE, "cpr-mfu", "cpr-ssu", "cpr-momentum", "cpr-scar", "cpr-round-robin")
"""Compared strategies under which only failed servers reload, the simplest first, a control last.

`partial` saves all rows; the others choose them by row counters (mfu), samples of look-ups (ssu),
the optimizer's state, a second copy (scar), or in turns.
"""


def leaves_stale(entry: RecoverySection, experiment: Experiment) -> bool:
    """Whether failures leave its shards stale."""
    return policy_of(entry, experiment, experiment.useful_h).leaves_stale


def with_kept_saves(entry: RecoverySection, n: int, experiment: Experiment) -> RecoverySection:
    """The entry with `n` saves kept on the remote storage."""
    costs = entry.costs or OwnCosts.model_construct(_fields_set=set())
    save = costs.save or experiment.scenario.costs.save
    kept = {"save": save.model_copy(update={"kept": n})}
    return entry.model_copy(update={"costs": costs.model_copy(update=kept)})


def entry_at(entry: RecoverySection, interval_h: float, useful_h: float) -> str:
    """An entry at an interval, as a scenario has it."""
    at = NEVER if interval_h == inf else interval_text(interval_h)
    if entry.strategy in STRATEGIES:
        return dump_entry(entry, interval=at, target_pls=None, assumed=None)
    if entry.system.interval is None:
        return dump_entry(entry)
    at = interval_text(min(interval_h, useful_h))  # never: an interval as long as the job
    return dump_entry(entry, options={**(entry.options or {}), entry.system.interval: at})


def interval_text(interval_h: float) -> str:
    """An interval as text with 10 digits, as a scenario takes it."""
    per_hour, unit = (1.0, "h") if interval_h >= 1 else (60.0, "min")
    if interval_h < 1 / 60:
        per_hour, unit = 3600.0, "s"
    return f"{interval_h * per_hour:.10g} {unit}"


def strategy_entry(name: str, sub_saves: SubSavesSection | None = None) -> RecoverySection:
    """An entry of a CPR strategy, without an interval yet."""
    entry = RecoverySection.model_validate({"strategy": name, "interval": NEVER})
    return entry.model_copy(update={"sub_saves": sub_saves})


def options_of(
    experiment: Experiment, strategies: tuple[str, ...] = RELOADING
) -> dict[str, RecoverySection]:
    """Entries to compare with full recovery, by name; strategies only with embedding servers.

    Raises ParameterError if a system has the name of a strategy.
    """
    listed = experiment.scenario.recovery
    sub_saves = {
        entry.strategy: entry.sub_saves for entry in reversed(listed) if entry.sub_saves is not None
    }
    has_servers = any(role.name == EMB_PS for role in experiment.cluster.roles)
    options = {
        name: strategy_entry(name, sub_saves.get(name)) for name in strategies if has_servers
    }
    for entry in listed:
        if entry.strategy in STRATEGIES:
            continue
        if entry.name == FULL or entry.name in options:
            raise ParameterError(
                f"`{entry.name}` is the name of a compared strategy: give the recovery "
                f"system `{entry.strategy}` another `name`"
            )
        options[entry.name] = entry
    return options
