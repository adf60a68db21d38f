"""A history of a fleet under one strategy: its jobs, and what becomes of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.experiments.pipeline import blocks_of, engine_of
from cprsim.failures.streams import stream
from cprsim.fleets.population import Population, fleet_of, population_of, scenario_of
from cprsim.records import Floats, Ints, Transfer
from cprsim.recovery.legal import require_legal
from cprsim.recovery.policy import Medium, remote_share
from cprsim.scenario import LoadedScenario, dump_scenario
from cprsim.scenario.job import Fleet
from cprsim.simulate.blocks import Engine
from cprsim.simulate.cluster import RunningJob, SharedCluster, run_fleet
from cprsim.simulate.job import StaleShard
from cprsim.simulate.saves import ALL_ALONE, SharedSaves


@dataclass(frozen=True, slots=True)
class PreparedFleet:
    """A fleet as records: its jobs and when they arrive, and what they share."""

    section: Fleet
    seed: int
    population: Population
    kinds: tuple[Experiment, ...]  # of the population, ready to be simulated

    def arrivals(self, history: int) -> pd.DataFrame:
        """The jobs of a history in order of arrival: `arrive_h`, `kind`, and its `nth` of those."""
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
    kinds = _kinds(loaded, population)
    for kind, experiment in zip(population.kinds, kinds, strict=True):
        n_nodes = experiment.cluster.n_nodes
        if section.nodes is not None and n_nodes > section.nodes:
            message = f"is {section.nodes:,}, and a job takes {n_nodes:,} nodes: it can't start"
            raise ScenarioError.at(kind.place, message, key="fleet.nodes")
    for number, policy in enumerate(kinds[0].policies):
        try:
            require_legal(policy, kinds[0].cluster, kinds[0].scopes)  # where spares can run out
        except ParameterError as error:
            key = f"recovery.{number}"
            raise ScenarioError.at(loaded.place(key), str(error), key=key) from error
    return PreparedFleet(section, loaded.scenario.simulation.seed, population, kinds)


_last: tuple[object, list[Experiment]] | None = None  # key, and kinds of jobs


def _kinds(loaded: LoadedScenario, population: Population) -> tuple[Experiment, ...]:
    """The kinds of jobs; those of the fleet before, where only what they share is another."""
    global _last
    alone = loaded.varied({"fleet": None, "prices": None}, loaded.place).scenario
    key = (dump_scenario(alone), population.kinds, loaded.path)
    if _last is None or _last[0] != key:
        numbered = enumerate(population.kinds)
        _last = key, [assemble(scenario_of(loaded, kind, number)) for number, kind in numbered]
    spares = fleet_of(loaded).spares  # None: no job ever waits for one
    return tuple(replace(kind, cluster=replace(kind.cluster, n_spares=spares)) for kind in _last[1])


def state_bytes(kind: Experiment) -> float:
    """Of all nodes of a job that hold state; 0 where the scenario does not say."""
    assert kind.scenario is not None
    section = kind.scenario.cluster
    return (section.shard_bytes or 0.0) * section.n_nodes_of[section.state_role]


# ------------------------------------------------------------------------------ one history


OUTCOME = ("wall_h", "finished", "useful_h", "n_failures", "n_saves")


class History(NamedTuple):
    """What became of the jobs of a fleet, a row per job in order of arrival.

    `jobs` has kind, nth, n_nodes, arrive_h, start_h, wall_h, finished, useful_h, n_failures,
    n_saves, queued_h (from arrival to start), overhead (share of the useful time), pls (of lost
    samples, as a share of the job's) and written_bytes (to the remote storage); `hours` has a
    column per part of the overhead.
    """

    jobs: pd.DataFrame
    hours: pd.DataFrame


def run_history(fleet: PreparedFleet, strategy: int, history: int = 0) -> History:
    """What becomes of all jobs of a fleet under one strategy.

    A job meets the failures of its kind's replication ``history * n_jobs + nth``.
    """
    section, kinds, jobs = fleet.section, fleet.kinds, fleet.arrivals(history)
    cluster = SharedCluster(section.nodes, section.spares, section.storage_bytes_per_h or inf)
    engines = [engine_of(kind.policies[strategy], kind, keep_losses=False) for kind in kinds]
    begins = []  # by kind, of each of its jobs
    for kind, engine, alike in zip(kinds, engines, fleet.population.kinds, strict=True):
        first = history * alike.n_jobs
        replications = range(first, first + alike.n_jobs)
        begins.append(_begins(cluster, kind, engine, replications, _shared(fleet, kind, strategy)))
    jobs["n_nodes"] = np.array([kind.cluster.n_nodes for kind in kinds])[jobs.kind]
    ran = run_fleet(
        cluster,
        jobs.arrive_h.tolist(),
        jobs.n_nodes.tolist(),
        [begins[kind][nth] for kind, nth in zip(jobs.kind, jobs.nth, strict=True)],
    )
    jobs["start_h"] = [start_h for start_h, _ in ran]
    for name in OUTCOME:
        jobs[name] = [getattr(one, name) for _, one in ran]
    of_kinds = [(kind, one) for kind, (_, one) in zip(jobs.kind, ran, strict=True)]
    jobs["pls"] = [_pls(kinds[kind], one.stale) for kind, one in of_kinds]
    save_bytes = [_save_bytes(kind, strategy) for kind in kinds]
    jobs["written_bytes"] = jobs.n_saves * np.array(save_bytes)[jobs.kind]
    jobs["queued_h"] = jobs.start_h - jobs.arrive_h
    jobs["overhead"] = (jobs.wall_h - jobs.useful_h) / jobs.useful_h
    parts = dict.fromkeys(part for one in engines for part in one.parts or one.job.policy.parts)
    hours = [
        dict(zip(kinds[kind].policies[strategy].parts, one.hours, strict=True))
        for kind, one in of_kinds
    ]
    return History(jobs, pd.DataFrame(hours, columns=list(parts), dtype=float).fillna(0.0))


def _begins(
    cluster: SharedCluster, kind: Experiment, engine: Engine, replications: range,
    saves: SharedSaves,
) -> list[Callable[[], RunningJob]]:  # fmt: skip
    """What puts each of the jobs on the cluster."""

    def begin(given: Any, number: int) -> RunningJob:
        failures, draws = given
        return RunningJob(
            cluster, engine.job, failures.of(number), draws.of(number), shared_saves=saves
        )

    return [
        partial(begin, given, number)
        for given in map(engine.given, blocks_of(kind, replications))
        for number in range(given[0].n_replications)
    ]


def _shared(fleet: PreparedFleet, kind: Experiment, strategy: int) -> SharedSaves:
    """The saves whose bytes go over the cluster's storage."""
    policy, storage = kind.policies[strategy], kind.costs.storage
    costs = kind.at_costs_of(kind.scenario.recovery[strategy]).costs
    if fleet.section.storage_bytes_per_h is None or storage is None:
        return ALL_ALONE
    if Transfer() not in (costs.save_stall, costs.save_background):
        return ALL_ALONE
    remote = {tier.name for tier in policy.tiers if tier.medium is Medium.REMOTE}
    captures = [n for n, capture in enumerate(policy.captures) if capture.tier in remote]
    n_flows = max(1, kind.cluster.n_emb_ps)
    return SharedSaves(frozenset(captures), n_flows, storage.mean_rate_bytes_per_h(n_flows))


def _save_bytes(kind: Experiment, strategy: int) -> float:
    """What a save writes to the remote storage, on average."""
    policy = kind.policies[strategy]
    share = 1.0 if policy.sub_saves is None else policy.sub_saves.bytes_share
    return state_bytes(kind) * share * remote_share(policy, kind.useful_h)


def _pls(kind: Experiment, stale: tuple[StaleShard, ...]) -> float:
    """The samples that a job lost, as a share of all."""
    slots: Ints = np.array([one.slot for one in stale], dtype=np.int64)
    lost_h = np.array([one.progress_h - one.content_h for one in stale])
    return float((kind.cluster.shares(slots) * lost_h).sum()) / kind.useful_h
