"""The recovery systems that there are, as entries of a listing: what each needs and survives.

Both follow from the policy that a system makes of a job: of a scenario's, or of a made-up one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from itertools import groupby
from typing import Any

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import assemble, policy_of
from cprsim.files import encode
from cprsim.records import Cluster
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.policy import Groups, Medium, Outside, Policy, Reach, Ring, Rule, StageKind
from cprsim.recovery.system import Family, System
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario import LoadedScenario, load_scenario
from cprsim.scenario.quantities import choices
from cprsim.scenario.recovery import RecoverySection
from cprsim.systems_compared.after import ALL_NODES, TWO_NODES, Fate, LossKind, Strike, after

MADE_UP = (
    "a made-up job of 200 h on 40 nodes of 100 GB and 4 readers, links of 400 Gbit/s, a storage of "
    "800 Gbit/s, steps of 10 s, a failure each 8 h"
)
MADE_UP_SCENARIO = """
name: made-up
job: {useful: 200 h, step: 10 s}
cluster:
  workers: 40
  replicas: 40
  others: {reader: 4}
  state: 100 GB
  link: 400 Gbit/s
  rack: 4
storage: {bandwidth: 800 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 8 h, role: any}
scopes:
  - {name: process, reach: process, share: 0.6, detect: 1 min}
  - {name: restart, reach: node, needs_node: false, share: 0.1, detect: 3 min}
  - {name: node, reach: node, share: 0.27, detect: 3 min, notice: 2 min}
  - {name: rack, reach: rack, share: 0.02, detect: 3 min}
  - {name: all, reach: all, share: 0.01, detect: 3 min}
costs: {save: {stall: 10 s, background: 40 s}, load: 40 s, detect: 3 min, reschedule: 4 min}
recovery: [full]
"""
NO_SYSTEMS = {  # names of the literature that are no system here, and what they are
    "hybrid DRAM and PMem": "a tier of an entry `policy`, `medium: pmem`; by itself `pmem`",
    "ByteCheckpoint": "runs as `async`; its faster saves (9.23 x) and loads (7.0 x, published) "
    "are `costs`",
    "TorchSnapshot": "runs as `async`, in pieces, as host memory allows (recalled)",
    "ECRM": "the preprint's name of `ecrec`",
    "FlowCheck": "runs as `checkmate`, from traffic that the switches mirror (recalled)",
    "TranLogs": "runs as `swift`, with logs of transfers between stages (recalled)",
    "RecShard": "uneven shards and look-ups, `cluster.shards`",
    "MegaScale": "saves as those of `async`; its diagnosis is a short `detect` of a scope, one "
    "reader per replica group a short `load` (recalled)",
    "Universal Checkpointing": "saves that another number of nodes can load: a restart in another "
    "shape, as `varuna` does; the conversion is part of `load` (recalled)",
    "C4": "faults found in seconds: a short `detect` of a scope (downtime 31.19 % to 1.16 %, "
    "secondary)",
    "DECK": "not modelled: nothing but its name is known here",
    "DeadPool": "not modelled: how it gets below 40 s is not known here",
    "Unicron": "not modelled: it plans over several jobs",
    "ElasWave, Chameleon": "not modelled: a re-planned pipeline is a table from outside "
    "(`oobleck` with `throughput`)",
}
TARGET_PLS = 0.1  # of strategies that need one, where the scenario does not list them
GOES_BACK_TO = {  # in a word; else to where the save lies, by `Level`
    LossKind.NOTHING: "goes on",
    LossKind.STEP: "step",
    LossKind.SHARDS: "stale",
    LossKind.REPLAY: "replay",
    LossKind.START: "start",
}
SAVES_LIE = ("memory", "memory", "disk", "remote")
FEW_STRATEGIES = ("none", "full", "partial", "cpr")  # the others differ in which rows they save


@dataclass(frozen=True, slots=True)
class ListedJob:
    """The job that policies are made for."""

    words: str
    cluster: Cluster
    role: str
    policy_of: Callable[[str], Policy]  # raises ParameterError: the system can't serve the job


@dataclass(frozen=True, slots=True)
class ListedPolicy:
    """A system or a strategy in the listing."""

    system: System
    policy: Policy | None  # None: it can't serve the job
    refused: str = ""
    outcomes: Mapping[str, Fate] = field(default_factory=dict)  # by the name of one of `cases`
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def goes_back_to(self) -> dict[str, str]:
        """What a job goes back to after each of `cases`, by its name."""
        if self.policy is None:
            return {}
        level = {tier.name: SAVES_LIE[tier.medium.level] for tier in self.policy.tiers}
        return {
            name: GOES_BACK_TO.get(fate.kind) or level[fate.tier]
            for name, fate in self.outcomes.items()
        }

    @property
    def options(self) -> tuple[Field[Any], ...]:
        """What an entry may say of it; of a strategy, its section has that."""
        return () if self.name in STRATEGIES else fields(self.system.options)


def made_up_job() -> ListedJob:
    """The job of the listing where no scenario is given; systems have the options they need."""
    entries = [
        {"strategy": name, "options": system.needs}
        for name, system in SYSTEMS.items()
        if system.needs
    ]
    loaded = load_scenario("made up", [f"recovery={json.dumps(entries)}"], text=MADE_UP_SCENARIO)
    return replace(scenario_job(loaded), words=MADE_UP)


def scenario_job(loaded: LoadedScenario) -> ListedJob:
    """A scenario's job, with the options and costs of the systems that it lists."""
    scenario = loaded.scenario
    experiment = assemble(loaded, with_policies=False)
    listed = {entry.strategy: entry for entry in reversed(scenario.recovery)}

    def planned(name: str) -> Policy:
        target = TARGET_PLS if name in STRATEGIES and SYSTEMS[name].takes("target_pls") else None
        unlisted = RecoverySection(strategy=name, name=name, target_pls=target)
        return policy_of(listed.get(name, unlisted), experiment)

    return ListedJob(scenario.name, experiment.cluster, scenario.cluster.state_role, planned)


def listing(asked: ListedJob) -> list[ListedPolicy]:
    """All systems and the strategies that differ in kind, by family."""
    order = list(Family)
    systems = sorted(SYSTEMS.values(), key=lambda one: order.index(one.family))
    return [
        _listed(one, asked)
        for one in systems
        if one.name in FEW_STRATEGIES or one.name not in STRATEGIES
    ]


def elsewhere(name: str) -> str | None:
    """What a name of the literature is that is no system here; None: it is not known."""
    for names, words in NO_SYSTEMS.items():
        if name.casefold() in names.casefold().split(", "):
            return f"{names} is no system here: {words}."
    return None


def entry_of(name: str, asked: ListedJob) -> ListedPolicy:
    """One of them; raises ParameterError where there is none of that name."""
    if name in SYSTEMS:
        return _listed(SYSTEMS[name], asked)
    raise ParameterError(f"`{name}` is no recovery system: {choices(name, tuple(SYSTEMS))}")


def _listed(system: System, asked: ListedJob) -> ListedPolicy:
    try:
        policy = asked.policy_of(system.name)
    except ParameterError as error:
        return ListedPolicy(system, None, str(error))
    fresh = dict.fromkeys(policy.written, 1.0)  # all saves
    found = {
        one.scope.name: after(policy, asked.cluster, one, fresh)
        for one in cases(asked.cluster, asked.role)
    }
    outcomes = {name: fate for name, (fate, _) in found.items()}
    needed = tuple(dict.fromkeys(needs(policy, found["node"][1])))
    return ListedPolicy(system, policy, "", outcomes, needed)


def cases(cluster: Cluster, role: str) -> Iterator[Strike]:
    """The failures that the listing asks about, of the first nodes of a role."""
    slots = tuple(cluster.slots(role))
    yield Strike.of("process", Reach.PROCESS, slots[:1], needs_node=False)
    yield Strike.of("restart", Reach.NODE, slots[:1], needs_node=False)
    yield Strike.of("node", Reach.NODE, slots[:1])
    yield Strike.of(TWO_NODES, Reach.NODE, slots[:2])
    yield Strike.of(ALL_NODES, Reach.ALL, slots)


def needs(policy: Policy, rule: Rule | None) -> Iterator[str]:
    """What a system needs besides the job's nodes and its storage, in few words each.

    `rule` is taken where a node is lost; None: all start again.
    """
    live = {name for rule in policy.rules for name in rule.needs}
    written = {tier.medium for tier in policy.tiers if tier.name in policy.written}
    for tier in policy.tiers:
        if tier.medium is Medium.DEVICE and tier.name in live:
            yield _redundancy(tier.placement)
        if tier.medium is Medium.HOST and tier.name in live and Medium.HOST not in written:
            yield "host memory"
    if policy.tax.memory and not any(one.medium is Medium.DEVICE for one in policy.tiers):
        yield f"host memory {policy.tax.memory:.3g}x"
    if Medium.SSD in written:
        yield "node disks"
    if Medium.PMEM in written:
        yield "persistent memory"
    if policy.tax.nodes:
        yield f"{policy.tax.nodes:g} more node{'' if policy.tax.nodes == 1 else 's'}"
    if any(capture.on_notice for capture in policy.captures):
        yield "notice"
    if rule is None or any(one.kind is StageKind.WAIT and one.blocks for one in rule.stages):
        yield "spares"


def _redundancy(place: Outside | Ring | Groups) -> str:
    if isinstance(place, Groups) and place.tolerates < place.size - 1:
        return f"parity {place.size - place.tolerates}+{place.tolerates}"
    if isinstance(place, Groups) and place.strided:
        return "replicas"
    return "copies on other nodes"


def after_failures(entry: ListedPolicy) -> str:
    """What a job goes back to, by how much fails: ``memory up to node, then remote``."""
    runs = [list(run) for _, run in groupby(entry.goes_back_to.items(), key=lambda one: one[1])]
    *before, last = [(back, name) for *_, (name, back) in runs]
    if not before:
        return last[0]
    return ", ".join(f"{back} up to {name}" for back, name in before) + f", then {last[0]}"


OF_TABLES = (
    "interval_h", "interval_rule", "decision", "sub_saves", "loses_as", "is_strategy",
)  # fmt: skip


def plain_policy(policy: Policy) -> dict[str, Any]:
    """What a recovery does for scripts: its rules, tiers and captures."""
    plain = encode(policy)
    return {key: value for key, value in plain.items() if key not in OF_TABLES}


def plain_entry(entry: ListedPolicy) -> dict[str, Any]:
    """An entry for scripts."""
    system = entry.system
    return {
        "name": entry.name,
        "family": system.family.value,
        "runs_as": system.runs_as or None,
        "summary": system.summary,
        "source": system.source,
        "cited": system.cited,
        "mark": system.mark and system.mark.value,
        "needs": list(entry.needs),
        "goes_back_to": entry.goes_back_to,
        "assumed": system.assumed,
        "not_modelled": system.not_modelled or None,
        "not_counted": system.not_counted or None,
        "cannot_serve": entry.refused or None,
        "options": [
            {
                "name": one.name,
                "kind": one.metadata["kind"],
                "default": encode(one.default),
                "words": one.metadata["words"],
            }
            for one in entry.options
        ],
    }
