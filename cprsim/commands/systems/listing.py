"""The list of all recovery systems with needs and survived failures; one system in detail.

The facts follow from the policy of a system for a job: a scenario's, or a made-up one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd

from cprsim.commands.systems import after
from cprsim.errors import ParameterError, choices
from cprsim.files import encode
from cprsim.job.policy import Groups, Medium, Outside, Policy, Reach, Ring, Rule, Scope, StageKind
from cprsim.job.records import Cluster, Storage
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, Table
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.system import Family, System
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.words import count, hours, percent
from cprsim.scenario.assemble import assemble, policy_of
from cprsim.scenario.reading import LoadedScenario, load_scenario
from cprsim.scenario.recovery import RecoverySection
from cprsim.scenario.yaml_text import dump_plain

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
TARGET_PLS = 0.1  # of strategies that need one and that the scenario does not list
FEW_STRATEGIES = ("none", "full", "partial", "cpr")  # the others differ in which rows they save
GOES_BACK_TO = {  # what a loss of this kind goes back to; of others, the `SAVES_LIE` of the tier
    after.LossKind.NOTHING: "goes on",
    after.LossKind.STEP: "step",
    after.LossKind.SHARDS: "stale",
    after.LossKind.REPLAY: "replay",
    after.LossKind.START: "start",
}
SAVES_LIE = ("memory", "memory", "disk", "remote")  # by `Level`
CASES = {  # failures of the list: words, reach, number of nodes (None: all)
    "process": ("a process dies", Reach.PROCESS, 1),
    "restart": ("a node restarts", Reach.NODE, 1),
    "node": ("a node is lost", Reach.NODE, 1),
    after.TWO_NODES: ("two neighbouring nodes are lost", Reach.NODE, 2),
    after.ALL_NODES: ("all nodes are lost", Reach.ALL, None),
}
OF_A_SYSTEM = (
    "summary", "runs_as", "source", "cited", "mark", "assumed", "not_modelled", "not_counted",
)  # fmt: skip
KEEP_NODES = ("process", "restart")  # cases in which no node has to be replaced


class ListedJob(NamedTuple):
    """The job that policies are made for."""

    words: str
    cluster: Cluster
    role: str
    policy_of: Callable[[str], Policy]  # raises ParameterError: the system can't serve the job


class ListedSystem(NamedTuple):
    """A system, and its policy for the job."""

    system: System
    policy: Policy | None = None  # None: it can't serve the job
    refused: str = ""
    goes_back_to: Mapping[str, tuple[str, str]] = {}  # by case: a word, and the tier
    needs: Sequence[str] = ()


def made_up_job() -> ListedJob:
    """The job of the list without a scenario; systems have the options that they need."""
    needed = {name: system.needs for name, system in SYSTEMS.items() if system.needs}
    entries = [{"strategy": name, "options": options} for name, options in needed.items()]
    loaded = load_scenario("made up", [f"recovery={json.dumps(entries)}"], text=MADE_UP_SCENARIO)
    return scenario_job(loaded)._replace(words=MADE_UP)


def scenario_job(loaded: LoadedScenario) -> ListedJob:
    """A scenario's job, with the options and costs of the systems that it lists."""
    scenario = loaded.scenario
    experiment = assemble(loaded, with_policies=False)
    listed = {entry.strategy: entry for entry in reversed(scenario.recovery)}

    def planned(name: str) -> Policy:
        is_targeted = name in STRATEGIES and "target_pls" in SYSTEMS[name].options
        target = TARGET_PLS if is_targeted else None
        unlisted = RecoverySection(strategy=name, name=name, target_pls=target)
        return policy_of(listed.get(name, unlisted), experiment)

    return ListedJob(scenario.name, experiment.cluster, scenario.cluster.state_role, planned)


def listed_of(name: str, job: ListedJob) -> ListedSystem:
    """One system by its name. Raises ParameterError for an unknown name."""
    if name not in SYSTEMS:
        raise ParameterError(f"`{name}` is no recovery system: {choices(name, tuple(SYSTEMS))}")
    try:
        policy = job.policy_of(name)
    except ParameterError as error:
        return ListedSystem(SYSTEMS[name], refused=str(error))
    fresh = dict.fromkeys(policy.written, 1.0)  # all saves
    impacts = {
        case[0].name: after.worst_impact(policy, job.cluster, case, fresh)
        for case in cases(job.cluster, job.role)
    }
    needed = tuple(dict.fromkeys(needs(policy, impacts["node"][1])))
    level = {tier.name: SAVES_LIE[tier.medium.level] for tier in policy.tiers}
    back = {
        case: (GOES_BACK_TO.get(impact.kind) or level[impact.tier], impact.tier)
        for case, (impact, _) in impacts.items()
    }
    return ListedSystem(SYSTEMS[name], policy, "", back, needed)


def cases(cluster: Cluster, role: str) -> Iterator[after.FailureCase]:
    """The failures of the list, of the first nodes of a role."""
    slots = tuple(cluster.slots(role))
    for name, (_, reach, n) in CASES.items():
        yield Scope(name, reach, after.AT_ONCE, needs_node=name not in KEEP_NODES), [slots[:n]]


def needs(policy: Policy, rule: Rule | None) -> Iterator[str]:
    """Needs of a system besides the job's nodes and its storage.

    `rule` applies when a node is lost; None: all restart from the beginning.
    """
    live = {name for rule in policy.rules for name in rule.needs}
    written = {tier.medium for tier in policy.tiers if tier.name in policy.written}
    for tier in policy.tiers:
        if tier.medium is Medium.DEVICE and tier.name in live:
            yield _redundancy(tier.placement)
        if tier.medium is Medium.HOST and tier.name in live and Medium.HOST not in written:
            yield "host memory"
    if policy.tax.memory and not any(stage.medium is Medium.DEVICE for stage in policy.tiers):
        yield f"host memory {policy.tax.memory:.3g}x"
    if Medium.SSD in written:
        yield "node disks"
    if Medium.PMEM in written:
        yield "persistent memory"
    if policy.tax.nodes:
        yield f"{policy.tax.nodes:g} more node{'' if policy.tax.nodes == 1 else 's'}"
    if any(capture.on_notice for capture in policy.captures):
        yield "notice"
    if rule is None or any(stage.kind is StageKind.WAIT and stage.blocks for stage in rule.stages):
        yield "spares"


def _redundancy(place: Outside | Ring | Groups) -> str:
    if isinstance(place, Groups) and place.tolerates < place.size - 1:
        return f"parity {place.size - place.tolerates}+{place.tolerates}"
    if isinstance(place, Groups) and place.strided:
        return "replicas"
    return "copies on other nodes"


# ------------------------------------------------------------------------------ answers


def answer_of_listing(job: ListedJob) -> Answer:
    """All systems by family, with those strategies that differ in kind."""
    order = list(Family)
    listing = [
        listed_of(system.name, job)
        for system in sorted(SYSTEMS.values(), key=lambda system: order.index(system.family))
        if system.name in FEW_STRATEGIES or system.name not in STRATEGIES
    ]
    n = count(len(listing), "recovery system")
    headings = ["system", "what it does", "after a failure", "needs"]
    caption = (
        "By family. 'memory up to node': it reloads from memory if at most a node is lost; sizes: "
        "process, restart (of a node), node, two nodes (neighbours), all nodes."
    )
    rows = [
        (listed.system.name, _does(listed.system), _up_to(listed), ", ".join(listed.needs))
        for listed in listing
    ]
    document = Document(
        title=n,
        question="What does each recovery system need, and what does it survive?",
        answer=[f"{n}. Needs and rollbacks are those for {job.words}."],
        table=Table(caption, headings, rows, headings),
        remarks=["More on one: cprsim systems --explain NAME."],
    )
    return Answer("systems", job.words, lambda: document, _frames(listing), {"job": job.words})


def _does(system: System) -> str:
    return system.summary + (f"; runs as {system.said_to_run_as}" if system.runs_as else "")


def _up_to(listed: ListedSystem) -> str:
    """Where it goes back to by size of the failure: ``memory up to node, then remote``."""
    if listed.policy is None:
        return "can't serve this job"
    words = [(name, back) for name, (back, _) in listed.goes_back_to.items()]
    *before, (_, last) = [[*run][-1] for _, run in groupby(words, key=itemgetter(1))]
    then = ", then " * bool(before) + last
    return ", ".join(f"{back} up to {name}" for name, back in before) + then


def answer_of_explanation(name: str, job: ListedJob) -> Answer:
    """The answer that explains one system in a job."""
    listed = listed_of(name, job)
    system, policy = listed.system, listed.policy
    served = (
        f"For {job.words}; tiers, captures and rules are written as in a scenario's entry 'policy'."
        " The first rule whose conditions hold applies; if none do, all nodes start again."
        if policy
        else f"It can't serve {job.words}: {listed.refused}."
    )
    document = Document(
        title=f"Recovery system {name}",
        question=f"What does {name} do, and what does it need?",
        answer=[f"{name}: {system.summary}.", served],
        table=Table("", ["", "what it does"], [*_facts(listed)], ["what it does"], grouped=True),
    )
    values = {"job": job.words, "policy": policy and encode(policy)}
    return Answer("systems", name, lambda: document, _frames([listed]), values)


def _frames(listing: Sequence[ListedSystem]) -> dict[str, pd.DataFrame]:
    systems = [
        {"system": listed.system.name, "family": listed.system.family.value,
         "needs": ", ".join(listed.needs),
         **{f"after_{case.replace(' ', '_')}": listed.goes_back_to.get(case, ("",))[0]
            for case in CASES},
         "cannot_serve": listed.refused,
         **{key: getattr(listed.system, key) for key in OF_A_SYSTEM}}
        for listed in listing
    ]  # fmt: skip
    options = [
        {"system": system.name, "option": key,
         "kind": option.kind if isinstance(option.kind, str) else "records",
         "default": encode(option.default), "words": option.meaning}
        for system, *_ in listing
        if system.name not in STRATEGIES  # the scenario's section has theirs
        for key, option in system.options.items()
    ]  # fmt: skip
    return {"systems": pd.DataFrame(systems), "options": pd.DataFrame(options)}


# ------------------------------------------------------------------------------ one system


def _facts(listed: ListedSystem) -> Iterator[tuple[str, str]]:
    """Terms and their values; a term may have several."""
    system, policy = listed.system, listed.policy
    yield "family", system.family.value
    yield "source", system.source or "none; it is a limit of the others"
    yield "runs as", system.said_to_run_as or "no maintained implementation"
    if policy is not None:
        for records in ("tiers", "captures", "rules"):
            for record in getattr(policy, records):
                yield records, dump_plain(_written(record), on_one_line=True).strip()
        for case, (back, tier) in listed.goes_back_to.items():
            yield "goes back", f"{CASES[case][0]}: {back}{f', from {tier}' * bool(tier)}"
        if policy.tax.compute:
            yield "overhead", f"{percent(policy.tax.compute)} more hours"
        if policy.elastic is not None and len(policy.elastic.speed) > 1:
            speed = percent(policy.elastic.speed[1])
            yield "elastic", f"without one unit, the job's speed is {speed}"
        if listed.needs:
            yield "needs", ", ".join(listed.needs)
    for key, option in {} if system.name in STRATEGIES else system.options.items():
        value = option.default
        if isinstance(value, int | float):
            value = hours(value) if option.kind == "time" else f"{value:.3g}"
        elif not isinstance(value, str):  # none, or records that a scenario writes out
            value = "-"
        yield "options", f"{key} = {value}: {option.meaning}"
    if system.assumed:
        yield "assumed", system.assumed.removeprefix("Assumed: ")
    if system.not_modelled:
        yield "not modelled", system.not_modelled
    if system.not_counted:
        yield "not counted", f"{system.not_counted}; measure it as a staleness curve of your own"


def _written(value: Any) -> Any:
    """A record as an entry `policy` of a scenario writes it, without its defaults."""
    match value:
        case Outside():
            return "outside"
        case Ring():
            return "own" if value.copies == 1 else {"ring": value.copies}
        case Storage():
            return "transfer"
        case tuple():
            return [_written(field) for field in value]
        case Enum():
            return value.value
    if hasattr(value, "mean_h"):
        return hours(value.mean_h)
    if not is_dataclass(value):
        return value
    plain = {}
    for field in fields(value):
        given, name = getattr(value, field.name), field.name.removesuffix("_h")
        if name != field.name and given != field.default:
            plain[name] = "next loss" if given == inf else hours(given)
        elif field.name != "role" and given != field.default:  # the role follows from the job
            plain[name] = _written(given)
    if isinstance(value, Groups):
        return {"groups": plain}
    return plain["kind"] if [*plain] == ["kind"] else plain
