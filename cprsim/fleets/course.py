"""A history of a fleet under one strategy: who runs its jobs, and what becomes of each.

Jobs that do not meet while they run are replications of their kinds, which the engine takes many at
a time; whether they queue for nodes is decided afterwards, as nothing else depends on when they
start. Jobs that share spares or storage are run together, by SimPy (ADR 0023).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from cprsim.errors import ParameterError, ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.experiments.pipeline import blocks_of, engine_of
from cprsim.fleets.compiled import KindToRun, refusal, run_compiled
from cprsim.fleets.events import JobToRun, RemoteSaves, queue_jobs, run_jobs
from cprsim.fleets.nodes import Capacity
from cprsim.fleets.population import Population, population_of, scenario_of
from cprsim.fleets.records import Arrival, JobRows, Ran, Shared
from cprsim.records import Clock, Floats, RecoveryPolicy, Transfer
from cprsim.recovery.legal import require_legal
from cprsim.recovery.policy import Medium, Policy
from cprsim.recovery.remote import remote_share
from cprsim.scenario import LoadedScenario, dump_scenario
from cprsim.scenario.fleet import Fleet
from cprsim.simulate.engines import Engine
from cprsim.simulate.events.replication import numbers_as_objects
from cprsim.simulate.numbers import Numbers


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

    @property
    def nodes_by_role(self) -> dict[str, int]:
        return {role.name: role.n_nodes for role in self.experiment.cluster.roles}


@dataclass(frozen=True, slots=True)
class PreparedFleet:
    """A fleet as records: its kinds of jobs, when they arrive, and what they share."""

    name: str
    section: Fleet
    seed: int
    shared: Shared
    population: Population
    kinds: tuple[KindOfJob, ...]
    strategies: tuple[str, ...]

    @property
    def n_jobs(self) -> int:
        return self.population.n_jobs

    def arrivals(self, history: int) -> list[Arrival]:
        """The jobs of a history in the order of their arrival."""
        at_h = self.population.arrivals_h(self.section, self.seed, history)
        kind = np.repeat(np.arange(len(self.kinds)), [one.n_jobs for one in self.kinds])
        nth = np.concatenate([np.arange(one.n_jobs) for one in self.kinds])
        order = np.argsort(at_h, kind="stable")
        return [
            Arrival(*one)
            for one in zip(
                at_h[order].tolist(), kind[order].tolist(), nth[order].tolist(), strict=True
            )
        ]


def prepare(loaded: LoadedScenario) -> PreparedFleet:
    """Make records of a scenario with a fleet. Raises ScenarioError where that can't be done."""
    population, section = population_of(loaded), loaded.scenario.fleet
    assert section is not None, "`population_of` sees to it"
    knows_repair = loaded.scenario.cluster.repair is not None or loaded.trace_path is not None
    if section.spares is not None and not knows_repair:
        message = "is missing: with `fleet.spares`, say when a failed node comes back"
        raise ScenarioError.at(loaded.place("fleet.spares"), message, key="cluster.repair")
    kinds = _kinds(loaded, population)
    _require_waits(loaded, kinds[0].experiment)
    for kind, of in zip(kinds, population.kinds, strict=True):
        if section.nodes is not None and kind.n_nodes > section.nodes:
            message = (
                f"is {section.nodes:,}, and a job takes {kind.n_nodes:,} nodes: it can't start"
            )
            raise ScenarioError.at(of.place, message, key="fleet.nodes")
    capacity = Capacity(section.nodes, section.spares, section.crews, section.queue == "backfill")
    return PreparedFleet(
        name=loaded.scenario.name,
        section=section,
        seed=loaded.scenario.simulation.seed,
        shared=Shared(capacity, section.storage_bytes_per_h, section.savers),
        population=population,
        kinds=kinds,
        strategies=tuple(entry.name for entry in loaded.scenario.recovery),
    )


def _kinds(loaded: LoadedScenario, population: Population) -> tuple[KindOfJob, ...]:
    """The kinds of jobs; those of the fleet before, where only what they share is another."""
    global _last
    alone = loaded.varied({"fleet": None, "prices": None}, loaded.place).scenario
    key = (dump_scenario(alone), population.kinds, loaded.path)
    if _last is None or _last[0] != key:
        _last = (
            key,
            tuple(
                _kind(scenario_of(loaded, kind, number), kind.n_jobs)
                for number, kind in enumerate(population.kinds)
            ),
        )
    spares = None if loaded.scenario.fleet is None else loaded.scenario.fleet.spares
    return tuple(_with_spares(kind, spares) for kind in _last[1])


def _require_waits(loaded: LoadedScenario, experiment: Experiment) -> None:
    """Raise ScenarioError where a recovery system can't live with spares that run out."""
    for number, policy in enumerate(experiment.policies):
        try:
            if policy.system is not None:
                require_legal(policy.system, experiment.cluster, experiment.scopes)
        except ParameterError as error:
            key = f"recovery.{number}"
            raise ScenarioError.at(loaded.place(key), str(error), key=key) from error


_last: tuple[object, tuple[KindOfJob, ...]] | None = None  # key, and kinds of jobs


def _with_spares(kind: KindOfJob, n_spares: int | None) -> KindOfJob:
    """The kind in a fleet with so many spares: its jobs wait for them, or none ever does."""
    experiment = kind.experiment
    cluster = replace(experiment.cluster, n_spares=n_spares)
    return replace(kind, experiment=replace(experiment, cluster=cluster))


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


# ------------------------------------------------------------------------------ one history


def run_history(
    fleet: PreparedFleet,
    strategy: int,
    history: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    simpy_alone: bool = False,
    compiled_alone: bool = False,
) -> JobRows:
    """What becomes of all jobs of a fleet under one strategy; rows in the order of arrival.

    Parameters
    ----------
    history : a job meets the failures of its kind's replication ``history * n_jobs + nth``
    simpy_alone : whether SimPy runs all jobs, also those that the engine would take
    compiled_alone : whether the compiled loop runs jobs that meet, were they ever so few;
        ValueError where it can't
    """
    arrivals = fleet.arrivals(history)
    shared = fleet.shared
    if shared.only_by_spares and not simpy_alone:
        found = _if_none_waits(fleet, strategy, history, arrivals)
        if found is not None:
            return found
    given = [_GivenKind(kind, strategy, history, shared) for kind in fleet.kinds]
    if not (shared.jobs_meet or simpy_alone):
        return _rows(arrivals, given, _by_engine(arrivals, given, shared), False)
    told = None if on_progress is None else lambda n: on_progress(n, len(arrivals))
    ran = None if simpy_alone else _compiled(arrivals, given, shared, told, compiled_alone)
    by_events = ran is None
    if ran is None:
        ran = run_jobs(arrivals, shared, lambda one: given[one.kind].to_run(one.replication), told)
    return _rows(arrivals, given, ran, by_events, of_system=True)


def _compiled(
    arrivals: list[Arrival], given: list[_GivenKind], shared: Shared,
    on_end: Callable[[int], None] | None, alone: bool,
) -> list[Ran] | None:  # fmt: skip
    """What becomes of jobs that meet, by the compiled loop; None where SimPy runs them."""
    kinds = [one.to_compile() for one in given]
    reason = refusal(kinds, [one.kind.n_jobs for one in given], shared, few=alone)
    ran = None if reason else run_compiled(arrivals, shared, kinds, on_end)
    if alone and ran is None:
        raise ValueError(reason or "rounding decides what comes first")
    return ran


def _if_none_waits(
    fleet: PreparedFleet, strategy: int, history: int, arrivals: list[Arrival]
) -> JobRows | None:
    """What becomes of the jobs if no slot ever waits for a spare; None where one may.

    Then no job knows of the spares: it fails and ends as if one were always free. More nodes are
    never in repair at once than failures within repair times strike, if each strikes a node.
    """
    kinds = [_with_spares(kind, None) for kind in fleet.kinds]
    if any(kind.experiment.failures.clock is not Clock.WALL for kind in kinds):
        return None
    n_spares = fleet.shared.capacity.n_spares
    assert n_spares is not None
    if sum(map(_repair_hours, kinds)) > n_spares * fleet.section.window_h:
        return None  # on average more are in repair: not worth a look
    given = [_GivenKind(kind, strategy, history, fleet.shared) for kind in kinds]
    ran = _by_engine(arrivals, given, fleet.shared)
    spans = [
        given[one.kind].in_repair(one.replication, job)
        for one, job in zip(arrivals, ran, strict=True)
    ]
    if _most_at_once(np.concatenate(spans, axis=1)) > n_spares:
        return None
    return _rows(arrivals, given, ran, False)


def _repair_hours(kind: KindOfJob) -> float:
    """Roughly how many hours nodes of a kind are in repair, all its jobs together."""
    repair = kind.experiment.cluster.repair
    return 0.0 if repair is None else kind.n_jobs * _n_failures(kind) * repair.mean_h


def _n_failures(kind: KindOfJob) -> float:
    """Roughly how many failures a job has."""
    of = kind.experiment
    return of.useful_h / of.failures.expected(of.cluster, of.useful_h).mtbf_h


def _most_at_once(spans_h: Floats) -> int:
    """How many of some spans (begins, ends) overlap at most; ends before begins of one instant."""
    begins, ends = np.sort(spans_h[0]), np.sort(spans_h[1])
    n_ended = np.searchsorted(ends, begins, side="right")
    return int((np.arange(1, len(begins) + 1) - n_ended).max(initial=0))


class _GivenKind:
    """Jobs of one kind under one strategy in one history, with what they meet."""

    def __init__(self, kind: KindOfJob, strategy: int, history: int, shared: Shared) -> None:
        self.kind = kind
        self.policy: RecoveryPolicy = kind.experiment.policies[strategy]
        self.engine: Engine = engine_of(self.policy, kind.experiment, keep_losses=False)
        first = history * kind.n_jobs
        self.blocks = list(blocks_of(kind.experiment, range(first, first + kind.n_jobs)))
        self._given = [self.engine.given(block) for block in self.blocks]
        self._holds_up = shared.storage_bytes_per_h is not None or shared.n_savers is not None
        self._by_bytes = kind.saves_transfer[strategy]
        self._waits_for_turn = shared.n_savers is not None
        self._remote: dict[int, RemoteSaves] | None = None
        self._num: Numbers | None = None

    @property
    def system(self) -> Policy:
        return self.engine.job.policy

    @property
    def parts(self) -> tuple[str, ...]:
        return self.engine.parts or self.system.parts

    def to_run(self, replication: int) -> JobToRun:
        """One job, for SimPy."""
        for failures, draws in self._given:
            if replication < failures.n_replications:
                return JobToRun(
                    self.engine.job, self.kind.n_nodes, failures.of(replication),
                    draws.of(replication), self.num, self.remote,
                )  # fmt: skip
            replication -= failures.n_replications
        raise IndexError(replication)

    def to_compile(self) -> KindToRun:
        """All jobs, for the compiled loop."""
        n_failures = _n_failures(self.kind)
        return KindToRun(self.engine.job, self.kind.n_nodes, self._given, self.remote, n_failures)

    @property
    def num(self) -> Numbers:
        """The job's numbers, made once for all jobs of the kind."""
        if self._num is None:
            self._num = numbers_as_objects(self.engine.job)
        return self._num

    @property
    def remote(self) -> dict[int, RemoteSaves]:
        """The saves that others may hold up, by capture."""
        if self._remote is None:
            self._remote = self._find_remote() if self._holds_up else {}
        return self._remote

    def _find_remote(self) -> dict[int, RemoteSaves]:
        if not (self._by_bytes or self._waits_for_turn):
            return {}
        storage = self.kind.experiment.costs.storage
        medium = {tier.name: tier.medium for tier in self.system.tiers}
        n = max(1, self.kind.experiment.cluster.n_emb_ps)
        cap = 1.0 if storage is None else storage.mean_rate_bytes_per_h(n)
        return {
            number: RemoteSaves(n, cap)
            for number, capture in enumerate(self.system.captures)
            if medium[capture.tier] is Medium.REMOTE
        }

    def by_engine(self) -> list[Ran]:
        """All jobs, as if each started at 0."""
        n_shards = max(1, self.kind.experiment.cluster.n_emb_ps)
        ran = []
        for block in self.blocks:
            rows = self.engine.run(block, range(block.failures.n_replications))
            costs = rows.costs
            columns = (
                costs.wall_h, costs.finished, costs.useful_h, costs.hours, costs.n_failures,
                costs.n_saves, rows.stale_h * n_shards,
            )  # fmt: skip
            ran += [
                Ran(0.0, wall_h, finished, useful_h, tuple(hours), n_failures, n_saves, stale_h)
                for wall_h, finished, useful_h, hours, n_failures, n_saves, stale_h in zip(
                    *(column.tolist() for column in columns), strict=True
                )
            ]
        return ran

    def in_repair(self, replication: int, ran: Ran) -> Floats:
        """When nodes of a job go to repair and come back, at the earliest and latest (2, n) [h]."""
        for failures, _ in self._given:
            if replication < failures.n_replications:
                struck = [
                    (ran.start_h + one.at_h, ran.start_h + one.at_h + repair_h)
                    for one in takewhile(
                        lambda one: one.at_h <= ran.wall_h, failures.of(replication)
                    )
                    for repair_h in one.repair_h
                ]
                return np.array(struck, dtype=np.float64).reshape(-1, 2).T
            replication -= failures.n_replications
        raise IndexError(replication)

    @property
    def bytes_per_save(self) -> float:
        """What one save counts as, of what is written to the remote storage."""
        of_interval = 1.0 if self.policy.sub_saves is None else self.policy.sub_saves.bytes_share
        return (
            self.kind.state_bytes
            * of_interval
            * remote_share(self.system, self.engine.job.useful_h)
        )


def _by_engine(arrivals: list[Arrival], given: list[_GivenKind], shared: Shared) -> list[Ran]:
    of_kinds = [kind.by_engine() for kind in given]
    ran = [of_kinds[one.kind][one.replication] for one in arrivals]
    n_nodes = [given[one.kind].kind.n_nodes for one in arrivals]
    if shared.capacity.n_nodes is None:
        start_h = [one.at_h for one in arrivals]
    else:
        start_h = queue_jobs(arrivals, shared, n_nodes, [one.wall_h for one in ran])
    return [replace(one, start_h=at_h) for one, at_h in zip(ran, start_h, strict=True)]


def _rows(
    arrivals: list[Arrival], given: list[_GivenKind], ran: list[Ran], by_events: bool,
    of_system: bool = False,
) -> JobRows:  # fmt: skip
    kind = np.array([one.kind for one in arrivals], dtype=np.int64)
    parts = tuple(dict.fromkeys(part for one in given for part in one.parts))
    n_saves = np.array([one.n_saves for one in ran], dtype=np.int64)
    stale_h: Floats = np.array([one.stale_h for one in ran])
    useful_h: Floats = np.array([one.kind.experiment.useful_h for one in given])[kind]
    n_shards = np.array([max(1, one.kind.experiment.cluster.n_emb_ps) for one in given])[kind]
    return JobRows(
        parts=parts,
        kind=kind,
        n_nodes=np.array([one.kind.n_nodes for one in given], dtype=np.int64)[kind],
        arrive_h=np.array([one.at_h for one in arrivals]),
        start_h=np.array([one.start_h for one in ran]),
        wall_h=np.array([one.wall_h for one in ran]),
        finished=np.array([one.finished for one in ran]),
        useful_h=np.array([one.useful_h for one in ran]),
        hours=_hours(parts, kind, given, ran, of_system),
        n_failures=np.array([one.n_failures for one in ran], dtype=np.int64),
        n_saves=n_saves,
        pls=stale_h / (useful_h * n_shards),
        written_bytes=n_saves * np.array([one.bytes_per_save for one in given])[kind],
        by_events=by_events,
    )


def _hours(
    parts: tuple[str, ...], kind: np.ndarray, given: list[_GivenKind], ran: list[Ran],
    of_system: bool,
) -> Floats:  # fmt: skip
    """Hours of each job in the columns of all parts; of jobs that meet, in those of the system."""
    named = [one.system.parts if of_system else one.parts for one in given]
    columns = [[parts.index(part) for part in of] for of in named]
    hours: Floats = np.zeros((len(ran), len(parts)))
    for row, (number, one) in enumerate(zip(kind.tolist(), ran, strict=True)):
        hours[row, columns[number]] = one.hours
    return hours
