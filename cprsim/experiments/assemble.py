"""From what the user wrote to the plain records that the engines take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from cprsim.curves import chosen_curve
from cprsim.errors import ParameterError, PolicyError, Problem, ScenarioError
from cprsim.failures.replay import Replay
from cprsim.failures.several import SeveralSources
from cprsim.failures.sources import FailureSource
from cprsim.records import Cluster, Costs, Holds
from cprsim.recovery.legal import require_legal
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.policy import Capture, Policy, Reach, Scope, checked
from cprsim.recovery.system import JobFacts, System, noticed_after
from cprsim.recovery.systems import SYSTEMS, written
from cprsim.scenario import LoadedScenario, Scenario
from cprsim.scenario.failures import EMB_PS, Failures
from cprsim.scenario.job import EngineName
from cprsim.scenario.recovery import RecoverySection
from cprsim.scenario.silent import SILENT
from cprsim.scenario.system_options import options_of
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
    policies: tuple[Policy, ...]
    seed: int
    scopes: tuple[Scope, ...]  # what failures kill
    shares: ScopeShares  # of the failures
    scenario: Scenario  # it says what else recovery systems ask of a job
    n_replications: int | None  # None: until the precision is reached
    precision_fraction: float | None = None
    at_most: int = 0  # replications, where the precision decides
    engine: EngineName = "auto"
    curve: StalenessCurve | None = None  # prices lost samples; None: none applies
    horizon_h: float | None = None  # wall time at which the job ends, done or not
    check: Capture | None = None  # for silent errors

    def simulated_job(self, policy: Policy) -> SimulatedJob:
        """The job under a policy."""
        if self.check is not None:
            policy = checked(policy, self.cluster, self.check)
            require_legal(policy, self.cluster, self.scopes)
        clock = self.failures.clock
        return SimulatedJob(self.useful_h, self.cluster, clock, self.scopes, policy, self.horizon_h)

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
        section, state = scenario.storage, scenario.cluster
        storage = section.record(state.shard_bytes, state.uneven_bytes) if section else None
        costs = scenario.costs.record(storage, state.links_h)
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
        scenario=scenario,
    )
    if not with_policies:
        return experiment
    return replace(experiment, policies=tuple(policies_of(loaded, experiment)))


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
def _blaming(loaded: LoadedScenario, key: str) -> Iterator[None]:
    """Say where in the scenario stands what a model refuses."""
    try:
        yield
    except ParameterError as error:
        raise ScenarioError.at(loaded.place(key), str(error), key=key) from error


# ----------------------------------------------------------------------------- recovery


def policies_of(loaded: LoadedScenario, experiment: Experiment) -> list[Policy]:
    """What each entry of `recovery` does. Raises ScenarioError with all entries that can't."""
    facts = facts_of(experiment)
    policies: list[Policy] = []
    problems: list[Problem] = []
    for number, entry in enumerate(loaded.scenario.recovery):
        try:
            policies.append(policy_of(entry, experiment, facts))
        except ParameterError as error:
            key, is_written = f"recovery.{number}", entry.strategy == written.WRITTEN.name
            if is_written and isinstance(error, PolicyError) and error.at:
                key = ".".join((key, "options", *map(str, error.at)))
            problems += ScenarioError.at(loaded.place(key), str(error), key=key).problems
    if problems:
        raise ScenarioError(problems)
    return policies


SELECTED = "selected"  # how an interval came about


def policy_of(
    entry: RecoverySection,
    experiment: Experiment,
    facts: JobFacts | None = None,
    interval_h: float | None = None,
) -> Policy:
    """What an entry of `recovery` does in a job: as it says, or at another interval if it has one.

    Parameters
    ----------
    facts : `facts_of` the experiment, where they are known already

    Raises
    ------
    ParameterError : it can't serve this job
    """
    own, system = entry.costs_from(experiment.costs), SYSTEMS[entry.strategy]
    facts = facts or facts_of(experiment)
    if entry.costs is not None:
        facts = _at_costs(facts, own, experiment)
    if system.interval is None:
        interval_h = None
    options = _options(entry, system, experiment, interval_h)
    policy = system.plan(facts, options, entry.name).with_storage(own.reliability)
    require_legal(policy, experiment.cluster, facts.scopes)
    if entry.costs is not None and entry.costs.detect is not None:
        policy = noticed_after(policy, own.detect)
    if not policy.is_strategy:
        every_h = [one.every_h for one in policy.captures if one.every_h is not None]
        policy = replace(
            policy,
            interval_h=min(every_h, default=inf),
            interval_rule=entry.strategy,
            loses_as=entry.strategy if system.not_counted else None,
        )
    if interval_h is None:
        return policy
    return replace(policy, interval_h=interval_h, interval_rule=SELECTED)


def _options(
    entry: RecoverySection, system: System, experiment: Experiment, interval_h: float | None
) -> Any:
    """What an entry says, as its system takes it, or the same at another interval."""
    if entry.strategy not in STRATEGIES:
        options = options_of(entry.strategy, entry.options)
        if interval_h is None:
            return options
        # never, as an option says it: an interval as long as the job is no save
        return replace(options, **{str(system.interval): min(interval_h, experiment.useful_h)})
    sub_saves, curve = entry.priority_saving, experiment.curve
    if sub_saves is not None and curve is not None:
        sub_saves = curve.with_bytes(sub_saves)
    given = {"interval": entry.rule, "target_pls": entry.target_pls, "sub_saves": sub_saves}
    if interval_h is not None:
        given |= {"interval": interval_h, "target_pls": None}
    return system.options(**{key: value for key, value in given.items() if system.takes(key)})


def facts_of(experiment: Experiment) -> JobFacts:
    """What is known of a job before it runs, at the costs of the section."""
    scenario, cluster, useful_h = experiment.scenario, experiment.cluster, experiment.useful_h
    section, expected = scenario.cluster, experiment.failures.expected(cluster, useful_h)
    n_nodes = section.n_nodes_of[section.state_role]
    return JobFacts(
        useful_h=useful_h,
        cluster=cluster,
        role=section.state_role,
        scopes=experiment.scopes,
        mtbf_h=expected.mtbf_h,
        costs=experiment.costs,
        step_h=scenario.job.step_h,
        state_bytes=section.largest_bytes,
        whole_bytes=None if section.shard_bytes is None else n_nodes * section.shard_bytes,
        links=section.links,
        node_bytes_per_h=section.link_bytes_per_h,
        shares=experiment.expected_shares,
        replicas=section.replicas,
        is_emb_ps=section.state_role == EMB_PS,
        mtbf_shard_h=expected.mtbf_shard_h,
        n_shards_together=expected.n_shards_together,
        beside_fraction=_beside_fraction(experiment, expected.mtbf_h),
    )


def _at_costs(facts: JobFacts, own: Costs, experiment: Experiment) -> JobFacts:
    """The same job at the costs of one entry."""
    scenario, scopes = experiment.scenario, facts.scopes
    if not scenario.scopes:  # then the entry may have a detection of its own
        scopes = (replace(scopes[0], detect=own.detect), *scopes[1:])
    return replace(facts, scopes=scopes, costs=own)


def _beside_fraction(experiment: Experiment, mtbf_h: float) -> float:
    """Share of all hours of detection and rescheduling that the others work on, on average.

    A failure of a role that nobody waits for costs what its nodes would have done meanwhile: one
    of n trainers 1/n, a sync server nothing.
    """
    cluster, saved = experiment.cluster, 0.0
    for role in (role for role in cluster.roles if role.others_go_on):
        holds = {role.name: Holds.SHARD}  # so that what is known of shards is asked of this role
        roles = (replace(one, holds=holds.get(one.name, Holds.NOTHING)) for one in cluster.roles)
        at_role = replace(cluster, roles=tuple(roles))
        struck = experiment.failures.expected(at_role, experiment.useful_h)
        missing = struck.n_shards_together / role.n_nodes if role.holds is Holds.REPLICA else 0.0
        saved += mtbf_h / struck.mtbf_shard_h * (1.0 - missing)
    return saved
