"""The recovery systems that there are: what each does, needs and survives; one in detail.

All of it follows from the policy that a system makes of a job: of a scenario's, or of a made-up
one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from itertools import groupby
from math import inf
from textwrap import fill
from typing import Any

import pandas as pd

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import assemble, policy_of
from cprsim.files import encode
from cprsim.present.answer import Answer
from cprsim.present.document import Document, Section, Table, word_columns
from cprsim.records import Cluster, Storage
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.policy import Groups, Medium, Outside, Policy, Reach, Ring, Rule, StageKind
from cprsim.recovery.system import Family, System
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.words import count, hours, percent
from cprsim.scenario import LoadedScenario, dump_plain, load_scenario
from cprsim.scenario.quantities import choices
from cprsim.scenario.recovery import RecoverySection
from cprsim.systems_compared.after import ALL_NODES, TWO_NODES, Fate, LossKind, Strike, after
from cprsim.units import BANDWIDTH, SIZE, TIME

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
TARGET_PLS = 0.1  # of strategies that need one, where the scenario does not list them
FEW_STRATEGIES = ("none", "full", "partial", "cpr")  # the others differ in which rows they save
GOES_BACK_TO = {  # in a word; else to where the save lies, by `Level`
    LossKind.NOTHING: "goes on",
    LossKind.STEP: "step",
    LossKind.SHARDS: "stale",
    LossKind.REPLAY: "replay",
    LossKind.START: "start",
}
SAVES_LIE = ("memory", "memory", "disk", "remote")
CASES = {
    "process": "a process dies",
    "restart": "a node restarts",
    "node": "a node is lost",
    TWO_NODES: "two neighbouring nodes are lost",
    ALL_NODES: "all nodes are lost",
}
DIMENSIONS = {"time": TIME, "size": SIZE, "bandwidth": BANDWIDTH}


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
        return () if self.system.name in STRATEGIES else fields(self.system.options)


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


def entry_of(name: str, asked: ListedJob) -> ListedPolicy:
    """One of them; raises ParameterError where there is none of that name."""
    if name not in SYSTEMS:
        raise ParameterError(f"`{name}` is no recovery system: {choices(name, tuple(SYSTEMS))}")
    system = SYSTEMS[name]
    try:
        policy = asked.policy_of(name)
    except ParameterError as error:
        return ListedPolicy(system, None, str(error))
    fresh = dict.fromkeys(policy.written, 1.0)  # all saves
    found = {
        one.scope.name: after(policy, asked.cluster, one, fresh)
        for one in cases(asked.cluster, asked.role)
    }
    outcomes = {case: fate for case, (fate, _) in found.items()}
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


# ------------------------------------------------------------------------------ answers


def answer_of_listing(asked: ListedJob) -> Answer:
    """All systems and the strategies that differ in kind, by family."""
    order = list(Family)
    entries = [
        entry_of(one.name, asked)
        for one in sorted(SYSTEMS.values(), key=lambda one: order.index(one.family))
        if one.name in FEW_STRATEGIES or one.name not in STRATEGIES
    ]
    n = count(len(entries), "recovery system")

    def document() -> Document:
        return Document(
            title=n,
            question="What does each recovery system need, and what does it survive?",
            answer=[f"{n}. What each needs and goes back to is for {asked.words}."],
            table=_listing(entries),
            remarks=["More on one: cprsim systems --explain NAME."],
            sections=[Section("Where they come from", [_sources(entries)])],
        )

    return Answer("systems", asked.words, document, _frames(entries), {"job": asked.words})


def answer_of_explanation(name: str, asked: ListedJob) -> Answer:
    """What one system does in a job."""
    entry = entry_of(name, asked)
    system, policy = entry.system, entry.policy
    said = {
        "Assumed": system.assumed.removeprefix("Assumed: "),
        "Not modelled": system.not_modelled,
        "Not counted": system.not_counted
        and f"{system.not_counted}; a staleness curve of your own prices it.",
    }
    served = (
        f"For {asked.words}; tiers, captures and rules as an entry `policy` of a scenario writes "
        "them. The first rule that holds is taken; if none does, all start again."
        if policy
        else f"It can't serve {asked.words}: {entry.refused}."
    )

    facts = [
        ("family", system.family.value),
        ("source", system.source or "none; it is a limit of the others"),
        ("runs as", system.runs_as or "nothing that is maintained"),
        *(_does(policy, entry) if policy else ()),
        *_options(entry),
    ]

    def document() -> Document:
        return Document(
            title=f"Recovery system {name}",
            question=f"What does {name} do, and what does it need?",
            answer=[f"{name}: {system.summary}.", served],
            table=Table(
                "",
                word_columns("", "what it does"),
                [(term, _cell(words, 66)) for term, words in facts],
                grouped=True,
            ),
            remarks=[f"{term}: {words}" for term, words in said.items() if words],
        )

    values = {"job": asked.words, "policy": policy and encode(policy)}
    return Answer("systems", name, document, _frames([entry]), values)


def _frames(entries: Sequence[ListedPolicy]) -> dict[str, pd.DataFrame]:
    systems = [
        {
            "system": one.system.name,
            "family": one.system.family.value,
            "summary": one.system.summary,
            "runs_as": one.system.runs_as,
            "needs": ", ".join(one.needs),
            **{f"after_{case.replace(' ', '_')}": one.goes_back_to.get(case, "") for case in CASES},
            "cannot_serve": one.refused,
            **{key: getattr(one.system, key)
               for key in ("source", "cited", "mark", "assumed", "not_modelled", "not_counted")},
        }
        for one in entries
    ]  # fmt: skip
    options = [
        {"system": one.system.name, "option": option.name, "kind": option.metadata["kind"],
         "default": encode(option.default), "words": option.metadata["words"]}
        for one in entries
        for option in one.options
    ]  # fmt: skip
    return {"systems": pd.DataFrame(systems), "options": pd.DataFrame(options)}


def _listing(entries: Sequence[ListedPolicy]) -> Table:
    """A row per system, in 80 characters on a terminal."""
    rows = []
    for one in entries:
        system, today = one.system, f" Runs as {one.system.runs_as}." * bool(one.system.runs_as)
        back = _goes_back_to(one) if one.policy else "can't serve this job"
        rows.append([
            system.name, _cell(f"{system.summary}.{today}", 30), _cell(back, 16),
            _cell(", ".join(one.needs), 14),
        ])  # fmt: skip
    columns = word_columns("system", "what it does", "goes back to", "needs")
    caption = (
        "By family. Up to: the largest failure of process (one dies), restart (of a node), node "
        "(lost), two nodes (neighbours, lost), all nodes."
    )
    return Table(caption, columns, rows)


def _sources(entries: Sequence[ListedPolicy]) -> Table:
    rows = [(one.system.name, one.system.family.value, one.system.source) for one in entries]
    return Table("Families and sources", word_columns("system", "family", "source"), rows)


def _goes_back_to(entry: ListedPolicy) -> str:
    """By how much fails: ``memory up to node, then remote``."""
    runs = [list(run) for _, run in groupby(entry.goes_back_to.items(), key=lambda one: one[1])]
    *before, last = [(back, name) for *_, (name, back) in runs]
    then = ", then " * bool(before) + last[0]
    return ", ".join(f"{back} up to {name}" for back, name in before) + then


def _cell(text: str, width: int) -> str:
    return fill(text, width, break_on_hyphens=False)


# ------------------------------------------------------------------------------ one system


def _does(policy: Policy, entry: ListedPolicy) -> Iterator[tuple[str, str]]:
    for records in ("tiers", "captures", "rules"):
        for one in getattr(policy, records):
            yield records, dump_plain(_written(one), on_one_line=True).strip()
    for case, words in CASES.items():
        tier = entry.outcomes[case].tier
        yield "goes back", f"{words}: {entry.goes_back_to[case]}{f', from {tier}' * bool(tier)}"
    if policy.tax.compute:
        yield "takes", f"{percent(policy.tax.compute)} more hours"
    if policy.elastic is not None and len(policy.elastic.speed) > 1:
        yield "takes", f"without one unit, the job's speed is {percent(policy.elastic.speed[1])}"
    if entry.needs:
        yield "needs", ", ".join(entry.needs)


def _written(value: Any) -> Any:
    """A record as an entry `policy` of a scenario writes it, without its defaults."""
    match value:
        case Outside():
            return "outside"
        case Ring():
            return "own" if value.copies == 1 else {"ring": value.copies}
        case Groups():
            return {"groups": _changed(value)}
        case Storage():
            return "transfer"
        case tuple():
            return [_written(one) for one in value]
        case Enum():
            return value.value
    if hasattr(value, "mean_h"):
        return hours(value.mean_h)
    if not is_dataclass(value):
        return value
    plain = _changed(value)
    return plain["kind"] if [*plain] == ["kind"] else plain


def _changed(record: Any) -> dict[str, Any]:
    """The fields that differ from their defaults; a role follows from the job."""
    return {
        one.name.removesuffix("_h"): _time(said) if one.name.endswith("_h") else _written(said)
        for one in fields(record)
        if one.name != "role" and (said := getattr(record, one.name)) != one.default
    }


def _time(value_h: float) -> str:
    return "next loss" if value_h == inf else hours(value_h)


def _options(entry: ListedPolicy) -> Iterator[tuple[str, str]]:
    for one in entry.options:
        value, kind = one.default, one.metadata["kind"]
        if isinstance(value, int | float):
            value = DIMENSIONS[kind].format(value) if kind in DIMENSIONS else f"{value:.3g}"
        elif not isinstance(value, str):  # none, or records that a scenario writes out
            value = "-"
        yield "options", f"{one.name} = {value}: {one.metadata['words']}"
