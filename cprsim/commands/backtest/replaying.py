"""Replay of a job's own failures under other recovery systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan

import numpy as np

from cprsim.errors import ParameterError, ScenarioError, counted
from cprsim.failures.sources import stream
from cprsim.job.policy import Policy
from cprsim.job.records import PARTS, Floats
from cprsim.logs.jobs.facts import NO_INTERVAL, LoggedJob, facts_of
from cprsim.logs.jobs.ledger import JobLedger
from cprsim.results.metrics import accuracy_columns
from cprsim.results.money import AUC_LOSS, Billed, Bills, JobPrices, JobUse, prices_of, summed
from cprsim.results.pipeline import Outcome, StrategyOutcome, simulate
from cprsim.scenario import logged
from cprsim.scenario.assemble import Experiment
from cprsim.scenario.yaml_text import Plain, read_yaml


@dataclass(frozen=True, slots=True)
class Replayed:
    """One job under one system, on average over the draws but for its overhead."""

    policy: Policy
    use: JobUse
    bill: Billed | None  # None where it never ends, or nothing has a price
    overhead_h: Floats  # (n_draws,)
    pls: float
    finished: bool

    @property
    def system(self) -> str:
        return self.policy.name


@dataclass(frozen=True, slots=True)
class Backtest:
    """One job as observed, and its replays under each system."""

    facts: LoggedJob
    systems: tuple[Replayed, ...]  # the one that ran first

    @property
    def job(self) -> str:
        return self.facts.ledger.job

    def saved_h(self, system: str) -> Floats:
        """Hours that a system saves compared with the one that ran, both simulated: (n_draws,).

        Limited to the observed loss, which the replay of the system that ran may exceed.
        """
        by_name = {replayed.system: replayed.overhead_h for replayed in self.systems}
        return np.minimum(by_name[logged.AS_IT_RAN] - by_name[system], self.facts.observed_h.mean)


def entries_of(recovery: Sequence[str]) -> list[Plain]:
    """Entries of a scenario: names apart by commas, or mappings as they stand."""
    entries: list[Plain] = []
    for text in recovery:
        if text.lstrip().startswith("{"):
            try:
                entries.append(read_yaml(text, "--recovery")[0])
            except ScenarioError as error:
                raise ParameterError(error.problems[0].message, "--recovery") from None
        else:
            entries += [name.strip() for name in text.split(",") if name.strip()]
    if not entries:
        raise ParameterError("name at least one system, such as full", option="--recovery")
    return entries


def backtests(
    jobs: Sequence[JobLedger], recovery: Sequence[str], *,
    n_nodes: int, n_draws: int, overrides: Sequence[str] = (), seed: int = 0,
) -> tuple[tuple[Backtest, ...], tuple[str, ...]]:  # fmt: skip
    """Replay each job's failures; jobs by hours saved, and why some were left out.

    Raises ParameterError where none is left.
    """
    replayed, left_out, entries = [], [], entries_of(recovery)
    keys = {override.partition("=")[0].strip() for override in overrides}
    gives_save = "costs" in keys or any(f"{key}.".startswith("costs.save.") for key in keys)
    for number, job in enumerate(counted("replaying jobs", jobs)):
        try:
            facts = facts_of(job)
        except ParameterError as error:
            left_out.append(str(error))
            continue
        lacks, given = list[str](), [*overrides]
        if isnan(facts.interval_h):
            lacks.append(f"does not show {NO_INTERVAL}")
        if not (len(job.save_stalls_h) or gives_save):
            lacks.append("times no save: give it, as in --set costs.save='20 s'")
            given.append("costs.save=20 s")
        try:
            experiment = logged.experiment_of(logged.scenario_of(facts, entries, n_nodes), given)
        except ParameterError as error:
            if not lacks:
                raise
            lacks.append(str(error))
        if lacks:
            left_out.append(f"{job.job}: its log {'; '.join(lacks)}")
            continue
        replayed.append(Backtest(facts, _replayed(facts, experiment, n_draws, seed, number)))
    if not replayed:
        raise ParameterError("no job can be replayed: " + "; ".join(left_out[:3]))
    names = [system.system for system in replayed[0].systems[1:]]
    replayed.sort(key=lambda job: -max(float(job.saved_h(name).mean()) for name in names))
    return tuple(replayed), tuple(left_out)


def _replayed(
    facts: LoggedJob, experiment: Experiment, n_draws: int, seed: int, number: int
) -> tuple[Replayed, ...]:
    """The job under each system, a replication for each draw."""
    n_known = len(facts.ledger.draws["useful"])
    draws = np.linspace(0, n_known - 1, n_draws).astype(np.int64)
    rng = stream(seed, number, "backtest")
    failing = logged.with_own_failures(experiment, facts, draws, rng)
    outcome = simulate(logged.with_own_costs(failing, facts, draws, rng))
    prices = prices_of(experiment.scenario)
    return tuple(_replayed_under(strategy, outcome, prices) for strategy in outcome.strategies)


def _replayed_under(
    strategy: StrategyOutcome, outcome: Outcome, prices: JobPrices | None
) -> Replayed:
    policy, costs, losses = strategy.policy, strategy.costs, strategy.losses
    parts_h = {name: float(costs.hours_of(name).mean()) for name in PARTS}
    auc_loss = float(np.asarray(accuracy_columns(strategy, outcome)[AUC_LOSS], np.float64).mean())
    known_loss = auc_loss if isfinite(auc_loss) else None
    use = JobUse(outcome.useful_h, parts_h, float(costs.n_saves.mean()), known_loss)
    finished = bool(costs.finished.all())
    bill = prices.billed(policy, use) if prices is not None and finished else None
    overhead_h = np.where(costs.finished, costs.wall_h - costs.useful_h, inf)
    stale_h = float((losses.since_save_h * losses.share).sum()) / costs.n_replications
    return Replayed(policy, use, bill, overhead_h, stale_h / outcome.useful_h, finished)


def bills(jobs: Sequence[Backtest]) -> Bills:
    """Total cost of all jobs under each system under which all of them finish."""
    useful_h = [job.facts.useful_h for job in jobs]
    by_system = {
        system.system: [bill for job in jobs if (bill := job.systems[place].bill) is not None]
        for place, system in enumerate(jobs[0].systems)
    }
    return {name: summed(of, useful_h) for name, of in by_system.items() if len(of) == len(jobs)}


def totals_h(jobs: Sequence[Backtest]) -> dict[str, Floats]:
    """Overhead of all jobs together under each system, (n_draws,); the cheapest first."""
    totals = {
        replayed.system: np.sum([job.systems[place].overhead_h for job in jobs], axis=0)
        for place, replayed in enumerate(jobs[0].systems)
    }
    return dict(sorted(totals.items(), key=lambda total: float(total[1].mean())))
