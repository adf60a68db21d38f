"""What a job's own failures would have cost under other systems."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from cprsim.backtesting.facts import (
    AS_IT_RAN,
    LoggedJob,
    assembled,
    changed,
    facts_of,
    failures_of,
    interval_text,
    scenario_of,
    scenario_text,
    time_text,
    with_own_costs,
)
from cprsim.errors import ParameterError
from cprsim.experiments.pipeline import Outcome, StrategyOutcome, simulate
from cprsim.failures.streams import stream
from cprsim.history.ledger import JobLedger
from cprsim.records import PARTS, Estimate, Floats, Ints
from cprsim.recovery.policy import Policy
from cprsim.results.money import (
    AUC_LOSS,
    Billed,
    Bills,
    JobPrices,
    JobUse,
    at_overhead,
    cheapest_of,
    comparable,
    prices_of,
    summed,
)
from cprsim.results.rows import accuracy_columns
from cprsim.scenario.reading import LoadedScenario

FACTORS = (1.25, 1.5, 2.0, 3.0, 5.0, 8.0)
COSTS = ("save", "load", "detect", "reschedule")
MANY_H = 1e6  # of overhead, by which it is seen what an hour costs
MOST_TRIED = 5  # jobs by which it is seen what would change the advice


@dataclass(frozen=True, slots=True)
class Replayed:
    """One job under one system: (n_draws,) each."""

    policy: Policy
    n_saves: float  # mean
    overhead_h: Floats
    parts_h: dict[str, float]  # means
    pls: Floats
    auc_loss: Floats  # by the staleness curve of the scenario; NaN where it says nothing
    finished: bool

    @property
    def system(self) -> str:
        return self.policy.name

    @property
    def interval_h(self) -> float:
        return self.policy.interval_h


@dataclass(frozen=True, slots=True)
class Backtest:
    """One job: what it cost, and what it would have cost."""

    ledger: JobLedger
    facts: LoggedJob
    scenario: LoadedScenario
    systems: tuple[Replayed, ...]  # the one that ran first

    @property
    def job(self) -> str:
        return self.facts.job

    @property
    def observed_h(self) -> Estimate:
        """Of overhead."""
        job = self.ledger
        return Estimate.of_draws(job.wall_h - job.draws["useful"] - job.draws["start"])

    @property
    def prices(self) -> JobPrices | None:
        """None: nothing has a price."""
        return prices_of(self.scenario.scenario)

    def saved_h(self, system: str) -> Floats:
        """Hours that a system saves beside the one that ran, both simulated: (n_draws,)."""
        by_name = {one.system: one.overhead_h for one in self.systems}
        return by_name[AS_IT_RAN] - by_name[system]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to run, by all jobs together."""

    system: str
    saved_h: Estimate  # beside what ran
    of_h: float  # wall hours of all jobs
    runner_up: str
    reversed_by: str  # the input that would reverse it, in words


def entries_of(recovery: Sequence[str]) -> list[str]:
    """Entries of a scenario: names apart by commas, or mappings as they stand."""
    entries: list[str] = []
    for one in recovery:
        if one.lstrip().startswith("{"):
            entries.append(one.replace("\n", " "))
        else:
            entries += [name.strip() for name in one.split(",") if name.strip()]
    if not entries:
        raise ParameterError("--recovery: name at least one system, such as full")
    return entries


def backtests(
    jobs: Sequence[JobLedger], recovery: Sequence[str], *,
    n_nodes: int, n_draws: int, overrides: Sequence[str] = (), seed: int = 0,
) -> tuple[tuple[Backtest, ...], tuple[str, ...]]:  # fmt: skip
    """Replay each job's failures; jobs by hours saved, and why some were left out.

    Raises ParameterError where none is left.
    """
    found, left_out = [], []
    for number, job in enumerate(jobs):
        try:
            facts = facts_of(job)
        except ParameterError as error:
            left_out.append(str(error))
            continue
        found.append(_replayed(job, facts, recovery, n_nodes, overrides, n_draws, seed, number))
    if not found:
        raise ParameterError("no job can be replayed: " + "; ".join(left_out[:3]))
    others = [one.system for one in found[0].systems[1:]]
    found.sort(key=lambda one: -max(float(one.saved_h(name).mean()) for name in others))
    return tuple(found), tuple(left_out)


def _replayed(
    job: JobLedger, facts: LoggedJob, recovery: Sequence[str], n_nodes: int,
    overrides: Sequence[str], n_draws: int, seed: int, number: int,
) -> Backtest:  # fmt: skip
    loaded = scenario_of(scenario_text(facts, recovery, n_nodes), overrides)
    draws = np.linspace(0, len(job.draws["useful"]) - 1, n_draws).astype(np.int64)
    ran, *others = _simulated(loaded, facts, job, draws, stream(seed, number, "backtest"))
    for place, end_h in enumerate(facts.fits_h, 1):
        if end_h != facts.interval_h:  # a third of the draws have either end
            at_end = changed(loaded, "recovery.0.interval", interval_text(end_h))
            end, *_ = _simulated(at_end, facts, job, draws, stream(seed, number, "backtest"))
            ran.overhead_h[place::3] = end.overhead_h[place::3]
    return Backtest(job, facts, loaded, (ran, *others))


def _simulated(
    loaded: LoadedScenario, facts: LoggedJob, job: JobLedger, draws: Ints,
    rng: np.random.Generator, own_costs: bool = True,
) -> list[Replayed]:  # fmt: skip
    """The job under each system, a replication for each draw."""
    experiment = assembled(loaded)
    failures = failures_of(facts, job, experiment, draws, rng)
    experiment = replace(experiment.simulated(replications=len(draws)), failures=failures)
    if own_costs:
        experiment = with_own_costs(experiment, facts, draws, rng)
    outcome = simulate(experiment)
    return [_replayed_under(one, outcome) for one in outcome.strategies]


def _replayed_under(one: StrategyOutcome, outcome: Outcome) -> Replayed:
    costs, losses = one.costs, one.losses
    stale_h = losses.since_save_h * losses.share
    return Replayed(
        one.policy,
        float(costs.n_saves.mean()),
        np.where(costs.finished, costs.wall_h - costs.useful_h, inf),
        {name: float(costs.hours_of(name).mean()) for name in PARTS},
        np.bincount(losses.replication, stale_h, costs.n_replications) / outcome.useful_h,
        np.broadcast_to(accuracy_columns(one, outcome)[AUC_LOSS], costs.n_replications),
        bool(costs.finished.all()),
    )


def bills(found: Sequence[Backtest]) -> Bills:
    """What all jobs cost together under each system under which all of them finish."""
    names = [one.system for one in found[0].systems]
    each = {name: [_bill(one, place) for one in found] for place, name in enumerate(names)}
    return {
        name: summed([one for one in of if one is not None], [one.facts.useful_h for one in found])
        for name, of in each.items()
        if None not in of
    }


def _bill(one: Backtest, place: int) -> Billed | None:
    system = one.systems[place]
    if one.prices is None or not system.finished:
        return None
    return one.prices.billed(system.policy, _use(one, system))


def _use(one: Backtest, system: Replayed) -> JobUse:
    auc_loss = float(system.auc_loss.mean())
    known = auc_loss if isfinite(auc_loss) else None
    return JobUse(one.facts.useful_h, system.parts_h, system.n_saves, known)


@dataclass(frozen=True, slots=True)
class MoneyDraws:
    """All jobs in money, in each joint draw of what their logs do not say."""

    best: str  # the cheapest by the bills
    saved: Estimate | None  # beside what ran [cents]; None where that has no bill
    cheapest_in: Mapping[str, int]  # draws, by system
    n_draws: int


def money_draws(found: Sequence[Backtest]) -> MoneyDraws | None:
    """Whether the cheapest in all is so in each draw, too; None where nothing has a price."""
    costs = bills(found)
    if not costs:
        return None
    places = {one.system: place for place, one in enumerate(found[0].systems)}
    compared, best = comparable(costs), cheapest_of(costs)
    cents = {name: np.sum([_cents(one, places[name]) for one in found], axis=0) for name in costs}
    names = list(compared)
    first = np.argmin([cents[name] for name in names], axis=0)
    counted = Counter(names[place] for place in first.tolist())
    ran = cents.get(AS_IT_RAN)
    saved = None if ran is None else Estimate.of_draws(ran - cents[best])
    return MoneyDraws(best, saved, dict(counted.most_common()), len(first))


def _cents(one: Backtest, place: int) -> Floats:
    """What a job costs in each draw, (n_draws,): its mean bill with the draw's own hours and loss.

    What is written to the storage stays at its mean.
    """
    system, prices = one.systems[place], one.prices
    assert prices is not None, "only what has a bill"
    use, mean_h = _use(one, system), float(system.overhead_h.mean())
    few, many = (
        prices.billed(system.policy, at_overhead(use, more_h / use.useful_h)).job.total_cents
        for more_h in (0.0, MANY_H)
    )
    mean = prices.billed(system.policy, use).job.total_cents
    cents = mean + (many - few) / MANY_H * (system.overhead_h - mean_h)
    if use.auc_loss is not None and prices.prices.auc_loss is not None:
        price = 100.0 * 1e4 * float(prices.prices.auc_loss)
        cents = cents + price * (system.auc_loss - use.auc_loss)
    return np.asarray(cents)


# --------------------------------------------------------------------------- the advice


def advice(found: Sequence[Backtest], *, seed: int = 0) -> Advice:
    """The system that costs least over all jobs, and what would make another one cost less."""
    totals = _totals(found)
    order = sorted(totals, key=lambda name: float(totals[name].mean()))
    best, second = order[0], order[1]
    saved = totals[AS_IT_RAN] - totals[best]
    return Advice(
        best,
        Estimate.of_draws(saved) if np.isfinite(saved).all() else Estimate(inf, inf, inf),
        sum(one.facts.wall_h for one in found),
        second,
        _reversal(found[:MOST_TRIED], best, seed),
    )


def _totals(found: Sequence[Backtest]) -> dict[str, Floats]:
    names = [one.system for one in found[0].systems]
    return {
        name: np.sum([one.systems[place].overhead_h for one in found], axis=0)
        for place, name in enumerate(names)
    }


def _reversal(tried: Sequence[Backtest], best: str, seed: int) -> str:
    """Which one cost, how many times larger or smaller, makes another system the cheapest."""
    for factor in FACTORS:
        for cost in COSTS:
            for times in (factor, 1.0 / factor):
                winner = _winner(tried, cost, times, seed)
                if winner != best:
                    return _words(tried, cost, times, winner)
    return (
        f"none of {', '.join(COSTS)} alone, up to {FACTORS[-1]:g} times larger or smaller, would "
        "make another one cheaper"
    )


def _winner(tried: Sequence[Backtest], cost: str, times: float, seed: int) -> str:
    """The system that is cheapest where a cost is so many times larger."""
    totals: dict[str, float] = defaultdict(float)
    for one in tried:
        hours = time_text(one.facts.costs_h[cost] * times)
        loaded = changed(one.scenario, f"costs.{cost}", hours)
        rng = stream(seed, 0, "backtest/reversal")
        first = np.zeros(1, dtype=np.int64)
        for system in _simulated(loaded, one.facts, one.ledger, first, rng, own_costs=False):
            totals[system.system] += float(system.overhead_h.mean())
    return min(totals, key=lambda name: totals[name])


def _words(tried: Sequence[Backtest], cost: str, times: float, winner: str) -> str:
    now_h = float(np.mean([one.facts.costs_h[cost] for one in tried]))
    how = f"{times:.3g} times as long" if times > 1 else f"{1 / times:.3g} times shorter"
    more = f"{now_h * times * 3600:.4g} s instead of {now_h * 3600:.4g} s"
    return f"a {cost} {how} ({more}) would make {winner} the cheapest"
