"""Turn a scenario as the user writes it into the records that are simulated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cprsim import failures as sources
from cprsim.errors import ParameterError, PolicyError, Problem, ScenarioError
from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.frailty import Frailty, Shocks
from cprsim.failures.sources import FailureSource
from cprsim.files.units import SIZE
from cprsim.job.distributions import Constant, Exponential, Weibull
from cprsim.job.legal import require_legal
from cprsim.job.policy import CHECK, NO_CONTENT, STOP, Policy, Reach, SaveSchedule, Scope, checked
from cprsim.job.records import (
    Clock,
    Cluster,
    Costs,
    Duration,
    Holds,
    Role,
    Storage,
)
from cprsim.logs.formats import read_log
from cprsim.recovery.building_blocks import with_restarts, with_stops
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.system import JobProfile, System, noticed_after
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.cluster import given_costs
from cprsim.scenario.curves import chosen_curve
from cprsim.scenario.failures import (
    ANY,
    EMB_PS,
    MAX_FAILURES,
    SILENT,
    SYNC_PS,
    TRAINER,
    CorrelatedFailures,
    Failures,
    InjectedFailures,
    JobFailures,
    NodeFailures,
    ScopeSection,
    TraceFailures,
    too_many,
)
from cprsim.scenario.job import Simulation
from cprsim.scenario.quantities import duration_of
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.recovery import RecoverySection, options_of
from cprsim.scenario.reverts import expected_reverts, struck_in_waits
from cprsim.scenario.schema import Scenario
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.strikes import ScopeShares

if TYPE_CHECKING:
    from cprsim.accuracy.curve import StalenessCurve


@dataclass(frozen=True)
class Experiment:
    """A scenario as the records that a simulation needs."""

    cluster: Cluster
    costs: Costs
    failures: FailureSource
    policies: tuple[Policy, ...]
    scopes: tuple[Scope, ...]  # what failures kill
    shares: ScopeShares  # of the failures
    scenario: Scenario  # the useful work, and what else recovery systems ask of a job
    simulation: Simulation  # replications and seed
    curve: StalenessCurve | None = None  # prices lost samples; None: none applies

    @property
    def useful_h(self) -> float:
        return self.scenario.job.useful_h

    @property
    def check(self) -> SaveSchedule | None:
        silent = self.scenario.silent
        if silent is None or silent.check is None:
            return None
        takes = Constant(silent.check.takes_h)
        return SaveSchedule(CHECK, silent.check.every_h, stall=takes, parts=NO_CONTENT)

    def simulated(self, **how: Any) -> Experiment:
        """A copy with another seed or number of replications, in place of a precision."""
        if "replications" in how:
            how = {"precision_fraction": None, "at_most": None, **how}
        return replace(self, simulation=self.simulation.model_copy(update=how))

    def simulated_job(self, policy: Policy) -> SimulatedJob:
        clock, job, scopes = self.failures.clock, self.scenario.job, self.scopes
        if self.check is not None:
            policy = checked(policy, self.cluster, self.check)
        if (stops := self.scenario.planned) is not None:
            still, of = Constant(0.0), self.facts
            save = SaveSchedule(
                "", job.useful_h, stall=of.save_stall, background=of.save_background
            )
            policy = with_stops(policy, duration_of(stops.length), save)
            stop = Scope(STOP, Reach.ALL, still, False, every_h=stops.every_h, saves=stops.saves)
            scopes = (*scopes, stop)
        if self.check is not None or stops is not None:
            require_legal(policy, self.cluster, scopes)
        return SimulatedJob(job.useful_h, self.cluster, clock, scopes, policy, job.horizon_h)

    @cached_property
    def facts(self) -> JobProfile:
        """Profile of the job before it runs, at the costs of the section `costs`."""
        cluster, section = self.cluster, self.scenario.cluster
        expected = self.failures.expected(cluster, self.useful_h)
        reverted = expected_reverts(self.failures, self.scopes, self.shares, cluster, self.useful_h)
        n_nodes, node_bytes = section.n_nodes_of[section.state_role], section.shard_bytes
        struck, clock = 0.0, self.failures.clock
        if clock is Clock.WALL and reverted.n_shards_together:
            struck = struck_in_waits(
                self.failures, self.scopes, self.shares, cluster, self.useful_h
            )
        return JobProfile(
            useful_h=self.useful_h,
            cluster=cluster,
            role=section.state_role,
            scopes=self.scopes,
            mtbf_h=expected.mtbf_h,
            costs=self.costs,
            step_h=self.scenario.job.step_h,
            state_bytes=section.largest_bytes,
            whole_bytes=None if node_bytes is None else n_nodes * node_bytes,
            links=section.links,
            node_bytes_per_h=section.link_bytes_per_h,
            shares=self.expected_shares,
            replicas=section.replicas,
            is_emb_ps=section.state_role == EMB_PS,
            mtbf_shard_h=reverted.mtbf_shard_h,
            n_shards_together=reverted.n_shards_together,
            overlapped_fraction=_overlapped_fraction(self, expected.mtbf_h),
            waiting_fraction=struck,
            clock=clock,
        )

    def at_costs_of(self, entry: RecoverySection) -> Experiment:
        """The same job at the costs of an entry of `recovery`."""
        if entry.costs is None:
            return self
        storage, scopes = self.costs.storage, self.scopes
        costs = replace(self.costs, **given_costs(entry.costs, self.scenario.cluster, storage))
        if entry.costs.detect is not None:  # then no scope has a detection of its own
            scopes = (replace(scopes[0], detect=costs.detect), *scopes[1:])
        return replace(self, costs=costs, scopes=scopes)

    @property
    def expected_shares(self) -> tuple[float, ...]:
        """Mean share of each scope among the failures over the useful hours."""
        shares, failures = self.shares, self.failures
        # one source: of all scopes, or in place of several, by draws or a longer MTBF
        if not shares.of_source or not isinstance(failures, sources.SeveralSources):
            return shares.shares
        rate, *source_rates = failures.rates_per_h(self.cluster, self.useful_h)
        rates = [share * rate for share in shares.shares]
        for scope, source_rate in zip(shares.of_source, source_rates, strict=True):
            rates[scope] = source_rate
        return tuple(rate / sum(rates) for rate in rates) if any(rates) else shares.shares

    @property
    def log_notes(self) -> tuple[str, ...]:
        """Notes on a replayed log: its part in use, and the data left out, closed or assumed."""
        failures: Any = self.failures
        first = failures.sources[0][1] if hasattr(failures, "sources") else failures
        return getattr(first, "notes", ())


def assemble(loaded: LoadedScenario, *, with_policies: bool = True) -> Experiment:
    """Turn a scenario into records.

    Raises ScenarioError for inconsistent sections that only building the records reveals;
    TraceError where the failure trace can't be read; CurveError where the staleness curve can't be
    read.
    """
    scenario = loaded.scenario
    cluster = _cluster(scenario)
    storage = _storage(scenario)
    costs = Costs(**given_costs(scenario.costs, scenario.cluster, storage), storage=storage)
    try:
        failures, scopes, shares = _failures(loaded, cluster, costs.detect)
        failures.expected(cluster, scenario.job.useful_h)  # what makes no sense is said here
    except ParameterError as error:
        raise loaded.error("failures", str(error)) from error
    experiment = Experiment(
        cluster=cluster,
        costs=costs,
        failures=failures,
        policies=(),
        scopes=scopes,
        shares=shares,
        scenario=scenario,
        simulation=scenario.simulation,
        curve=chosen_curve(loaded),
    )
    if not with_policies:
        return experiment
    return replace(experiment, policies=tuple(policies_of(loaded, experiment)))


def _cluster(scenario: Scenario) -> Cluster:
    """The nodes of the job, those who keep the trainers in step included."""
    section, sync = scenario.cluster, scenario.sync
    roles = [Role(name, n, Holds.SHARD) for name, n in section.n_nodes_of_stateful.items()]
    if section.trainers:
        go_on = sync is not None and not sync.algorithm.holds_all_up
        roles.append(Role(TRAINER, section.trainers, Holds.REPLICA, go_on))
    roles += [Role(name, n, Holds.NOTHING) for name, n in section.others.items()]
    if sync is not None and sync.servers:
        idle = not sync.algorithm.has_servers
        holds = Holds.NOTHING if idle else Holds.CENTRAL
        roles.append(Role(SYNC_PS, sync.servers, holds, idle or sync.algorithm.in_background))
    repair = None if section.repair is None else duration_of(section.repair)
    return Cluster(tuple(roles), section.spares, repair, section.accesses)


def _storage(scenario: Scenario) -> Storage | None:
    section, cluster = scenario.storage, scenario.cluster
    if section is None:
        return None
    per_server, shard_bytes = section.per_server_bytes_per_h or inf, cluster.shard_bytes or 0.0
    of_nodes = tuple(size for n, size in cluster.nodes_and_bytes for _ in range(n))
    uneven = of_nodes if len(set(of_nodes)) > 1 else ()
    return Storage(section.bandwidth_bytes_per_h, per_server, shard_bytes, uneven)


def _failures(
    loaded: LoadedScenario, cluster: Cluster, detect: Duration
) -> tuple[FailureSource, tuple[Scope, ...], ScopeShares]:
    """Build the source of failures, the scopes of failures, and the share of each scope."""
    scenario, silent = loaded.scenario, loaded.scenario.silent
    useful_h = scenario.job.useful_h
    of_job = source_of(scenario.failures, cluster, useful_h, loaded.trace_path, loaded.nodes_path)
    of_scope: dict[str, FailureSource] = {
        section.name: source_of(section.failures, cluster, useful_h, None)
        for section in scenario.scopes
        if section.failures
    }
    scopes = [_scope(section, detect) for section in scenario.scopes]
    shares = [section.share or 0.0 for section in scenario.scopes]
    if not scopes:  # every failure kills a node
        scopes, shares = [Scope("node", Reach.NODE, detect)], [1.0]
    if silent is not None:  # when an error is noticed, all processes start again on their nodes
        latency = None if silent.latency is None else duration_of(silent.latency)
        errors = Scope(SILENT, Reach.PROCESS, Constant(0.0), False, silent=True, latency=latency)
        scopes, shares = [*scopes, errors], [*shares, 0.0]
        strikes = Exponential(silent.mtbf_h)
        of_scope[SILENT] = JobClock(strikes, range(cluster.n_nodes), clock=of_job.clock)
    of_source = tuple(i for i, scope in enumerate(scopes) if scope.name in of_scope)
    if of_scope:
        of_job = sources.SeveralSources((("", of_job), *of_scope.items()))
    reaches, rack = tuple(scope.reach for scope in scopes), scenario.cluster.rack
    return (
        of_job,
        tuple(scopes),
        ScopeShares(tuple(shares), reaches, cluster.n_nodes, rack, of_source),
    )


def _scope(section: ScopeSection, detect: Duration) -> Scope:
    """A scope of failures; `detect` is the value of the section `costs`."""
    reach = Reach[section.reach.upper()]
    replaces = reach >= Reach.NODE if section.needs_node is None else section.needs_node
    noticed = detect if section.detect is None else duration_of(section.detect)
    return Scope(section.name, reach, noticed, replaces, section.notice_h)


# ----------------------------------------------------------------------------- recovery


def policies_of(loaded: LoadedScenario, experiment: Experiment) -> list[Policy]:
    """The policy of each entry of `recovery`. Raises ScenarioError with all invalid entries."""
    policies: list[Policy] = []
    problems: list[Problem] = []
    for number, entry in enumerate(loaded.scenario.recovery):
        try:
            policies.append(policy_of(entry, experiment))
        except ParameterError as error:
            key, options = f"recovery.{number}", SYSTEMS[entry.strategy].options
            if isinstance(error, PolicyError) and error.at and error.at[0] in options:
                key = ".".join((key, "options", *map(str, error.at)))
            problems += loaded.error(key, str(error)).problems
    if problems:
        raise ScenarioError(problems)
    return policies


SELECTED = "selected"  # how an interval came about


def policy_of(
    entry: RecoverySection, experiment: Experiment, interval_h: float | None = None
) -> Policy:
    """The policy of an entry of `recovery`, at its own interval or at another, if it has one.

    Raises ParameterError where it can't serve this job.
    """
    at_own_costs, system = experiment.at_costs_of(entry), SYSTEMS[entry.strategy]
    facts = replace(experiment.facts, costs=at_own_costs.costs, scopes=at_own_costs.scopes)
    if system.interval is None:
        interval_h = None
    options = _options(entry, system, experiment, interval_h)
    policy = system.plan(facts, options, entry.name).with_storage(facts.costs.reliability)
    policy = with_restarts(policy, facts.costs)
    require_legal(policy, experiment.cluster, facts.scopes)
    needed, most = memory_of_copies(policy, experiment), experiment.scenario.cluster.memory_bytes
    if needed is not None and most is not None and needed > most:
        raise ParameterError(
            f"its copies take {SIZE.format(needed)} of a node's memory, more than "
            f"`cluster.memory`, {SIZE.format(most)}"
        )
    if entry.costs is not None and entry.costs.detect is not None:
        policy = noticed_after(policy, at_own_costs.costs.detect)
    if not policy.from_cpr_paper:
        every_h = [capture.every_h for capture in policy.captures if capture.every_h is not None]
        policy = replace(
            policy,
            interval_h=min(every_h, default=inf),
            interval_rule=entry.strategy,
            accuracy_model=entry.strategy if system.not_counted else None,
        )
    if interval_h is None:
        return policy
    return replace(policy, interval_h=interval_h, interval_rule=SELECTED)


def memory_of_copies(policy: Policy, experiment: Experiment) -> float | None:
    """Memory that copies take on the node that holds most; None: its state is not known [B]."""
    largest_bytes = experiment.scenario.cluster.largest_bytes
    return None if largest_bytes is None else policy.tax.memory * largest_bytes


def _options(
    entry: RecoverySection, system: System, experiment: Experiment, interval_h: float | None
) -> dict[str, Any]:
    """Options of an entry in the form that its system takes, optionally at another interval."""
    if entry.strategy not in STRATEGIES:
        options = options_of(entry.strategy, entry.options)
        if interval_h is None:
            return options
        # never, as an option says it: an interval as long as the job is no save
        return options | {str(system.interval): min(interval_h, experiment.useful_h)}
    sub_saves, curve = entry.priority_saving, experiment.curve
    if sub_saves is not None and curve is not None:
        sub_saves = curve.with_bytes(sub_saves)
    given = {"interval": entry.rule, "target_pls": entry.target_pls, "sub_saves": sub_saves}
    if interval_h is not None:
        given |= {"interval": interval_h, "target_pls": None}
    return {key: value for key, value in given.items() if key in system.options}


def _overlapped_fraction(experiment: Experiment, mtbf_h: float) -> float:
    """Mean fraction of detection and rescheduling time in which the other nodes keep working.

    A failure of a role for which the job does not wait only loses the work of its nodes: 1/n for
    one of n trainers, nothing for a sync server.
    """
    cluster, saved = experiment.cluster, 0.0
    for role in (role for role in cluster.roles if role.others_go_on):
        slots = cluster.slots(role.name)
        struck = experiment.failures.expected(cluster, experiment.useful_h, slots)
        missing = struck.n_shards_together / role.n_nodes if role.holds is Holds.REPLICA else 0.0
        saved += mtbf_h / struck.mtbf_shard_h * (1.0 - missing)
    return saved


FEWEST_OUTAGES = 2  # that can be replayed


def source_of(
    section: Failures,
    cluster: Cluster,
    useful_h: float,
    trace: Path | None,
    nodes: Path | None = None,
) -> FailureSource:
    """The failures of a section in a job; `trace` is the file of one that is replayed.

    Raises ParameterError where they are too many, or too few to replay; TraceError where the file
    can't be read.
    """
    clock, repair = section.clock, cluster.repair
    match section:
        case JobFailures(role=role, together=together, start=start):
            slots = _slots(cluster, role)
            return JobClock(section.distribution, slots, together, clock, start, repair)
        case NodeFailures(start=start):
            lifetimes = {role: lifetime.distribution for role, lifetime in section.roles.items()}
            return NodeClocks(lifetimes, clock, start, repair)
        case CorrelatedFailures():
            return _correlated(section, cluster, useful_h)
        case InjectedFailures():
            return _injected(section, cluster, useful_h)
    assert trace is not None, "loading sees to it that a trace has a file"
    return replay_of(section, trace, nodes)


def _slots(cluster: Cluster, role: str) -> range:
    return range(cluster.n_nodes) if role == ANY else cluster.slots(role)


def _correlated(section: CorrelatedFailures, cluster: Cluster, useful_h: float) -> FailureSource:
    lemons, watched, shocks = section.lemons, section.shocks, None
    shape = section.frailty.shape if section.frailty else inf
    of_lemons = (lemons.share_fraction, lemons.factor) if lemons else (0.0, 1.0)
    if watched is not None:
        total = sum(watched.sizes.values())
        shares = tuple(weight / total for weight in watched.sizes.values())
        shocks = Shocks(1 / watched.every_h, tuple(watched.sizes), shares, watched.nodes)
    nodes = sources.CorrelatedNodes(
        lifetime=Weibull.from_mean(section.mtbf_h, section.shape),
        frailty=Frailty(*of_lemons, shape),
        shocks=shocks,
        clock=section.clock,
        start=section.start,
        watched_h=section.watched_h,
        repair=cluster.repair,
    )
    # how often nodes that differ fail does not follow from `mtbf` alone
    n_failures = useful_h / nodes.expected(cluster, useful_h).mtbf_h
    if n_failures > MAX_FAILURES:
        raise ParameterError(too_many(n_failures))
    return nodes


def _injected(section: InjectedFailures, cluster: Cluster, useful_h: float) -> sources.Injected:
    slots = _slots(cluster, section.role)
    numbered = [tuple(slots[n] for n in servers) for servers in section.named_servers.values()]
    return sources.Injected(
        useful_h=useful_h,
        slots=numbered[0] if numbered and not section.servers_at else slots,
        together=section.n_together,
        at_h=section.at_h,
        count=section.count or 0,
        repair=cluster.repair,
        clock=section.clock,
        slots_at=tuple(numbered) if section.servers_at else None,
    )


def replay_of(section: TraceFailures, path: Path, nodes: Path | None = None) -> sources.Replay:
    """The outages of a file, and perhaps a table of its nodes. Raises as `source_of` does."""
    try:
        spec = section.spec if nodes is None else replace(section.spec, nodes=nodes)
        outages = read_log(path, spec)
        outages = outages.where(outages.chosen)
    except ParameterError as error:
        raise ParameterError(str(error).replace("--", "")) from None  # keys have no dashes
    if section.begins == "random" and outages.n_outages < FEWEST_OUTAGES:
        raise ParameterError(
            f"the trace has {outages.n_outages} outage: what lies between outages can't be "
            f"told; replay needs {FEWEST_OUTAGES} at least"
        )
    return sources.Replay(outages, from_first=section.begins == "first")
