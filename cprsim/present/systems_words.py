"""One recovery system in words, made from its records; and all of them as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import Field
from itertools import groupby
from math import inf
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from cprsim.present.document import Document, Section, Table, word_columns
from cprsim.present.systems_listing import ListedJob, ListedPolicy, after_failures
from cprsim.present.terminal import plain_table
from cprsim.records import Storage
from cprsim.recovery.policy import (
    Capture,
    Outside,
    Policy,
    Reverts,
    Ring,
    Rule,
    Stage,
    Tier,
    To,
    WhenBusy,
)
from cprsim.results.words import count, hours, percent, significant
from cprsim.systems_compared.after import ALL_NODES, TWO_NODES
from cprsim.units import BANDWIDTH, SIZE, TIME

UP_TO = (
    "up to: the largest failure of process (one dies), restart (of a node), node (lost), two "
    "nodes (neighbours, lost), all nodes."
)
CASES = {
    "process": "a process dies",
    "restart": "a node restarts",
    "node": "a node is lost",
    TWO_NODES: "two neighbouring nodes are lost",
    ALL_NODES: "all nodes are lost",
}
DIMENSIONS = {"time": TIME, "size": SIZE, "bandwidth": BANDWIDTH}


def print_listing(console: Console, entries: list[ListedPolicy], asked: ListedJob) -> None:
    """All of them by family, within the width of the terminal."""
    for family in _families(entries):
        console.print(_narrow(family))
    console.print(
        f"{UP_TO} Needs and outcomes follow from the records of each system for {asked.words}. "
        "More: cprsim systems NAME.",
        style="dim",
    )


def document_of_listing(entries: list[ListedPolicy], asked: ListedJob) -> Document:
    """All of them by family, as a document."""
    return Document(
        title=f"{count(len(entries), 'recovery system')}",
        question="Which recovery systems are there, what do they need and what do they survive?",
        answer=[f"What each is for {asked.words}. {UP_TO}"],
        sections=[Section("By family", _families(entries))],
    )


def _families(entries: list[ListedPolicy]) -> list[Table]:
    columns = word_columns("system", "what it does (source)", "goes back to", "needs")
    found = []
    for family, own in groupby(entries, key=lambda entry: entry.system.family):
        rows = [(entry.name, _mechanism(entry), *_worked_out(entry)) for entry in own]
        found.append(Table(family.value, columns, rows))
    return found


def _narrow(family: Table) -> RichTable:
    """The systems of one family within the width of a terminal."""
    _, mechanism, after, needs = family.columns
    table = plain_table()
    table.add_column(family.caption, min_width=14, max_width=14)
    table.add_column(mechanism.heading, ratio=1)
    table.add_column(after.heading, width=16)
    table.add_column(needs.heading, width=14)
    table.expand = True
    for row in family.rows:
        table.add_row(*map(str, row))
    return table


def _mechanism(entry: ListedPolicy) -> str:
    known = ", ".join(word for word in (entry.system.cited, entry.system.mark) if word)
    today = f" Runs as {entry.system.runs_as}." if entry.system.runs_as else ""
    return f"{entry.system.summary}{f' ({known})' if known else ''}.{today}"


def _worked_out(entry: ListedPolicy) -> tuple[str, str]:
    if entry.policy is None:
        return "can't serve this job", ""
    return after_failures(entry), ", ".join(entry.needs)


# --------------------------------------------------------------------------- one system


def explained(entry: ListedPolicy, asked: ListedJob) -> list[str]:
    """What one system does, line by line; an empty one between sections."""
    lines = [
        f"{entry.name}: {entry.system.summary}.",
        f"Family: {entry.system.family.value}.",
        f"Source: {entry.system.source or 'none; it is a limit of the others'}.",
        f"What a job can run today: {entry.system.runs_as or 'nothing that is maintained'}.",
    ]
    lines += [""]
    if entry.policy is None:
        lines += [f"It can't serve {asked.words}: {entry.refused}."]
    else:
        lines += [f"For {asked.words}:", "", *_policy(entry.policy, entry)]
    return [*lines, *_options(entry), *_said(entry)]


def _policy(policy: Policy, entry: ListedPolicy) -> Iterator[str]:
    yield "Copies"
    yield from (f"  {_tier(tier, policy)}" for tier in policy.tiers)
    yield "Saves"
    yield from (f"  {capture_in_words(capture)}" for capture in policy.captures)
    if not policy.captures:
        yield "  none"
    yield "A failure: the first of these that holds"
    for number, rule in enumerate(policy.rules, 1):
        yield f"  {number}. {rule_in_words(rule)}"
        yield f"     {stages_in_words(rule)}"
    if policy.rules[-1].sources or policy.rules[-1].needs:
        yield f"  else all start again, as after rule {len(policy.rules)}"
    yield "What it goes back to, all saves fresh"
    for case, words in CASES.items():
        yield f"  {words}: {_outcome(entry, case)}"
    yield from _all_the_time(policy, entry)
    yield ""


def _outcome(entry: ListedPolicy, case: str) -> str:
    tier = entry.outcomes[case].tier
    return entry.goes_back_to[case] + (f", from `{tier}`" if tier else "")


def _tier(tier: Tier, policy: Policy) -> str:
    live = "" if tier.name in policy.written else ", always current"
    place = tier.placement
    if isinstance(place, Outside):
        where = "outside the job's nodes"
    elif isinstance(place, Ring):
        where = "each node its own"
        if place.copies > 1:
            where = f"each shard on {place.copies} nodes in a ring"
    else:
        apart = "far apart" if place.strided else "neighbours"
        where = f"groups of {place.size} nodes ({apart}) that outlive {place.tolerates} of them"
    load = "" if tier.load is None else f"; a load takes {_cost(tier.load)}"
    return f"{tier.name}: {tier.medium.value}, {where}{live}{load}"


def _cost(cost: Any) -> str:
    return "a transfer" if isinstance(cost, Storage) else hours(cost.mean_h)


def capture_in_words(capture: Capture) -> str:
    """When a tier is saved to, what that stalls, and how long it goes on."""
    when = "when a failure is announced"
    if capture.every_h is not None:
        when = f"every {hours(capture.every_h)} of progress"
    elif capture.after is not None:
        nth = "each save" if capture.every_nth == 1 else f"each {capture.every_nth}th save"
        when = f"copied behind {nth} to {capture.after}"
    takes = []
    if capture.stall is not None and capture.stall.mean_h:
        takes.append(f"stalls the job for {hours(capture.stall.mean_h)}")
    if capture.background is not None:
        takes.append(f"is written in {hours(capture.background.mean_h)} behind it")
    if capture.parts > 1:
        takes.append(f"in {capture.parts} parts")
    busy = "the next waits" if capture.when_busy is WhenBusy.WAIT else "the next is left out"
    flight = f"{capture.in_flight} at once, then {busy}"
    return "; ".join([f"{capture.tier}: {when}", *takes, flight])


def rule_in_words(rule: Rule) -> str:
    """When a rule holds, and what goes back to where, as a sentence."""
    asks = [f"the failure is of {_or(rule.scopes)}"] if rule.scopes else []
    if rule.roles:
        asks.append(f"nodes of {_or(rule.roles)} alone are struck")
    asks += [f"{name} is there" for name in rule.needs]
    if rule.sources:
        asks.append(f"a content of {_or(rule.sources)} survives")
    condition = f"If {' and '.join(asks)}: " if asks else "Otherwise: "
    return condition + _reverts(rule) + "."


def _or(names: Iterable[str]) -> str:
    return " or ".join(names)


def _reverts(rule: Rule) -> str:
    if rule.reverts is Reverts.NOBODY:
        return "nobody's state goes back"
    if rule.reverts is Reverts.ALL:
        to = {
            To.NEWEST: "the newest content",
            To.STEP_BEGUN: "the beginning of the step in hand",
            To.STEP_BEFORE: "one whole step before",
            To.START: "the start",
        }
        return f"all go back to {to[rule.to]}"
    if rule.replays:
        return f"the struck replay from the newest content, {rule.replay_speed:g} times as fast"
    whose = "the struck shards" if rule.reverts is Reverts.STRUCK else "all shards"
    return f"{whose} go back to the newest content, the job's progress stays"


def stages_in_words(rule: Rule) -> str:
    """The stages of a rule, as a sentence."""
    parts = [_stage(stage) for stage in rule.stages]
    speed = ""
    if rule.speed_meanwhile < 1.0:
        speed = f" Meanwhile its speed is {percent(rule.speed_meanwhile)}."
    return "Stages: " + ", ".join(parts) + "." + speed


def _stage(stage: Stage) -> str:
    cost = "" if stage.cost is None else f" {hours(stage.cost.mean_h)}"
    each = ", each slot for its own node," if stage.each else ""
    if stage.grows_h is not None:
        each = " for the next loss" if stage.grows_h == inf else " for the job to grow"
    elif stage.copies_again:
        each = " with all copies made again"
    beside = "" if stage.blocks else " while the job goes on"
    return f"{stage.kind.value}{cost}{each}{beside}"


def _all_the_time(policy: Policy, entry: ListedPolicy) -> Iterator[str]:
    tax, taken = policy.tax, []
    if tax.compute:
        taken.append(f"{percent(tax.compute)} more hours")
    if tax.nodes:
        taken.append(f"{count(round(tax.nodes), 'more node')}")
    if tax.memory:
        taken.append(f"{significant(tax.memory)} times the state in memory")
    if taken:
        yield f"All the time it takes {', '.join(taken)}."
    if policy.elastic is not None and len(policy.elastic.speed) > 1:
        yield f"Without one unit the job works at {percent(policy.elastic.speed[1])} of its speed."
    if entry.needs:
        yield f"Besides, it needs: {', '.join(entry.needs)}."


def _options(entry: ListedPolicy) -> Iterator[str]:
    if not entry.options:
        return
    yield "Options"
    for one in entry.options:
        yield f"  {one.name} = {_default(one)}: {one.metadata['words']}"
    yield ""


def _default(option: Field[Any]) -> str:
    value, kind = option.default, option.metadata["kind"]
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float):  # none, or records that a scenario writes out
        return "-"
    return str(DIMENSIONS[kind].format(value)) if kind in DIMENSIONS else f"{value:.3g}"


def _said(entry: ListedPolicy) -> Iterator[str]:
    if entry.system.assumed:
        yield "Assumed: " + entry.system.assumed.removeprefix("Assumed: ")
    if entry.system.not_modelled:
        yield f"Not modelled: {entry.system.not_modelled}"
    if entry.system.not_counted:
        curve = "a staleness curve of your own prices it (docs/staleness.md)"
        yield f"Not counted: {entry.system.not_counted}; {curve}."
