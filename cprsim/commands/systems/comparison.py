"""The record of a comparison of systems: a run of all of them, and further facts on each.

Its results folder is that of the run, plus `systems.json` with the further facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite
from pathlib import Path
from typing import Any

from cprsim.commands.run.sentences import bytes_per_h, storage_share
from cprsim.commands.systems.after import FailureImpact, impacts
from cprsim.commands.systems.candidates import Candidate, LeftOut
from cprsim.files import NOT_STORED, OMITTED
from cprsim.job.intervals import WORTH_NO_SAVES, n_saves_due
from cprsim.job.policy import Policy
from cprsim.job.records import Estimate
from cprsim.recovery.paper import NEVER
from cprsim.results.folder import read_record
from cprsim.results.metrics import FINISHED, more_than
from cprsim.results.money import Bills, cheapest_by_bill
from cprsim.results.run import Result, load_result
from cprsim.results.unknown import Assumption, BreakEven, SpareNeed
from cprsim.results.words import estimated, every, percent
from cprsim.scenario.assemble import Experiment, memory_of_copies
from cprsim.scenario.prices import ACCURACY
from cprsim.scenario.schema import Scenario

SYSTEMS_FILE = "systems.json"
NEAR_OPTIMAL = 0.01  # of useful time more than the cheapest: a difference of little weight
OVERHEAD, DECIMALS = "overhead_fraction", 12  # further decimals are rounding
BEST, UNFINISHED, NO_BEST = "best", "unfinished", "no best"  # verdicts
MORE, LESS, TIED = "more", "less", "can't be told"  # sign of the difference to the best
KEPT, WITHIN, PRICED, UNPRICED = "kept", "within the limit", "priced", "not priced"  # accuracy
OVER = "over the limit"
ELIGIBLE = (KEPT, WITHIN)  # to be the best


@dataclass(frozen=True, slots=True)
class SystemFacts:
    """Facts on one system that do not follow from its run.

    Bytes are per hour of progress, as if each save moved the whole state; None: unknown size.
    """

    strategy: str
    how: str  # origin of its interval: see `Candidate.how`
    text: str = field(metadata={"alias": "entry"})  # its entry of `recovery`
    not_counted: str  # its losses that no number includes; empty if none
    unknown: tuple[str, ...]  # its options with an unknown cost, counted as 0
    runs_as: str  # its maintained implementation; empty: none
    impacts: Mapping[str, FailureImpact] = field(metadata={"alias": "after"})
    storage_bytes_per_h: float | None  # of all nodes together
    peers_bytes_per_h: float | None  # that one node sends to others
    only_on: str = ""  # the only platform of `runs_as`; empty: any
    memory_bytes: float | None = None  # that copies take on a node
    storage_share: float | None = None  # `storage_bytes_per_h` / bandwidth of the storage

    @property
    def runs_anywhere(self) -> bool:
        """Whether it has maintained software for every platform."""
        return bool(self.runs_as) and not self.only_on


@dataclass(frozen=True, slots=True)
class RankedSystem:
    """One system of a comparison; differences are paired by replication."""

    policy: Policy
    facts: SystemFacts
    summary: Mapping[str, Estimate]  # by quantity
    useful_h: float  # of the job
    accuracy: str
    over: str = ""  # the limits that it exceeds
    is_best: bool = False
    more: Estimate | None = None  # overhead minus that of the best; None: it is best, or none is
    than_today: Estimate | None = None  # overhead minus that of the present recovery

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def verdict(self) -> str:
        if not self.finishes:
            return UNFINISHED
        return BEST if self.is_best else verdict_of(self.more)

    @property
    def may_be_best(self) -> bool:
        """Whether all jobs finish, accuracy is kept or within the limit, and costs are known."""
        return self.finishes and self.accuracy in ELIGIBLE and not self.facts.unknown

    @property
    def overhead(self) -> Estimate:
        return self.summary[OVERHEAD]

    @property
    def finishes(self) -> bool:
        """Whether all replications finish."""
        return isfinite(self.overhead.mean)

    @property
    def label(self) -> str:
        """Its name, with a star if its accuracy loss is unknown."""
        return self.name + (" *" if self.accuracy == UNPRICED else "")

    @property
    def every(self) -> str:
        """How often it saves; `NEVER` if the interval is at least as long as the job."""
        return every(self.policy) if n_saves_due(self.policy.interval_h, self.useful_h) else NEVER

    @property
    def percent(self) -> str:
        """The overhead in percent; if some replications do not finish, the share that does."""
        if not self.finishes:
            return f"{percent(self.summary[FINISHED].mean)} finish"
        of_all = estimated(self.overhead, 100)
        return f"at least {of_all.split(' ±')[0]}" if self.facts.unknown else of_all


@dataclass(frozen=True)
class Comparison:
    """A comparison of systems; `systems.json` holds all but the run."""

    name: str  # of the scenario
    fixed: bool
    limit: Mapping[str, Any] | None  # of accuracy: quantity and most; None: not given
    facts: Mapping[str, SystemFacts] = field(metadata={"alias": "systems"})  # by system's name
    left_out: Mapping[str, LeftOut]  # why, by name
    assumed: tuple[str, ...]  # sentences on values missing from the scenario
    result: Result = field(metadata=NOT_STORED)
    today: str = ""  # name of the present recovery, at its own interval; empty: not compared
    break_evens: tuple[BreakEven, ...] = ()  # of each unknown input
    # the assumed input that moves the choice most
    assumption: Assumption | None = field(default=None, metadata=OMITTED)
    spares: tuple[SpareNeed, ...] = ()  # spares that would change the choice or halve its cost
    resources: str = ""  # sentences: memory, bandwidth and retained saves of the picks

    @property
    def intervals(self) -> str:
        """The origin of the intervals, in words."""
        if self.fixed:
            return "each at the scenario's interval or its default"
        return "each at its best interval" + f", {self.today} at its own" * bool(self.today)

    @property
    def path(self) -> Path:
        """The results folder, which is that of the run."""
        return self.result.path

    @cached_property
    def ranked_systems(self) -> list[RankedSystem]:
        """All systems, the cheapest first; those that do not finish last."""
        return _ranked_systems(self)

    @property
    def able(self) -> list[RankedSystem]:
        """The systems that may be the best, the cheapest first."""
        return [system for system in self.ranked_systems if system.may_be_best]

    @property
    def cheapest(self) -> RankedSystem | None:
        """The cheapest that loses no accuracy, or stays within the limit, with all costs known.

        An unknown accuracy loss can't be compared with hours.
        """
        return next((system for system in self.ranked_systems if system.verdict == BEST), None)

    @property
    def cheapest_that_runs(self) -> RankedSystem | None:
        """The cheapest of those that may be the best and that a job can run today."""
        run = (system for system in self.able if system.facts.runs_anywhere)
        return min(run, key=_worth, default=None)

    @property
    def unpriced_that_runs(self) -> RankedSystem | None:
        """The cheapest system with maintained software whose accuracy loss is unknown."""
        unpriced = (system for system in self.ranked_systems if system.accuracy == UNPRICED)
        run = (one for one in unpriced if one.facts.runs_anywhere and not one.facts.unknown)
        return next((system for system in run if system.finishes), None)

    @property
    def picks(self) -> list[RankedSystem]:
        """The best, and the cheapest with maintained software if that is another."""
        best, runs = self.cheapest, self.cheapest_that_runs
        return [system for system in (best, None if runs is best else runs) if system is not None]

    @property
    def now(self) -> RankedSystem | None:
        """The job's present recovery; None: it is not compared."""
        return next((one for one in self.ranked_systems if one.name == self.today), None)

    @property
    def near_optimal(self) -> list[RankedSystem]:
        """Systems that may be the best, within a point of it; the present one only as the best."""
        near = [one for one in self.able if one.more is None or one.more.mean <= NEAR_OPTIMAL]
        return [one for one in near if one.is_best or one.name != self.today]

    @property
    def best(self) -> str | None:
        """The name of the cheapest."""
        return None if self.cheapest is None else self.cheapest.name

    @property
    def tied(self) -> list[str]:
        """Systems that may be the best and are not distinguished from it."""
        return [system.name for system in self.able if system.verdict == TIED]

    @property
    def bills_that_count(self) -> Bills:
        """The bills of systems without accuracy loss, or whose loss is in the bill."""
        by_name = {system.name: system for system in self.ranked_systems}
        return {
            name: bill
            for name, bill in self.result.bills.items()
            if (system := by_name[name]).may_be_best
            or (
                system.accuracy == PRICED
                and ACCURACY in bill.job.cents
                and not system.facts.unknown
            )
        }

    def costs_that_count(self) -> tuple[dict[str, float], str | None]:
        """Cost per month, else overhead, of systems that may be the best; and the cheapest."""
        if not self.result.bills:
            return {system.name: system.overhead.mean for system in self.able}, self.best
        counted = self.bills_that_count
        costs = {name: float(bill.month.total_cents) for name, bill in counted.items()}
        return costs, cheapest_by_bill(counted) if counted else None


def load_comparison(folder: Path | str) -> Comparison:
    """Read a finished comparison. Raises ResultError for another or a damaged folder."""
    result = load_result(folder)
    return read_record(
        Comparison, result.path / SYSTEMS_FILE, "a comparison of systems", result=result
    )


def assumptions(scenario: Scenario) -> Iterator[str]:
    """Assumptions of the comparison for values missing from the scenario."""
    cluster = scenario.cluster
    if cluster.workers and cluster.replicas == 1:
        yield "Each part of the state lies on one worker (`cluster.replicas: 1`)."
    elif cluster.workers:
        nodes = cluster.workers // cluster.replicas
        yield f"{cluster.replicas} replicas of the state, each on {nodes} workers."
    failures = scenario.failures
    n_together = getattr(failures, "n_together", None) or getattr(failures, "together", 1)
    if not scenario.scopes and n_together == 1 and failures.kind != "trace":
        yield "Each failure takes one node (no `scopes`): none strikes all copies simultaneously."
    if cluster.spares is None:
        yield "A spare node is always available (no `cluster.spares`)."


def facts_of_system(candidate: Candidate, experiment: Experiment) -> SystemFacts:
    """Facts on one system in a job."""
    system, section = candidate.entry.system, experiment.scenario.cluster
    policy, cluster, useful_h = candidate.policy, experiment.cluster, experiment.useful_h
    storage, peers = bytes_per_h(policy, experiment)
    return SystemFacts(
        strategy=candidate.entry.strategy,
        how=candidate.how,
        text=candidate.text(useful_h),
        not_counted=system.not_counted,
        unknown=system.unknown(candidate.entry.options or {}),
        runs_as=system.said_to_run_as,
        only_on=system.only_on,
        memory_bytes=memory_of_copies(policy, experiment),
        storage_share=storage_share(policy, experiment),
        impacts=impacts(policy, cluster, experiment.scopes, section.rack, useful_h),
        storage_bytes_per_h=storage,
        peers_bytes_per_h=peers,
    )


# --------------------------------------------------------------------------- ranking


def _ranked_systems(comparison: Comparison) -> list[RankedSystem]:
    result, summary = comparison.result, comparison.result.summary
    ranked_systems = []
    for policy in result.policies:
        facts, of = comparison.facts[policy.name], summary[policy.name]
        held = result.limits.get(policy.name, ())
        over = ", ".join(one.cell for one in held if one.is_over)
        accuracy = OVER if over else _accuracy(policy, facts, of, is_held=bool(held))
        ranked_systems.append(RankedSystem(policy, facts, of, result.useful_h, accuracy, over))
    ranked_systems.sort(key=_place)
    able = sorted((system for system in ranked_systems if system.may_be_best), key=_worth)
    best = able[0].name if able else ""
    more, than_today = (
        more_than(name, result.replications, result.n_nodes) if name in summary else {}
        for name in (best, comparison.today)
    )
    return [
        replace(
            system,
            is_best=system.name == best,
            more=more.get(system.name),
            than_today=than_today.get(system.name),
        )
        for system in ranked_systems
    ]


def _place(system: RankedSystem) -> tuple[float, float]:
    mean = round(system.overhead.mean, DECIMALS)
    return (mean, 0.0) if system.finishes else (inf, -system.summary[FINISHED].mean)


def _worth(system: RankedSystem) -> tuple[float, bool]:
    """Its overhead, more if it risks all; then whether a job can't run it today."""
    more = WORTH_NO_SAVES if system.policy.risks_all(system.useful_h) else 0.0
    return _place(system)[0] + more, not system.facts.runs_anywhere


def _accuracy(
    policy: Policy, facts: SystemFacts, summary: Mapping[str, Estimate], *, is_held: bool
) -> str:
    """Its accuracy loss: none, within the limit, a known amount, or unknown."""
    if not (policy.leaves_stale or facts.not_counted):
        return KEPT
    if is_held:
        return WITHIN
    return PRICED if isfinite(summary["auc_loss"].mean) else UNPRICED


def verdict_of(more: Estimate | None) -> str:
    """The verdict by the interval of a difference to the best."""
    if more is None:
        return NO_BEST
    if more.low > 0:
        return MORE
    return LESS if more.high < 0 else TIED
