"""From what the user wrote to the plain records that the engines take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cprsim.curves import chosen_curve
from cprsim.errors import ParameterError, PolicyError, Problem, ScenarioError
from cprsim.experiments.listed import JobNow, ListedSystem
from cprsim.failures.replay import Replay
from cprsim.failures.several import SeveralSources
from cprsim.failures.sources import FailureSource
from cprsim.records import (
    Cluster,
    Costs,
    Holds,
    OnFailure,
    RecoveryPolicy,
    Storage,
)
from cprsim.recovery import STRATEGIES, Planning
from cprsim.recovery.classic import as_system, draw_names
from cprsim.recovery.legal import require_legal
from cprsim.recovery.policy import Capture, Reach, Scope, checked
from cprsim.recovery.system import noticed_after
from cprsim.recovery.systems import SYSTEMS, written
from cprsim.scenario import LoadedScenario, Scenario
from cprsim.scenario.failures import Failures
from cprsim.scenario.job import EngineName
from cprsim.scenario.recovery import RecoverySection
from cprsim.scenario.silent import SILENT
from cprsim.scenario.traces import TraceFailures
from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.strikes import ScopeShares
from cprsim.staleness import StalenessCurve


@dataclass(frozen=True, slots=True)
class Experiment:
    """A scenario as records: everything that an engine needs, nothing that only a user does."""

    useful_h: float
    cluster: Cluster
    costs: Costs
    failures: FailureSource
    policies: tuple[RecoveryPolicy, ...]
    seed: int
    scopes: tuple[Scope, ...]  # what failures kill
    shares: ScopeShares  # of the failures
    n_replications: int | None  # None: until the precision is reached
    precision_fraction: float | None = None
    at_most: int = 0  # replications, where the precision decides
    engine: EngineName = "auto"
    curve: StalenessCurve | None = None  # prices lost samples; None: none applies
    horizon_h: float | None = None  # wall time at which the job ends, done or not
    systems: tuple[ListedSystem, ...] = ()  # that the scenario lists
    check: Capture | None = None  # for silent errors

    def simulated_job(self, policy: RecoveryPolicy) -> SimulatedJob:
        """The job under a recovery system."""
        renamed: tuple[tuple[str, str], ...] = ()
        if policy.on_failure is not OnFailure.BY_RULES:
            renamed = draw_names(self.scopes, len(policy.system.rules))
        system = policy.system
        if self.check is not None:
            system = checked(system, self.cluster, self.check)
            require_legal(system, self.cluster, self.scopes)
        return SimulatedJob(
            self.useful_h, self.cluster, self.failures.clock, self.scopes, system,
            self.horizon_h, renamed,
        )  # fmt: skip

    def now_for(self, listed: ListedSystem) -> JobNow:
        """The job as a system that the scenario lists finds it."""
        mtbf_h = self.failures.expected(self.cluster, self.useful_h).mtbf_h
        own = listed.entry.costs_from(self.costs)
        return JobNow(self.cluster, own, self.scopes, self.expected_shares, mtbf_h)

    @property
    def expected_shares(self) -> tuple[float, ...]:
        """Share of the failures that is of each scope, on average over the useful hours."""
        shares, failures = self.shares, self.failures
        if not shares.of_source or not isinstance(failures, SeveralSources):
            return shares.shares
        rate, *others = failures.rates_per_h(self.cluster, self.useful_h)
        rates = [share * rate for share in shares.shares]
        for scope, other in zip(shares.of_source, others, strict=True):
            rates[scope] = other
        return tuple(rate / sum(rates) for rate in rates) if any(rates) else shares.shares

    @property
    def log_notes(self) -> tuple[str, ...]:
        """What is replayed of a log, and what was left out, closed or assumed of it."""
        failures = self.failures
        if isinstance(failures, SeveralSources):
            failures = failures.sources[0][1]
        return failures.notes if isinstance(failures, Replay) else ()


def assemble(loaded: LoadedScenario, *, with_policies: bool = True) -> Experiment:
    """Turn a scenario into records.

    Raises ScenarioError where sections do not fit together in a way that only building them shows;
    TraceError where the failure trace can't be read; CurveError where the staleness curve can't be
    read.
    """
    scenario = loaded.scenario
    with _blaming(loaded, "cluster"):
        cluster = scenario.cluster.record(scenario.sync)
    with _blaming(loaded, "costs"):
        costs = scenario.costs.record(_storage(scenario), scenario.cluster.links_h)
    with _blaming(loaded, "failures"):
        failures = _all_failures(loaded, cluster)
        failures.expected(cluster, scenario.job.useful_h)  # what makes no sense is said here
    simulation = scenario.simulation
    curve = chosen_curve(loaded)
    scopes = tuple(scope.record(costs.detect) for scope in scenario.scopes)
    scopes = scopes or (Scope("node", Reach.NODE, costs.detect),)  # every failure kills a node
    silent = scenario.silent
    if silent is not None:
        scopes = (*scopes, silent.scope)
    experiment = Experiment(
        useful_h=scenario.job.useful_h,
        cluster=cluster,
        costs=costs,
        failures=failures,
        policies=(),
        seed=simulation.seed,
        n_replications=simulation.replications,
        precision_fraction=simulation.precision_fraction,
        at_most=simulation.at_most or 0,
        engine=simulation.engine,
        curve=curve,
        scopes=scopes,
        shares=_shares(scenario, scopes, cluster),
        horizon_h=scenario.job.horizon_h,
        check=None if silent is None else silent.capture,
        systems=tuple(
            ListedSystem(scenario, entry)
            for entry in scenario.recovery
            if entry.strategy in SYSTEMS
        ),
    )
    if not with_policies:
        return experiment
    return replace(experiment, policies=tuple(policies_of(loaded, experiment)))


def _storage(scenario: Scenario) -> Storage | None:
    section, cluster = scenario.storage, scenario.cluster
    return None if section is None else section.record(cluster.shard_bytes, cluster.uneven_bytes)


def _all_failures(loaded: LoadedScenario, cluster: Cluster) -> FailureSource:
    """Those of the section `failures`, and of each scope that has some of its own."""
    of_job = _failures(loaded, loaded.scenario.failures, cluster)
    others = tuple(
        (scope.name, _failures(loaded, scope.failures, cluster))
        for scope in loaded.scenario.scopes
        if scope.failures is not None
    )
    silent = loaded.scenario.silent
    if silent is not None:
        others += ((SILENT, silent.source(cluster, of_job.clock)),)
    return SeveralSources((("", of_job), *others)) if others else of_job


def _failures(loaded: LoadedScenario, section: Failures, cluster: Cluster) -> FailureSource:
    if not isinstance(section, TraceFailures):
        return section.source(cluster, loaded.scenario.job.useful_h)
    assert loaded.trace_path is not None, "loading sees to it that a trace has a file"
    return section.source(loaded.trace_path)


def _shares(scenario: Scenario, scopes: tuple[Scope, ...], cluster: Cluster) -> ScopeShares:
    shares = tuple(scope.share or 0.0 for scope in scenario.scopes) or (1.0,)
    reaches = tuple(scope.reach for scope in scopes)
    own = tuple(i for i, scope in enumerate(scenario.scopes) if scope.failures is not None)
    if scenario.silent is not None:
        shares, own = (*shares, 0.0), (*own, len(shares))
    return ScopeShares(shares, reaches, cluster.n_nodes, scenario.cluster.rack, own)


@contextmanager
def _blaming(loaded: LoadedScenario, key: str, written_out: bool = False) -> Iterator[None]:
    """Say where in the scenario stands what a model refuses."""
    try:
        yield
    except ParameterError as error:
        if isinstance(error, PolicyError) and error.at and written_out:
            key = ".".join((key, "options", *map(str, error.at)))
        raise ScenarioError.at(loaded.place(key), str(error), key=key) from error


# ----------------------------------------------------------------------------- recovery


def policies_of(loaded: LoadedScenario, experiment: Experiment) -> list[RecoveryPolicy]:
    """What each entry of `recovery` does. Raises ScenarioError with all entries that can't."""
    planner = Planner(loaded.scenario, experiment)
    policies: list[RecoveryPolicy] = []
    problems: list[Problem] = []
    for number, entry in enumerate(loaded.scenario.recovery):
        try:
            with _blaming(loaded, f"recovery.{number}", entry.strategy == written.SYSTEM.name):
                policies.append(planner.policy(entry))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return policies


class Planner:
    """What entries of `recovery` make of a job, also entries that its scenario does not list."""

    def __init__(self, scenario: Scenario, experiment: Experiment) -> None:
        self._scenario, self._experiment = scenario, experiment
        cluster, failures = experiment.cluster, experiment.failures
        self._expected = failures.expected(cluster, experiment.useful_h)
        self._beside_fraction = _beside_fraction(cluster, failures, experiment.useful_h)

    def policy(self, entry: RecoverySection) -> RecoveryPolicy:
        """What an entry says, as a policy. Raises ParameterError where it can't serve this job."""
        experiment = self._experiment
        if entry.strategy in SYSTEMS:
            listed = ListedSystem(self._scenario, entry)
            return listed.policy(experiment.now_for(listed))
        planning = self._planning(entry.costs_from(experiment.costs))
        return with_own_costs(_policy(entry, planning, experiment.curve), entry, experiment)

    def _planning(self, costs: Costs) -> Planning:
        n, expected = self._experiment.cluster.n_emb_ps, self._expected
        return Planning(
            useful_h=self._experiment.useful_h,
            n_emb_ps=n,
            save_cost_h=costs.mean_h(costs.save_stall, n),
            restart_h=costs.detect.mean_h + costs.reschedule.mean_h,
            full_load_h=costs.mean_h(costs.load, n),
            partial_load_h=costs.mean_h(costs.load, max(1, round(expected.n_shards_together))),
            failures=expected,
            beside_fraction=self._beside_fraction,
        )


def _beside_fraction(cluster: Cluster, failures: FailureSource, useful_h: float) -> float:
    """Share of all hours of detection and rescheduling that the others work on, on average.

    A failure of a role that nobody waits for costs what its nodes would have done meanwhile: one
    of n trainers 1/n, a sync server nothing.
    """
    mtbf_h = failures.expected(cluster, useful_h).mtbf_h
    saved = 0.0
    for role in (role for role in cluster.roles if role.others_go_on):
        holds = {role.name: Holds.SHARD}  # so that what is known of shards is asked of this role
        roles = (replace(one, holds=holds.get(one.name, Holds.NOTHING)) for one in cluster.roles)
        struck = failures.expected(replace(cluster, roles=tuple(roles)), useful_h)
        missing = struck.n_shards_together / role.n_nodes if role.holds is Holds.REPLICA else 0.0
        saved += mtbf_h / struck.mtbf_shard_h * (1.0 - missing)
    return saved


def with_own_costs(
    policy: RecoveryPolicy, entry: RecoverySection, experiment: Experiment
) -> RecoveryPolicy:
    """The policy of a strategy, as a system where its entry has costs of its own.

    Raises ParameterError where that makes no sense for the job.
    """
    own = entry.costs_from(experiment.costs)
    system = as_system(policy, own, experiment.cluster)
    require_legal(system, experiment.cluster, experiment.scopes)
    if entry.costs is None:
        return policy
    if entry.costs.detect is not None:
        system = noticed_after(system, own.detect)
    return replace(policy, system=system)


def _policy(
    entry: RecoverySection, planning: Planning, curve: StalenessCurve | None
) -> RecoveryPolicy:
    sub_saves = entry.priority_saving
    if sub_saves is not None and curve is not None:
        sub_saves = curve.with_bytes(sub_saves)
    job = planning.with_options(entry.interval, entry.target_pls, sub_saves)
    return STRATEGIES[entry.strategy].plan(entry.name, job)
