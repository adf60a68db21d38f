"""A scenario: its sections, checks between sections, and output as YAML text or JSON Schema.

Keys are as users write them; attributes are named with the internal unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from cprsim.job.policy import STOP
from cprsim.job.records import STOPPED_BEYOND, Clock, OverLink
from cprsim.logs.spec import LogSpec
from cprsim.recovery.paper import STRATEGIES
from cprsim.scenario.cluster import ClusterSection, CostsSection, StorageSection
from cprsim.scenario.failures import (
    ANY,
    MAX_FAILURES,
    SILENT,
    SYNC_PS,
    CorrelatedFailures,
    Failures,
    InjectedFailures,
    JobFailures,
    NodeFailures,
    PlannedSection,
    Scopes,
    SilentSection,
    TraceFailures,
    too_many,
)
from cprsim.scenario.job import Fleet, Job, Simulation, Sweep
from cprsim.scenario.kernel import Accuracy, Kernel, Sync
from cprsim.scenario.prices import Prices
from cprsim.scenario.quantities import Model
from cprsim.scenario.recovery import RecoveryEntry, RecoverySection
from cprsim.scenario.yaml_text import Mark, dump_plain

SCENARIO_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"


class Unknown(Model):
    """An input that is not known exactly: the range of its values."""

    low: str | int | float = Field(description="The least, as the scenario would say it.")
    high: str | int | float = Field(description="The most, as the scenario would say it.")


class Scenario(Model):
    """A training job, its failures, and the recovery strategies to compare on it."""

    name: str = Field(
        strict=True,
        pattern=SCENARIO_NAME,
        description="Name of the scenario: letters, digits, `.`, `_` and `-`; default the file's.",
    )
    job: Job = Field(description="The useful work of the job.")
    cluster: ClusterSection = Field(description="The nodes of the job.")
    failures: Failures = Field(description="Where failures come from; `kind` says how.")
    scopes: Scopes = ()
    silent: SilentSection | None = Field(
        None, description="Silent errors, which corrupt the state and are noticed later."
    )
    planned: PlannedSection | None = Field(
        None, description="Stops by plan, on which the job saves and stands; absent: none."
    )
    storage: StorageSection | None = Field(
        None, description="Where checkpoints go; needed where a cost is `transfer`."
    )
    costs: CostsSection = Field(
        description="Costs of a save, a load, detection and rescheduling: a time, a "
        "distribution or, for save and load, `transfer`."
    )
    recovery: tuple[RecoveryEntry, ...] = Field(
        min_length=1, max_length=50, description="The strategies to compare on the same failures."
    )
    kernel: Kernel | None = Field(
        None,
        description="What `cprsim train` trains as a stand-in for the model, to see its accuracy.",
    )
    sync: Sync | None = Field(
        None,
        description="How the trainers stay in step, for `cprsim sync`; absent: not modelled.",
    )
    accuracy: Accuracy | None = Field(
        None, description="Which staleness curve prices lost samples, and what may be lost."
    )
    simulation: Simulation = Field(
        default_factory=Simulation,
        description="Replications and seed.",
    )
    fleet: Fleet | None = Field(
        None,
        description="Many such jobs on one cluster, for `cprsim fleet`; every other command leaves "
        "it aside.",
    )
    prices: Prices | None = Field(None, description="Prices of resources, in one currency.")
    unknown: dict[str, Unknown] | None = Field(
        None,
        max_length=20,
        description="Inputs that are not known exactly, by key: {low, high}. `fleet`, `select` and "
        "`systems` say which of them would change the decision.",
        examples=[{"failures.mtbf": {"low": "14 h", "high": "30 h"}}],
    )
    marks: dict[str, Mark] | None = Field(
        None,
        max_length=200,
        description="Keys whose value is assumed, or recalled and not checked. Comments that begin "
        "so behind a value, or behind the section around it, are read into here.",
        examples=[{"costs.detect": "assumed"}],
    )
    sweep: Sweep | None = Field(
        None, description="What `cprsim sweep` varies; every other command leaves it aside."
    )

    @property
    def n_nodes_of(self) -> dict[str, int]:
        """Nodes of each role, sync servers included, and of `any`."""
        n_servers = 0 if self.sync is None else self.sync.servers or 0
        n_nodes = self.cluster.n_nodes_of
        return {**n_nodes, SYNC_PS: n_servers, ANY: n_nodes[ANY] + n_servers}

    def problems(self) -> Iterator[tuple[str, str]]:
        for rule in CHECKS:
            yield from rule(self)


def dump_scenario(scenario: Scenario) -> str:
    """The resolved scenario as YAML: every key with its value, defaults spelled out, with units."""
    plain = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dump_plain(plain)


def dump_entry(entry: RecoverySection, **changed: Any) -> str:
    """An entry of `recovery` with some keys changed, or left out (None), as one line of YAML."""
    plain = entry.model_dump(mode="json", by_alias=True, exclude_defaults=True) | changed
    if entry.name == entry.strategy:
        plain.pop("name", None)
    given = {key: value for key, value in plain.items() if value not in (None, {})}
    return dump_plain(given, on_one_line=True).strip()


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario: meaning and unit of every key."""
    schema = Scenario.model_json_schema(mode="validation")
    schema["required"] = [key for key in schema["required"] if key != "name"]  # by the file's name
    for section in schema["$defs"].values():  # of a record's docstring the first paragraph
        section["description"] = " ".join(section["description"].partition("\n\n")[0].split())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


MAX_SAVES = 1_000_000
NEEDS_SERVERS = tuple(name for name in STRATEGIES if name not in ("none", "full"))

Found = Iterator[tuple[str, str]]


def _of_failures(scenario: Scenario) -> Found:
    for below, message in _of_source(scenario, scenario.failures):
        yield f"failures.{below}", message
    for i, scope in enumerate(scenario.scopes):
        for below, message in _of_source(scenario, scope.failures) if scope.failures else ():
            yield f"scopes.{i}.failures.{below}", message


def _of_source(scenario: Scenario, failures: Failures) -> Found:
    """Keys are those of the section of failures."""
    n_job, useful_h = scenario.n_nodes_of[ANY], scenario.job.useful_h
    match failures:
        case NodeFailures():
            for role, lifetime in failures.roles.items():
                yield from _role_exists(scenario, role, f"roles.{role}")
                expected = scenario.n_nodes_of.get(role, 0) * useful_h / lifetime.mtbf_h
                yield from _not_too_many(expected, f"roles.{role}.{lifetime.mtbf_key}")
            if ANY in failures.roles:
                yield f"roles.{ANY}", "name each role: every node has its own clock"
        case TraceFailures(spec=LogSpec(n_nodes=int(n_watched))) if n_job > n_watched:
            message = f"the trace has {n_watched} nodes, the job {n_job}: each slot of the job "
            yield "nodes", message + "needs a node of the trace"
        case CorrelatedFailures(shocks=shocks) if shocks is not None and n_job > shocks.nodes:
            message = f"shocks were seen in a cluster of {shocks.nodes} nodes, the job has {n_job}"
            yield "shocks.nodes", f"{message}: how many of them would be struck is not known"
        case JobFailures():
            yield from _struck_nodes_exist(scenario, failures)
            if failures.nodes not in (None, n_job):
                message = f"this is the rate at {failures.nodes} nodes, the job has {n_job}: let "
                message += f"`cprsim fit` write it with --job-nodes {n_job}, or multiply all times "
                message += f"by {failures.nodes}/{n_job} (nodes that fail alike and independently)"
                yield "nodes", message
            yield from _not_too_many(useful_h / failures.mtbf_h, failures.mtbf_key)
        case InjectedFailures():
            yield from _struck_nodes_exist(scenario, failures)
            yield from _instants_are_reached(failures, useful_h)


def _struck_nodes_exist(scenario: Scenario, failures: JobFailures | InjectedFailures) -> Found:
    role, together = failures.role, failures.together or 0
    n_nodes = scenario.n_nodes_of.get(role, 0)
    yield from _role_exists(scenario, role, "role")
    if 0 < n_nodes < together:
        message = f"{together} nodes of role `{role}` cannot fail together: the cluster has"
        yield "together", f"{message} {n_nodes}"
    servers_of = failures.named_servers if isinstance(failures, InjectedFailures) else {}
    for key, servers in servers_of.items():
        for server in servers:
            if 0 < n_nodes <= server:
                message = f"there is no node {server} of role `{role}`: they are numbered 0 to"
                yield key, f"{message} {n_nodes - 1}"


def _role_exists(scenario: Scenario, role: str, key: str) -> Found:
    if not scenario.n_nodes_of.get(role):
        roles = ", ".join(name for name, n in scenario.n_nodes_of.items() if n)
        yield key, f"the cluster has no node of role `{role}`; it has: {roles}"


def _instants_are_reached(failures: InjectedFailures, useful_h: float) -> Found:
    last_h, end = useful_h, f"the job of {useful_h:g} h"
    if failures.clock is not Clock.PROGRESS:
        last_h *= STOPPED_BEYOND
        end = f"{STOPPED_BEYOND:g} times {end}, at which it is given up"
    for i, at_h in enumerate(failures.at_h or ()):
        if at_h >= last_h:
            yield f"at.{i}", f"{at_h:g} h lies beyond {end}"


def _not_too_many(expected: float, key: str) -> Found:
    if expected > MAX_FAILURES:
        yield key, too_many(expected)


def _of_cluster(scenario: Scenario) -> Found:
    cluster, is_trace = scenario.cluster, isinstance(scenario.failures, TraceFailures)
    if cluster.spares is not None and cluster.repair is None and not is_trace:
        message = "is missing: with `cluster.spares`, say when a failed node comes back"
        yield "cluster.repair", f"{message}, for example 6 h"
    if cluster.repair is not None and is_trace:
        yield "cluster.repair", "a trace brings its own repair times: leave it out"
    if cluster.rack is None and any(scope.reach == "rack" for scope in scenario.scopes):
        yield "cluster.rack", "is missing: how many neighbouring nodes share a rack"


def _of_costs(scenario: Scenario) -> Found:
    """Check that costs by size have a size, and a link or a storage for the transfer."""
    cluster = scenario.cluster
    of_entries = {f"recovery.{i}.costs": entry.costs for i, entry in enumerate(scenario.recovery)}
    cost_at: dict[str, object] = {}
    for key, costs in {"costs": scenario.costs, **of_entries}.items():
        if costs is not None:
            cost_at[f"{key}.load"] = costs.load
            cost_at[f"{key}.save"] = costs.save and costs.save.stall
            cost_at[f"{key}.save.background"] = costs.save and costs.save.background
    for key, cost in cost_at.items():
        if isinstance(cost, str):
            if scenario.storage is None:
                yield key, "`transfer` needs `storage: {bandwidth: ...}`"
            if cluster.shard_bytes is None:
                needs = "`cluster.shard_size`, `cluster.shards` or `cluster.tables`"
                yield key, f"`transfer` needs {needs}"
        if isinstance(cost, OverLink):
            if cost.link not in cluster.links:
                links = ", ".join(cluster.links) or "none"
                yield key, f"there is no link `{cost.link}` in `cluster.links`; it has: {links}"
            if cluster.shard_bytes is None:
                yield key, "a link needs a size to transfer: give the state of a node in `cluster`"


def _of_recovery(scenario: Scenario) -> Found:
    useful_h = scenario.job.useful_h
    names = [entry.name for entry in scenario.recovery]
    for i, entry in enumerate(scenario.recovery):
        key = f"recovery.{i}"
        if (first := names.index(entry.name)) < i:
            message = f"entry {first + 1} is called `{entry.name}` too: give this one another "
            yield key, f"{message}name, for example `name: {entry.name}-2`"
        if not scenario.cluster.emb_ps and entry.strategy in NEEDS_SERVERS:
            message = f"`{entry.strategy}` reloads embedding servers one by one; workers go back "
            yield f"{key}.strategy", f"{message}together: take `full` or a recovery system"
        if isinstance(entry.interval, float) and useful_h / entry.interval > MAX_SAVES:
            message = f"makes {useful_h / entry.interval:.3g} saves in {useful_h:g} h; at most"
            yield f"{key}.interval", f"{message} {MAX_SAVES} make sense"
        if entry.costs is not None and scenario.sync is not None:
            yield f"{key}.costs", "does not go with `sync`: change the section `costs`"
        if entry.costs is not None and entry.costs.detect is not None and scenario.scopes:
            message = "does not go with `scopes`: each scope has its own `detect`"
            yield f"{key}.costs.detect", message


def _of_sync(scenario: Scenario) -> Found:
    if scenario.sync is None:
        return
    n_trainers, stragglers = scenario.cluster.trainers, scenario.sync.stragglers
    if not n_trainers:
        yield "cluster.trainers", "is missing: `sync` says how trainers stay in step"
    elif SYNC_PS in scenario.cluster.others:
        yield f"cluster.others.{SYNC_PS}", "is the role of `sync.servers`; choose another name"
    elif stragglers is not None and stragglers.n_trainers > n_trainers:
        message = f"{stragglers.n_trainers} of {n_trainers} trainers cannot be slow"
        yield "sync.stragglers.trainers", message
    if scenario.scopes:
        yield "scopes", "do not go with `sync`: there every failure kills a node"


def _of_scopes(scenario: Scenario) -> Found:
    scopes, clock = scenario.scopes, scenario.failures.clock
    shares = [scope.share for scope in scopes if scope.share is not None]
    if scopes and not shares:
        message = "each has its own `failures`: at least one needs a `share` of the section"
        yield "scopes", f"{message} `failures`"
    elif scopes and abs(sum(shares) - 1.0) > 1e-6:
        yield "scopes", f"the shares add up to {sum(shares):g}; they must add up to 1"
    names = [scope.name for scope in scopes]
    for i, scope in enumerate(scopes):
        if scope.failures is not None and (own_clock := scope.failures.clock) != clock:
            message = f"is `{own_clock}`: failures of one job age on one clock, and `failures` has"
            yield f"scopes.{i}.failures.clock", f"{message} `{clock}`"
        if scope.name in names[:i]:
            yield f"scopes.{i}.name", f"`{scope.name}` is there already"
        if scope.name == STOP and scenario.planned is not None:
            yield f"scopes.{i}.name", f"`{STOP}` is what stops of the section `planned` are called"


def _of_silent(scenario: Scenario) -> Found:
    if scenario.silent is None:
        return
    yield from _not_too_many(scenario.job.useful_h / scenario.silent.mtbf_h, "silent.mtbf")
    words = {"sync": "`sync`", "fleet": "`fleet` (section or command)", "kernel": "`kernel`"}
    for key, other in words.items():
        if getattr(scenario, key) is not None:
            yield "silent", f"does not go with {other}, which knows no silent errors: leave one out"
    for i, scope in enumerate(scenario.scopes):
        if scope.name == SILENT:
            message = f"`{SILENT}` is what errors of the section `silent` are called"
            yield f"scopes.{i}.name", message


CHECKS = _of_failures, _of_cluster, _of_costs, _of_recovery, _of_sync, _of_scopes, _of_silent
