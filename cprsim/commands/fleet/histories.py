"""A history of a fleet under one strategy: its jobs, their outcomes and their cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, ScenarioError
from cprsim.failures.sources import stream
from cprsim.files import Number
from cprsim.job.legal import require_legal
from cprsim.job.losses import lost_portion
from cprsim.job.policy import Medium
from cprsim.job.records import Floats, Ints, Storage
from cprsim.results.money import SPARE, USEFUL, state_bytes_of, usage_of
from cprsim.results.pipeline import blocks_of, simulate
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.job import Fleet
from cprsim.scenario.population import Population, fleet_of, is_alone, population_of, scenario_of
from cprsim.scenario.prices import (
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    Prices,
    Usage,
    amounts_of,
    bill_of,
)
from cprsim.scenario.reading import LoadedScenario
from cprsim.simulation.blocks import row_parts
from cprsim.simulation.cluster import ReplicationBlock, SharedCluster, run_fleet
from cprsim.simulation.storage import NOT_SHARED, SharedSaves

QUANTILES = {"p50_fraction": 0.5, "p90_fraction": 0.9, "p95_fraction": 0.95}
STATISTICS = {
    "overhead_fraction": "mean overhead, share of useful time",
    "p50_fraction": "overhead that half of the jobs stay below",
    "p90_fraction": "overhead that 90 % of the jobs stay below",
    "p95_fraction": "overhead that 95 % of the jobs stay below",
    "machine_years": "node-hours of overhead, in years of 8766 h",
    "queued_h": "mean hours from arrival to start",
    "wait_h": "mean hours that a job waits for spares",
    "wait_fraction": "mean of these waits / useful time",
    "jobs_per_month": "jobs done per month of 730.5 h; the cost is of those that arrive in one",
    "utilisation_fraction": "useful share of the node-hours of `nodes` within the window",
    "busy_nodes": "mean number of nodes in jobs, over the window",
    "pls": "mean PLS of a job",
}


@dataclass(frozen=True, slots=True)
class PreparedFleet:
    """A fleet as records: its jobs, their arrivals, and their shared resources."""

    section: Fleet
    seed: int
    population: Population
    kinds: tuple[Experiment, ...]  # of the population, ready to be simulated

    @property
    def work(self) -> object:
        """Equal for fleets that do the same work: jobs and useful hours by kind, and the window."""
        kinds = zip(self.population.kinds, self.kinds, strict=True)
        return [(kind.n_jobs, job.useful_h) for kind, job in kinds], self.section.window_h

    def arrivals(self, history: int) -> pd.DataFrame:
        """The jobs of a history in order of arrival: `arrive_h`, `kind`, `nth` of its kind."""
        n_jobs = [kind.n_jobs for kind in self.population.kinds]
        n, rng = sum(n_jobs), stream(self.seed, history, "fleet/arrivals")
        arrive_h: Floats = np.zeros(n)
        if self.population.arrive_h is not None:
            arrive_h = self.population.arrive_h
        elif self.section.arrivals == "even":  # in random order
            arrive_h = np.asarray(rng.permutation(n) * (self.section.window_h / n))
        elif self.section.arrivals == "random":
            arrive_h = np.asarray(rng.random(n) * self.section.window_h)
        jobs = {
            "arrive_h": arrive_h,
            "kind": np.repeat(np.arange(len(n_jobs)), n_jobs),
            "nth": np.concatenate([np.arange(n_alike) for n_alike in n_jobs]),
        }
        return pd.DataFrame(jobs).sort_values("arrive_h", kind="stable", ignore_index=True)


def prepare(loaded: LoadedScenario) -> PreparedFleet:
    """Compile the fleet of a scenario. Raises ScenarioError if the fleet is invalid."""
    population, section = population_of(loaded), fleet_of(loaded)
    knows_repair = loaded.scenario.cluster.repair is not None or loaded.trace_path is not None
    if section.spares is not None and not knows_repair:
        message = "is missing: with `fleet.spares`, say when a failed node comes back"
        raise ScenarioError.at(loaded.place("fleet.spares"), message, key="cluster.repair")
    kinds = []
    for number, kind in enumerate(population.kinds):
        job = scenario_of(loaded, kind, number)
        if section.jobs == 1:  # then its intervals are by the waits for these spares
            job = job.varied({"cluster.spares": section.spares}, job.place)
        experiment = assemble(job)
        cluster = replace(experiment.cluster, n_spares=section.spares)
        if section.nodes is not None and cluster.n_nodes > section.nodes:
            n_nodes = f"{cluster.n_nodes:,} nodes"
            message = f"is {section.nodes:,}, and a job takes {n_nodes}: it can't start"
            raise ScenarioError.at(kind.place, message, key="fleet.nodes")
        kinds.append(replace(experiment, cluster=cluster))
    for number, policy in enumerate(kinds[0].policies):
        try:
            require_legal(policy, kinds[0].cluster, kinds[0].scopes)  # spares can run out here
        except ParameterError as error:
            raise loaded.error(f"recovery.{number}", str(error)) from error
    return PreparedFleet(section, loaded.scenario.simulation.seed, population, tuple(kinds))


# ------------------------------------------------------------------------------ one history


OUTCOME = ("wall_h", "finished", "useful_h", "n_failures", "n_saves")


History = tuple[pd.DataFrame, pd.DataFrame]
"""Of each job, in order of arrival: its outcome, and its hours by part of the overhead.

The outcome: kind, nth, n_nodes, arrive_h, start_h, wall_h, finished, useful_h, n_failures, n_saves,
queued_h (from arrival to start), overhead (share of the useful time), pls (share of the samples).
"""


def run_history(fleet: PreparedFleet, strategy: int, history: int = 0) -> History:
    """Simulate all jobs of a fleet under one strategy.

    A job meets the failures of its kind's replication ``history * n_jobs + nth``.
    """
    section, kinds = fleet.section, fleet.kinds
    jobs = fleet.arrivals(history)
    jobs["n_nodes"] = np.array([kind.cluster.n_nodes for kind in kinds])[jobs.kind]
    cluster = SharedCluster(section.nodes, section.spares, section.storage_bytes_per_h or inf)
    policies, blocks = [], []  # by kind: simulated policy; block and row of each job
    for kind, alike in zip(kinds, fleet.population.kinds, strict=True):
        replications = range(history * alike.n_jobs, (history + 1) * alike.n_jobs)
        job, saves = kind.simulated_job(kind.policies[strategy]), _shared(fleet, kind, strategy)
        policies.append(job.policy)
        of_kind = [
            ReplicationBlock(job, *block.meets(job), saves)
            for block in blocks_of(kind, replications)
        ]
        blocks.append([(one, row) for one in of_kind for row in range(one.failures.n_replications)])
    rows = [blocks[kind][nth] for kind, nth in zip(jobs.kind, jobs.nth, strict=True)]
    outcomes = run_fleet(cluster, jobs.arrive_h.tolist(), rows)
    for name in ("start_h", *OUTCOME):
        jobs[name] = [getattr(outcome, name) for outcome in outcomes]
    of_kinds = list(zip(jobs.kind, outcomes, strict=True))
    jobs["pls"] = [_pls(kinds[kind], outcome.losses) for kind, outcome in of_kinds]
    parts = dict.fromkeys(part for policy in policies for part in row_parts(policy))
    hours = [
        dict(zip(policies[kind].parts, outcome.hours, strict=True)) for kind, outcome in of_kinds
    ]
    return _history(jobs, pd.DataFrame(hours, columns=list(parts), dtype=float).fillna(0.0))


def run_histories(fleet: PreparedFleet, strategy: int, numbers: Sequence[int]) -> Iterator[History]:
    """Simulate some histories; those of a job that shares nothing are replications."""
    if not is_alone(fleet.section):
        yield from (run_history(fleet, strategy, number) for number in numbers)
        return
    kind = fleet.kinds[0]
    alone = replace(kind, policies=(kind.policies[strategy],))
    of = simulate(alone.simulated(replications=max(numbers) + 1)).strategies[0]
    rows, losses, n_done = of.costs.columns(), of.losses, of.costs.n_replications
    pls = lost_portion(losses.since_save_h, losses, of.costs.replication, kind.useful_h)
    jobs = {name: rows[name] for name in OUTCOME} | {"pls": pls}
    hours = {part: of.costs.hours_of(part) for part in of.costs.parts}
    about = {"kind": 0, "nth": 0, "n_nodes": kind.cluster.n_nodes, "arrive_h": 0.0, "start_h": 0.0}
    for number in numbers:
        at = [min(number, n_done - 1)]  # where no job finishes, few replications are simulated
        of_job = about | {name: values[at] for name, values in jobs.items()}
        of_hours = {part: values[at] for part, values in hours.items()}
        yield _history(pd.DataFrame(of_job), pd.DataFrame(of_hours))


def _history(jobs: pd.DataFrame, hours: pd.DataFrame) -> History:
    jobs["queued_h"] = jobs.start_h - jobs.arrive_h
    jobs["overhead"] = (jobs.wall_h - jobs.useful_h) / jobs.useful_h
    return jobs, hours


def _shared(fleet: PreparedFleet, kind: Experiment, strategy: int) -> SharedSaves:
    """The saves whose bytes use the cluster's storage."""
    policy, storage = kind.policies[strategy], kind.costs.storage
    costs = kind.at_costs_of(kind.scenario.recovery[strategy]).costs
    are_moved = any(isinstance(c, Storage) for c in (costs.save_stall, costs.save_background))
    if fleet.section.storage_bytes_per_h is None or storage is None or not are_moved:
        return NOT_SHARED
    remote = {tier.name for tier in policy.tiers if tier.medium is Medium.REMOTE}
    captures = [n for n, capture in enumerate(policy.captures) if capture.tier in remote]
    n_flows = max(1, kind.cluster.n_emb_ps)
    return SharedSaves(frozenset(captures), n_flows, storage.mean_rate_bytes_per_h(n_flows))


def _pls(kind: Experiment, losses: Floats) -> float:
    """The samples that a job lost, as a share of all."""
    slots: Ints = losses[:, 1].astype(np.int64)
    return float((kind.cluster.shares(slots) * losses[:, 3]).sum()) / kind.useful_h


# ------------------------------------------------------------------------------ what it costs


@dataclass(frozen=True, slots=True)
class FleetCell:
    """One history of a fleet under one strategy; usage is per month."""

    finished: float  # share of the jobs
    statistics: Mapping[str, Number]
    n_jobs: tuple[int, ...]  # of each kind
    means: Mapping[str, tuple[Number, ...]]  # statistics that are means over jobs, by kind of job
    used: Usage  # of all jobs, and of the spares, which are held as long as the jobs take
    usage: tuple[Usage, ...]  # of the jobs of each kind
    risks_all: bool  # whether some job loses all that a failure strikes


def cell_of(fleet: PreparedFleet, strategy: int, history: History) -> FleetCell:
    """Summarise a history."""
    section, window_h, n_kinds = fleet.section, fleet.section.window_h, len(fleet.kinds)
    jobs, hours = ({str(name): of[name].to_numpy() for name in of} for of in history)
    wall_h, useful_h, n_nodes = jobs["wall_h"], jobs["useful_h"], jobs["n_nodes"]
    worked_h = (n_nodes * wall_h).sum() / (section.nodes or inf)  # if no node is ever idle
    takes_h = max(window_h, worked_h)  # more than the window: the queue grows
    stands_h = wall_h.sum() if is_alone(section) else takes_h  # for which spares are held
    within = np.clip(window_h - jobs["start_h"], 0.0, wall_h)  # hours in the window
    wait_h = hours.get("wait", np.zeros(len(wall_h)))

    def by_kind(values: Floats) -> Floats:
        return np.bincount(jobs["kind"], values, n_kinds).astype(np.float64)

    per_job = {
        "queued_h": jobs["queued_h"],
        "overhead_fraction": jobs["overhead"],
        "wait_h": wait_h,
        "wait_fraction": wait_h / useful_h,
        "pls": jobs["pls"],
    }
    quantiles = np.quantile(jobs["overhead"], list(QUANTILES.values()))
    statistics = {
        **{name: values.mean() for name, values in per_job.items()},
        **dict(zip(QUANTILES, quantiles, strict=True)),
        "machine_years": (n_nodes * (wall_h - useful_h)).sum() / HOURS_PER_YEAR,
        "jobs_per_month": jobs["finished"].sum() * HOURS_PER_MONTH / takes_h,
        "utilisation_fraction": (n_nodes * within * useful_h / wall_h).sum()
        / ((section.nodes or nan) * window_h),
        "busy_nodes": (n_nodes * within).sum() / window_h,
    }
    n_jobs, n_saves = by_kind(np.ones(len(wall_h))), by_kind(jobs["n_saves"])
    sums = {part: by_kind(values) for part, values in {USEFUL: useful_h, **hours}.items()}
    usage = []
    for number, kind in enumerate(fleet.kinds):
        assert kind.scenario is not None
        nodes = {role.name: role.n_nodes for role in kind.cluster.roles}
        state_bytes = state_bytes_of(kind.scenario.cluster)
        policy, per_month = kind.policies[strategy], HOURS_PER_MONTH / window_h
        of_parts = {part: float(of[number]) for part, of in sums.items()}
        saved, useful = int(n_saves[number]), kind.useful_h
        usage.append(usage_of(policy, nodes, state_bytes, useful, of_parts, saved, per_month))
    spare_h = (section.spares or 0) * stands_h * HOURS_PER_MONTH / window_h
    of_spares = [Usage({SPARE: {SPARE: spare_h}})] if spare_h else []
    return FleetCell(
        finished=float(jobs["finished"].mean()),
        statistics={name: float(statistics[name]) for name in STATISTICS},
        n_jobs=tuple(kind.n_jobs for kind in fleet.population.kinds),
        means={name: tuple((by_kind(of) / n_jobs).tolist()) for name, of in per_job.items()},
        used=_total_usage([*usage, *of_spares]),
        usage=tuple(usage),
        risks_all=any(kind.policies[strategy].risks_all(kind.useful_h) for kind in fleet.kinds),
    )


def _total_usage(some: Sequence[Usage]) -> Usage:
    parts = dict.fromkeys(part for usage in some for part in usage.node_h)
    return Usage(
        {part: summed([usage.node_h.get(part, {}) for usage in some]) for part in parts},
        sum(usage.kept_gb_months for usage in some),
        sum(usage.written_gb for usage in some),
    )


def summed(some: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sums by key."""
    keys = dict.fromkeys(key for values in some for key in values)
    return {key: sum(values.get(key, 0.0) for values in some) for key in keys}


# ------------------------------------------------------------------------------ in money


def cost_of(cell: FleetCell, prices: Prices | None) -> float:
    """Cost of a cell per month: whole cents, or node-hours without prices."""
    if prices is None:
        return sum(node_hours(cell.used).values())
    return float(bill_of(prices, cell.used).total_cents)


def cost_by_kind(cell: FleetCell, prices: Prices | None) -> Floats:
    """Cost per month of the jobs of each kind, not rounded, without spares."""
    if prices is None:
        return np.array([sum(node_hours(usage).values()) for usage in cell.usage])
    amounts = [sum(amounts_of(prices, usage).values()) for usage in cell.usage]
    return np.array([100.0 * float(amount) for amount in amounts])


def node_hours(usage: Usage) -> dict[str, float]:
    """The sum over roles, by part."""
    return {part: sum(by_role.values()) for part, by_role in usage.node_h.items()}
