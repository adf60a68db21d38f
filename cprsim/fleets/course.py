"""A history of a fleet under one strategy: its jobs, and what becomes of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.experiments.pipeline import blocks_of, engine_of
from cprsim.fleets.population import Population, fleet_of, population_of, scenario_of
from cprsim.records import Floats, Ints, Transfer
from cprsim.recovery.legal import require_legal
from cprsim.recovery.policy import Medium, Policy, remote_share
from cprsim.scenario import LoadedScenario, dump_scenario
from cprsim.scenario.fleet import Fleet
from cprsim.simulate.cluster import RunningJob, SharedCluster, run_fleet
from cprsim.simulate.job import StaleShard
from cprsim.simulate.saves import SharedSaves
from cprsim.streams import stream


@dataclass(frozen=True, slots=True)
class KindOfJob:
    """Jobs that are all alike, ready to be simulated."""

    experiment: Experiment
    n_jobs: int
    state_bytes: float  # of all servers that hold state; 0 where the scenario does not say
    saves_transfer: tuple[bool, ...]  # by strategy: whether bytes say what its saves take

    @property
    def n_nodes(self) -> int:
        return self.experiment.cluster.n_nodes


@dataclass(frozen=True, slots=True)
class PreparedFleet:
    """A fleet as records: its kinds of jobs, when they arrive, and what they share."""

    section: Fleet
    seed: int
    population: Population
    kinds: tuple[KindOfJob, ...]
    strategies: tuple[str, ...]

    def arrivals(self, history: int) -> pd.DataFrame:
        """The jobs of a history in order of arrival: `arrive_h`, `kind`, and its `nth` of those."""
        n_jobs = [one.n_jobs for one in self.kinds]
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
            "nth": np.concatenate([np.arange(one) for one in n_jobs]),
        }
        return pd.DataFrame(jobs).sort_values("arrive_h", kind="stable", ignore_index=True)


def prepare(loaded: LoadedScenario) -> PreparedFleet:
    """Make records of a scenario with a fleet. Raises ScenarioError where that can't be done."""
    population, section = population_of(loaded), fleet_of(loaded)
    knows_repair = loaded.scenario.cluster.repair is not None or loaded.trace_path is not None
    if section.spares is not None and not knows_repair:
        message = "is missing: with `fleet.spares`, say when a failed node comes back"
        raise ScenarioError.at(loaded.place("fleet.spares"), message, key="cluster.repair")
    kinds = tuple(_with_spares(kind, section.spares) for kind in _kinds(loaded, population))
    _require_waits(loaded, kinds[0].experiment)
    for kind, of in zip(kinds, population.kinds, strict=True):
        if section.nodes is not None and kind.n_nodes > section.nodes:
            needs = f"a job takes {kind.n_nodes:,} nodes: it can't start"
            raise ScenarioError.at(
                of.place, f"is {section.nodes:,}, and {needs}", key="fleet.nodes"
            )
    strategies = tuple(entry.name for entry in loaded.scenario.recovery)
    return PreparedFleet(section, loaded.scenario.simulation.seed, population, kinds, strategies)


_last: tuple[object, tuple[KindOfJob, ...]] | None = None  # key, and kinds of jobs


def _kinds(loaded: LoadedScenario, population: Population) -> tuple[KindOfJob, ...]:
    """The kinds of jobs; those of the fleet before, where only what they share is another."""
    global _last
    alone = loaded.varied({"fleet": None, "prices": None}, loaded.place).scenario
    key = (dump_scenario(alone), population.kinds, loaded.path)
    if _last is None or _last[0] != key:
        kinds = [
            _kind(scenario_of(loaded, kind, number), kind.n_jobs)
            for number, kind in enumerate(population.kinds)
        ]
        _last = key, tuple(kinds)
    return _last[1]


def _kind(loaded: LoadedScenario, n_jobs: int) -> KindOfJob:
    experiment, section = assemble(loaded), loaded.scenario.cluster
    n_holding = section.n_nodes_of[section.state_role]
    costs = [entry.costs_from(experiment.costs) for entry in loaded.scenario.recovery]
    return KindOfJob(
        experiment,
        n_jobs,
        (section.shard_bytes or 0.0) * n_holding,
        tuple(Transfer() in (one.save_stall, one.save_background) for one in costs),
    )


def _with_spares(kind: KindOfJob, n_spares: int | None) -> KindOfJob:
    """The kind in a fleet with so many spares: its jobs wait for them, or none ever does."""
    experiment = kind.experiment
    cluster = replace(experiment.cluster, n_spares=n_spares)
    return replace(kind, experiment=replace(experiment, cluster=cluster))


def _require_waits(loaded: LoadedScenario, experiment: Experiment) -> None:
    """Raise ScenarioError where a recovery system can't live with spares that run out."""
    for number, policy in enumerate(experiment.policies):
        try:
            require_legal(policy, experiment.cluster, experiment.scopes)
        except ParameterError as error:
            key = f"recovery.{number}"
            raise ScenarioError.at(loaded.place(key), str(error), key=key) from error


# ------------------------------------------------------------------------------ one history


OUTCOME = ("wall_h", "finished", "useful_h", "n_failures", "n_saves")


class History(NamedTuple):
    """What became of the jobs of a fleet, a row per job in order of arrival.

    `jobs` has kind, n_nodes, arrive_h, start_h, wall_h, finished, useful_h, n_failures, n_saves,
    queued_h (from arrival to start), overhead (share of the useful time), pls (of lost samples, as
    a share of the job's) and written_bytes (to the remote storage); `hours` has a column per part
    of the overhead.
    """

    jobs: pd.DataFrame
    hours: pd.DataFrame


def run_history(fleet: PreparedFleet, strategy: int, history: int = 0) -> History:
    """What becomes of all jobs of a fleet under one strategy.

    A job meets the failures of its kind's replication ``history * n_jobs + nth``.
    """
    arrivals, section = fleet.arrivals(history), fleet.section
    all_kinds = [_Kind(kind, strategy, history, section) for kind in fleet.kinds]
    kinds = [all_kinds[number] for number in arrivals.kind]
    cluster = SharedCluster(section.nodes, section.spares, section.storage_bytes_per_h or inf)
    begins = [
        partial(kind.begin, cluster, nth) for kind, nth in zip(kinds, arrivals.nth, strict=True)
    ]
    n_nodes = [kind.n_nodes for kind in kinds]
    ran = run_fleet(cluster, arrivals.arrive_h.tolist(), n_nodes, begins)
    rows, hours = [], []
    for kind, (start_h, one) in zip(kinds, ran, strict=True):
        row = {"n_nodes": kind.n_nodes, "start_h": start_h}
        row |= {name: getattr(one, name) for name in OUTCOME}
        row |= {"pls": kind.pls(one.stale), "written_bytes": one.n_saves * kind.bytes_per_save}
        rows.append(row)
        hours.append(dict(zip(kind.job.policy.parts, one.hours, strict=True)))
    found = arrivals[["kind", "arrive_h"]].join(pd.DataFrame(rows))
    found["queued_h"] = found.start_h - found.arrive_h
    found["overhead"] = (found.wall_h - found.useful_h) / found.useful_h
    parts = list(dict.fromkeys(part for kind in all_kinds for part in kind.parts))
    return History(found, pd.DataFrame(hours, columns=parts, dtype=float).fillna(0.0))


class _Kind:
    """Jobs of one kind under one strategy in one history, with what they meet."""

    def __init__(self, kind: KindOfJob, strategy: int, history: int, section: Fleet) -> None:
        policy: Policy = kind.experiment.policies[strategy]
        engine = engine_of(policy, kind.experiment, keep_losses=False)
        first = history * kind.n_jobs
        self._cluster, costs = kind.experiment.cluster, kind.experiment.costs
        self.job, self.n_nodes = engine.job, kind.n_nodes
        self.parts = engine.parts or engine.job.policy.parts
        self._met = [
            (failures, draws, number)
            for block in blocks_of(kind.experiment, range(first, first + kind.n_jobs))
            for failures, draws in [engine.given(block)]
            for number in range(failures.n_replications)
        ]
        medium = {tier.name: tier.medium for tier in self.job.policy.tiers}
        over_storage = section.storage_bytes_per_h is not None and kind.saves_transfer[strategy]
        remote = frozenset(
            number
            for number, capture in enumerate(self.job.policy.captures if over_storage else ())
            if medium[capture.tier] is Medium.REMOTE
        )
        n_flows, storage = max(1, self._cluster.n_emb_ps), costs.storage
        rate = storage.mean_rate_bytes_per_h(n_flows) if storage is not None else 1.0
        self._shared_saves = SharedSaves(remote, n_flows, rate)
        of_interval = 1.0 if policy.sub_saves is None else policy.sub_saves.bytes_share
        self.bytes_per_save = (
            kind.state_bytes * of_interval * remote_share(self.job.policy, self.job.useful_h)
        )

    def begin(
        self, cluster: SharedCluster, nth: int, on_end: Callable[[RunningJob], object]
    ) -> RunningJob:
        """One of the jobs starts on the cluster."""
        failures, draws, number = self._met[nth]
        return RunningJob(
            cluster, self.job, failures.of(number), draws.of(number),
            shared_saves=self._shared_saves, skips=not self._shared_saves.captures, on_end=on_end,
        )  # fmt: skip

    def pls(self, stale: tuple[StaleShard, ...]) -> float:
        """The samples that a job lost, as a share of all."""
        slots: Ints = np.array([one.slot for one in stale], dtype=np.int64)
        lost_h = np.array([one.progress_h - one.content_h for one in stale])
        return float((self._cluster.shares(slots) * lost_h).sum()) / self.job.useful_h
