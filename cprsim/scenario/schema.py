"""A scenario: its sections, what they say together, and back to YAML text and JSON Schema.

Keys are as users write them; attributes carry the unit inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from cprsim.records import STOPPED_BEYOND, Clock, OverLink, SubSaves
from cprsim.recovery.paper import STRATEGIES
from cprsim.scenario.cluster import ClusterSection
from cprsim.scenario.costs import CostsSection, PricesSection, StorageSection, by_bytes
from cprsim.scenario.failures import (
    ANY,
    MAX_FAILURES,
    SYNC_PS,
    CorrelatedFailures,
    Failures,
    InjectedFailures,
    JobFailures,
    NodeFailures,
    TraceFailures,
    too_many,
)
from cprsim.scenario.job import Fleet, Job, Simulation
from cprsim.scenario.kernel import Accuracy, Kernel
from cprsim.scenario.quantities import Model
from cprsim.scenario.recovery import RecoveryEntry, RecoverySection
from cprsim.scenario.scopes import SILENT, Scopes, SilentSection
from cprsim.scenario.sweep import Sweep
from cprsim.scenario.sync import Sync
from cprsim.scenario.unknown import Unknown
from cprsim.scenario.yaml_text import dump_plain

SCENARIO_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
MAX_SAVES = 1_000_000
NEEDS_SERVERS = tuple(name for name in STRATEGIES if name not in ("none", "full"))

Found = Iterator[tuple[str, str]]


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
    storage: StorageSection | None = Field(
        None, description="Where checkpoints go; needed where a cost is `transfer`."
    )
    costs: CostsSection = Field(
        description="What a save, a load, noticing a failure and rescheduling take: a time, a "
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
    prices: PricesSection | None = Field(None, description="What is paid for, in one currency.")
    unknown: dict[str, Unknown] | None = Field(
        None,
        max_length=20,
        description="Inputs that are not known exactly, by key: {low, high}. `fleet`, `select` and "
        "`compare-systems` say which of them would change the decision.",
        examples=[{"failures.mtbf": {"low": "14 h", "high": "30 h"}}],
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

    @property
    def sub_saves_of(self) -> dict[str, SubSaves]:
        """The settings of priority saving that are given, by strategy; the first entry counts."""
        by_strategy: dict[str, SubSaves] = {}
        for entry in self.recovery:
            if entry.sub_saves is not None and entry.priority_saving is not None:
                by_strategy.setdefault(entry.strategy, entry.priority_saving)
        return by_strategy

    def problems(self) -> Iterator[tuple[str, str]]:
        """What sections say together."""
        return scenario_problems(self)


# ---------------------------------------------------------------------------- to text


def dump_scenario(scenario: Scenario) -> str:
    """The resolved scenario as YAML: every key with its value, defaults spelled out, with units."""
    plain = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dump_plain(plain)


def dump_entry(entry: RecoverySection, options: dict[str, Any]) -> str:
    """An entry of `recovery` with other options, as one line of YAML."""
    plain = entry.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"options"})
    if plain["name"] == plain["strategy"]:
        del plain["name"]
    if options:
        plain["options"] = options
    return dump_plain(plain, on_one_line=True).strip()


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario: meaning and unit of every key."""
    schema = Scenario.model_json_schema(mode="validation")
    schema["required"] = [key for key in schema["required"] if key != "name"]  # by the file's name
    schema["$defs"]["RecoverySection"]["required"] = ["strategy"]  # a name by default too
    for section in schema["$defs"].values():  # of a record's docstring the first paragraph
        section["description"] = " ".join(section["description"].partition("\n\n")[0].split())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


# ---------------------------------------------------------------- what sections say together


def scenario_problems(scenario: Scenario) -> Found:
    """Everything that fits in its own section but not with the others."""
    for key, failures in _sources(scenario):
        found = (
            *_struck_nodes_exist(scenario, failures),
            *_failures_are_bounded(scenario, failures),
        )
        yield from ((f"{key}.{below}", message) for below, message in found)
    yield from _spares_and_repair(scenario)
    yield from _transfers_have_bytes_and_bandwidth(scenario)
    yield from _own_costs_fit(scenario)
    yield from _strategies_differ(scenario)
    yield from _saves_are_bounded(scenario)
    yield from _somebody_synchronises(scenario)
    yield from _scopes_are_whole(scenario)
    yield from _silent_errors_fit(scenario)
    yield from _servers_for_partial_recovery(scenario)


def _sources(scenario: Scenario) -> Iterator[tuple[str, Failures]]:
    """Where failures come from, by key: of the job, and of kinds of failures of their own."""
    yield "failures", scenario.failures
    for i, scope in enumerate(scenario.scopes):
        if scope.failures is not None:
            yield f"scopes.{i}.failures", scope.failures


def _scopes_are_whole(scenario: Scenario) -> Found:
    scopes = scenario.scopes
    if not scopes:
        return
    shares = [scope.share for scope in scopes if scope.share is not None]
    total = sum(shares)
    if not shares:
        yield (
            "scopes",
            "each has `failures` of its own: one at least has a `share` of the section `failures`",
        )
    elif abs(total - 1.0) > 1e-6:
        yield "scopes", f"the shares add up to {total:g}; they must add up to 1"
    clock = scenario.failures.clock
    for i, scope in enumerate(scopes):
        if scope.failures is not None and (own := scope.failures.clock) != clock:
            yield (
                f"scopes.{i}.failures.clock",
                f"is `{own}`: failures of one job age on one clock, and `failures` has `{clock}`",
            )
    names = [scope.name for scope in scopes]
    for i, scope in enumerate(scopes):
        if scope.name in names[:i]:
            yield f"scopes.{i}.name", f"`{scope.name}` is there already"
        if scope.reach == "rack" and scenario.cluster.rack is None:
            yield "cluster.rack", "is missing: how many neighbouring nodes share a rack"
    if scenario.sync is not None:
        yield "scopes", "do not go with `sync`: there every failure kills a node"


def _silent_errors_fit(scenario: Scenario) -> Found:
    if scenario.silent is None:
        return
    yield from _not_too_many(scenario.job.useful_h / scenario.silent.mtbf_h, "silent.mtbf")
    for key in ("sync", "fleet", "kernel"):
        if getattr(scenario, key) is not None:
            yield "silent", f"does not go with `{key}`, which knows no silent errors: leave one out"
    for i, scope in enumerate(scenario.scopes):
        if scope.name == SILENT:
            yield (
                f"scopes.{i}.name",
                f"`{SILENT}` is what errors of the section `silent` are called",
            )


def _servers_for_partial_recovery(scenario: Scenario) -> Found:
    if scenario.cluster.emb_ps:
        return
    for i, entry in enumerate(scenario.recovery):
        if entry.strategy in NEEDS_SERVERS:
            yield (
                f"recovery.{i}.strategy",
                f"`{entry.strategy}` reloads embedding servers one by one; workers go back "
                "together: take `full` or a recovery system",
            )


def _somebody_synchronises(scenario: Scenario) -> Found:
    if scenario.sync is None:
        return
    n_trainers, stragglers = scenario.cluster.trainers, scenario.sync.stragglers
    if not n_trainers:
        yield "cluster.trainers", "is missing: `sync` says how trainers stay in step"
    elif SYNC_PS in scenario.cluster.others:
        yield f"cluster.others.{SYNC_PS}", "is the role of `sync.servers`; choose another name"
    elif stragglers is not None and stragglers.n_trainers > n_trainers:
        yield (
            "sync.stragglers.trainers",
            f"{stragglers.n_trainers} of {n_trainers} trainers cannot be slow",
        )


def _struck_nodes_exist(scenario: Scenario, failures: Failures) -> Found:
    """Keys are those of the section of failures, here and in what follows."""
    if isinstance(failures, NodeFailures):
        for role in failures.roles:
            yield from _role_exists(scenario, role, f"roles.{role}")
        if ANY in failures.roles:
            yield f"roles.{ANY}", "name each role: every node has a clock of its own"
    elif isinstance(failures, TraceFailures):
        n_nodes = scenario.n_nodes_of[ANY]
        if failures.nodes is not None and n_nodes > failures.nodes:
            yield (
                "nodes",
                f"the trace has {failures.nodes} nodes, the job {n_nodes}: each slot of the job "
                "needs a node of the trace",
            )
    elif isinstance(failures, CorrelatedFailures):
        yield from _job_fits_into_the_watched_cluster(scenario, failures)
    else:
        yield from _group_fits(scenario, failures)


def _job_fits_into_the_watched_cluster(scenario: Scenario, failures: CorrelatedFailures) -> Found:
    n_nodes, shocks = scenario.n_nodes_of[ANY], failures.shocks
    if shocks is not None and n_nodes > shocks.nodes:
        yield (
            "shocks.nodes",
            f"shocks were seen in a cluster of {shocks.nodes} nodes, the job has {n_nodes}: how "
            "many of them would be struck is not known",
        )


def _role_exists(scenario: Scenario, role: str, key: str) -> Found:
    if not scenario.n_nodes_of.get(role):
        known = ", ".join(name for name, n in scenario.n_nodes_of.items() if n)
        yield key, f"the cluster has no node of role `{role}`; it has: {known}"


def _group_fits(scenario: Scenario, failures: JobFailures | InjectedFailures) -> Found:
    yield from _role_exists(scenario, failures.role, "role")
    n_job, known = scenario.n_nodes_of[ANY], getattr(failures, "nodes", None)
    if known not in (None, n_job):
        yield (
            "nodes",
            f"this is the rate of {known} node(s), the job has {n_job}: let `cprsim fit` write it "
            f"with --job-nodes {n_job}, or multiply all times by {known}/{n_job} (nodes that fail "
            "alike and independently)",
        )
    n_nodes = scenario.n_nodes_of.get(failures.role, 0)
    if not n_nodes:
        return
    if failures.together is not None and failures.together > n_nodes:
        yield (
            "together",
            f"{failures.together} nodes of role `{failures.role}` cannot fail together: the "
            f"cluster has {n_nodes}",
        )
    named = failures.named_servers if isinstance(failures, InjectedFailures) else {}
    for key, servers in named.items():
        for server in servers:
            if server >= n_nodes:
                yield (
                    key,
                    f"there is no node {server} of role `{failures.role}`: they are numbered 0 to "
                    f"{n_nodes - 1}",
                )


def _failures_are_bounded(scenario: Scenario, failures: Failures) -> Found:
    useful_h = scenario.job.useful_h
    if isinstance(failures, InjectedFailures):
        times = 1.0 if failures.clock is Clock.PROGRESS else STOPPED_BEYOND
        which = f"the job of {useful_h:g} h"
        if times > 1.0:
            which = f"{times:g} times {which}, at which it is given up"
        for i, at_h in enumerate(failures.at_h or ()):
            if at_h >= times * useful_h:
                yield f"at.{i}", f"{at_h:g} h lies beyond {which}"
    elif isinstance(failures, JobFailures):
        yield from _not_too_many(useful_h / failures.mtbf_h, failures.mtbf_key)
    elif isinstance(failures, NodeFailures):
        for role, lifetime in failures.roles.items():
            n_nodes = scenario.n_nodes_of.get(role, 0)
            yield from _not_too_many(
                n_nodes * useful_h / lifetime.mtbf_h, f"roles.{role}.{lifetime.mtbf_key}"
            )


def _not_too_many(expected: float, key: str) -> Found:
    if expected > MAX_FAILURES:
        yield key, too_many(expected)


def _spares_and_repair(scenario: Scenario) -> Found:
    cluster, is_trace = scenario.cluster, isinstance(scenario.failures, TraceFailures)
    if cluster.spares is not None and cluster.repair is None and not is_trace:
        yield (
            "cluster.repair",
            f"is missing: with {cluster.spares} spares, say when a failed node comes back, for "
            "example 6 h",
        )
    if cluster.repair is not None and is_trace:
        yield "cluster.repair", "a trace brings its own repair times: leave it out"


def _transfers_have_bytes_and_bandwidth(scenario: Scenario) -> Found:
    own = ((f"recovery.{i}.costs", entry.costs) for i, entry in enumerate(scenario.recovery))
    for place, costs in (("costs", scenario.costs), *own):
        for key, cost in () if costs is None else by_bytes(costs):
            yield from ((f"{place}.{key}", message) for message in _bytes_problems(scenario, cost))


def _bytes_problems(scenario: Scenario, cost: str | OverLink) -> Iterator[str]:
    """What a cost that follows from bytes over a bandwidth misses."""
    cluster = scenario.cluster
    if isinstance(cost, OverLink):
        if cost.link not in cluster.links:
            known = ", ".join(cluster.links) or "none"
            yield f"there is no link `{cost.link}` in `cluster.links`; it has: {known}"
        if cluster.shard_bytes is None:
            yield "a link needs what goes over it: give the state of a node in `cluster`"
        return
    if scenario.storage is None:
        yield "`transfer` needs `storage: {bandwidth: ...}`"
    if cluster.shard_bytes is None:
        yield "`transfer` needs `cluster.shard_size`, `cluster.shards` or `cluster.tables`"


def _own_costs_fit(scenario: Scenario) -> Found:
    for i, entry in enumerate(scenario.recovery):
        if entry.costs is None:
            continue
        place = f"recovery.{i}.costs"
        if scenario.sync is not None:
            yield place, "does not go with `sync`: change the section `costs`"
        if entry.costs.detect is not None and scenario.scopes:
            yield f"{place}.detect", "does not go with `scopes`: each scope has its own `detect`"


def _strategies_differ(scenario: Scenario) -> Found:
    first: dict[str, int] = {}
    for i, entry in enumerate(scenario.recovery):
        if entry.name in first:
            yield (
                f"recovery.{i}",
                f"`{entry.name}` is there already (entry {first[entry.name] + 1}): give this one "
                f"another name, for example `name: {entry.name}-2`",
            )
        first.setdefault(entry.name, i)


def _saves_are_bounded(scenario: Scenario) -> Found:
    useful_h = scenario.job.useful_h
    for i, entry in enumerate(scenario.recovery):
        if isinstance(entry.interval, float) and useful_h / entry.interval > MAX_SAVES:
            yield (
                f"recovery.{i}.interval",
                f"makes {useful_h / entry.interval:.3g} saves in {useful_h:g} h; at most "
                f"{MAX_SAVES} make sense",
            )
