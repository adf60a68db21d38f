"""A comparison of recovery systems: costs, losses, the cheapest, and its entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from operator import attrgetter
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from cprsim.commands.run.answer import costs_table, parts_table, strategies_frame
from cprsim.commands.run.figures import Bar, bars_figure
from cprsim.commands.systems.after import FailureImpact, LossKind
from cprsim.commands.systems.candidates import FOUND, NO_SERVERS, PAPER_ONLY, missing_sentence
from cprsim.commands.systems.comparison import (
    BEST,
    ELIGIBLE,
    NEAR_OPTIMAL,
    PRICED,
    TIED,
    WITHIN,
    Comparison,
    RankedSystem,
    verdict_of,
)
from cprsim.job.policy import Medium, Policy
from cprsim.job.records import NO_NUMBER, Estimate
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, ListingBlock, Picture, Section, Table
from cprsim.pages.money import WORK, bills_frame, cheapest, money_tables, with_spares
from cprsim.pages.provenance import origin
from cprsim.pages.recommendation import (
    back_to_start,
    break_even_sentences,
    entry_from,
    never_saves,
    recommendation,
    turns_on,
    waits_decide,
)
from cprsim.recovery.paper import NEVER
from cprsim.results.folder import stops_save
from cprsim.results.metrics import FINISHED
from cprsim.results.money import Bills, cheapest_by_bill, prices_in
from cprsim.results.unknown import WAITING, shows_waits, waiting
from cprsim.results.words import count, estimated, hours, percent_number, with_interval
from cprsim.scenario.prices import shown

TEXT_COLUMNS = ("saves every", "runs as")  # columns that hold no numbers
MOST_NAMES = 5  # of systems, in a sentence
LOST = {LossKind.START: "all", LossKind.NOTHING: "0", LossKind.SHARDS: "stale"}
NO_ESTIMATE = Estimate(float("nan"))
Cells = Mapping[str, Callable[[RankedSystem], str]]  # of a row, by the heading of the column


def answer_of_systems(comparison: Comparison, **about: Any) -> Answer:
    """The answer that a results folder of a comparison holds."""
    result, runs = comparison.result, comparison.cheapest_that_runs
    bills, ranked_systems = result.bills, comparison.ranked_systems
    systems = [
        {"system": system.name, "strategy": system.facts.strategy, "verdict": system.verdict,
         "accuracy": system.accuracy, **(system.more or NO_ESTIMATE).columns("more_than_best"),
         **(system.than_today or NO_ESTIMATE).columns("more_than_today"),
         "runs_as": system.facts.runs_as, "entry": system.facts.text, "interval": system.facts.how,
         "unknown": ", ".join(system.facts.unknown), "not_counted": system.facts.not_counted,
         "memory_bytes": system.facts.memory_bytes,
         "storage_fraction": system.facts.storage_share,
         "storage_bytes_per_h": system.facts.storage_bytes_per_h,
         "peers_bytes_per_h": system.facts.peers_bytes_per_h}
        for system in ranked_systems
    ]  # fmt: skip
    after = [
        {"system": system.name, "failure": failure, "takes": impact.kind.name.lower(),
         "up_to_h": impact.up_to_h, "from": impact.tier}
        for system in ranked_systems
        for failure, impact in system.facts.impacts.items()
    ]  # fmt: skip
    of_run = strategies_frame(result).rename(columns={"strategy": "system"})
    return Answer(
        "comparison of systems",
        comparison.name,
        lambda: document_of_systems(comparison),
        frames={
            "systems": pd.DataFrame(systems).merge(of_run, on="system", how="left"),
            "after": pd.DataFrame(after),
            **({"bills": bills_frame(bills)} if bills else {}),
            **({"unknown": pd.DataFrame(unknown)} if (unknown := comparison.break_evens) else {}),
        },
        values={
            "useful_h": result.useful_h,
            "n_nodes": result.n_nodes,
            "fixed": comparison.fixed,
            "limit": comparison.limit,
            "best": comparison.best,
            "best_that_runs": runs and runs.name,
            "today": comparison.today or None,
            "not_distinguished": comparison.tied,
            "cheapest": cheapest_by_bill(bills) if bills else None,
            "left_out": {name: why.words for name, why in comparison.left_out.items()},
            "assumed": comparison.assumed,
            "warnings": result.warnings,
            "recovery": _entries_text(ranked_systems),
            "recommendation": _recommended(comparison),
            "near_optimal": [system.name for system in comparison.near_optimal],
            "spares": comparison.spares,
        },
        rows={"replications": result.replications},
        **about,
    )


def document_of_systems(comparison: Comparison) -> Document:
    """Everything about one comparison. Raises ResultError for an unreadable file."""
    ranked_systems, result = comparison.ranked_systems, comparison.result

    def draw() -> Figure:
        bars = []
        for one in ranked_systems:
            overhead, more = one.percent.partition(" ±")[0], one.more
            words = f", {'+' if more.mean >= 0 else ''}{estimated(more, 100)}" if more else ""
            half_width = more.half_width if more else 0.0
            bars.append(Bar(one.label, overhead + words, one.summary, half_width))
        errors = f"second number, error bar: difference to {comparison.best}, paired, 95 % interval"
        about = f"; {comparison.intervals}"
        return bars_figure(result, comparison.name, "system", bars, about, errors)

    picture = Picture(
        caption="Overhead by system and cause",
        alternative=(
            "A bar per system, the cheapest on top: mean overhead in percent of useful time, by "
            "cause, with the 95 % interval of the total. The tables have the numbers."
        ),
        draw=draw,
        name="systems",
    )
    places = [system.name for system in ranked_systems]
    costs = replace(costs_table(result), caption="The quantities of a run")
    of_run = [
        replace(table, rows=sorted(table.rows, key=lambda row: places.index(str(row[0]))))
        for table in (parts_table(result), costs)
    ]
    left_out = [(name, why.words) for name, why in comparison.left_out.items()]
    needed = Table("Why each is not compared", ["system", "why"], left_out, ["why"])
    assumed = f"Assumed: {' '.join(comparison.assumed)}" if comparison.assumed else ""
    return Document(
        title=f"Which recovery system costs least: {comparison.name}",
        question=(
            f"Which recovery system costs a job of {hours(result.useful_h)} of useful work on "
            f"{count(result.n_nodes, 'node')} least, {comparison.intervals}?"
        ),
        answer=[*_answer(comparison)],
        table=_costs(ranked_systems, result.bills),
        remarks=[remark for remark in _remarks(comparison) if remark],
        turns_on=f"{turns_on(comparison.assumption)} {assumed}".strip(),
        sections=[
            Section("Why", [picture, *of_run, _survived(ranked_systems)]),
            Section("What it costs in all", money_tables(result.bills)),
            Section("Not compared", [needed] if left_out else []),
            Section(
                "How to run them", [ListingBlock("For the scenario", _entries_text(ranked_systems))]
            ),
            *origin(result.manifest, result.path),
        ],
    )


def _recommended(comparison: Comparison) -> dict[str, Any] | None:
    """The cheapest system compared with the present one, or the next; None: no system is best."""
    best = comparison.cheapest
    if best is None:
        return None
    others = [comparison.now, *comparison.able]
    beaten = next((system for system in others if system and system.more), None)
    return recommendation(
        entry_from(best.facts.text), best.overhead,
        beats=beaten.name if beaten else None, less=beaten.more if beaten else None,
        turns_on=comparison.assumption,
    )  # fmt: skip


def _entries_text(ranked_systems: Sequence[RankedSystem]) -> str:
    """The section `recovery` of a scenario that runs every system as compared."""
    return "\n".join(["recovery:", *(f"  - {system.facts.text}" for system in ranked_systems)])


# ------------------------------------------------------------------------------ tables


def _table(caption: str, ranked_systems: Sequence[RankedSystem], cells: Cells) -> Table:
    """A row per system, or several with the same cells."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for system in ranked_systems:
        rows.setdefault(tuple(cell(system) for cell in cells.values()), []).append(system.label)
    named = [(", ".join(names), *row) for row, names in rows.items()]
    return Table(caption, ["system", *cells], named, TEXT_COLUMNS)


def _costs(ranked_systems: Sequence[RankedSystem], bills: Bills) -> Table:
    cells: dict[str, Callable[[RankedSystem], str]] = {
        "saves every": attrgetter("every"),
        "overhead, %": attrgetter("percent"),
        "more than the best": _difference,
    }
    losses = (s.summary["auc_loss"].mean for s in ranked_systems if s.accuracy in (WITHIN, PRICED))
    if any(map(isfinite, losses)):
        cells["AUC lost, ×10⁻⁴"] = lambda each: estimated(each.summary["auc_loss"], 1e4)
    if bills:
        bill = next(iter(bills.values())).job
        cells[f"{bill.currency or 'cost'} for {WORK}{with_spares(bill.cents)}"] = lambda each: (
            shown(bills[each.name].month.total_cents, "") if each.name in bills else NO_NUMBER
        )
    if any(each.finishes and shows_waits(each.summary) for each in ranked_systems):
        cells[WAITING] = lambda each: (
            percent_number(waiting(each.summary)) if each.finishes else NO_NUMBER
        )
    cells["runs as"] = lambda each: each.facts.runs_as or NO_NUMBER
    n = count(ranked_systems[0].summary[FINISHED].n, "replication")
    caption = (
        f"Costs of each system: means of {n} on the same failures, in % of useful time, ± half of "
        "the 95 % interval (more than the best: paired)"
    )
    return _table(caption, ranked_systems, cells)


def _difference(system: RankedSystem) -> str:
    """Its cost above that of the best, or that they are not distinguished."""
    if system.facts.unknown or system.more is None:
        return BEST if system.verdict == BEST else NO_NUMBER
    if system.more.low == system.more.high == 0:
        return BEST  # the same in each job
    return system.verdict if system.verdict == TIED else estimated(system.more, 100)


def _survived(ranked_systems: Sequence[RankedSystem]) -> Table:
    """Progress lost by kind of failure; kinds with equal losses are one column."""

    def lost(system: RankedSystem, kind: str) -> str:
        impact = system.facts.impacts[kind]
        return LOST.get(impact.kind) or hours(impact.up_to_h)

    kinds_of: dict[tuple[FailureImpact, ...], list[str]] = {}
    for kind in ranked_systems[0].facts.impacts:
        impacts = tuple(each.facts.impacts[kind] for each in ranked_systems)
        kinds_of.setdefault(impacts, []).append(kind)
    cells = {", ".join(kinds): partial(lost, kind=kinds[0]) for kinds in kinds_of.values()}
    return _table("Progress lost at most by a failure of each kind", ranked_systems, cells)


# ------------------------------------------------------------------------------ sentences


def _answer(comparison: Comparison) -> Iterator[str]:
    """The cheapest system, the cheapest that runs today, and their savings over the present."""
    n_systems = len(comparison.facts) + len(comparison.left_out)
    if lacking := missing_sentence(comparison.left_out, n_systems):
        yield lacking
    picks = comparison.picks
    sentences = [*_near_optimal(comparison)]
    if not picks:
        sentences = ["No system that keeps the job's accuracy lets all jobs finish."]
    is_passed = any(one.more is not None and one.more.mean < 0 for one in comparison.able)
    first = "Cheapest that saves" if is_passed else "Cheapest"
    for label, system in zip((first, "Cheapest maintained"), picks, strict=False):
        runs_as = system.facts.runs_as and f" (runs as {system.facts.runs_as})"
        paper = "" if runs_as else ", no maintained implementation"
        sentences.append(f"{label}: {system.name}{runs_as}, overhead {system.percent} %{paper}.")
    yield " ".join(sentences)
    prices = prices_in(comparison.path) if comparison.spares else None
    yield from waits_decide(comparison.spares, comparison.result.n_nodes, prices)
    yield from filter(None, (_unpriced(comparison), comparison.resources))
    now = comparison.now
    if now is None:
        return
    saving = "never saving" if now.every == NEVER else f"every {now.every}"
    how = f"today ({now.facts.strategy}, {saving}: {now.percent} %)"
    if now.verdict == BEST:
        yield f"Nothing costs less than {how}."
        return
    saved = [words for system in picks if (words := _saved(system, now, comparison))]
    if saved:
        yield f"Compared with {how}: {'; '.join(saved)}."


def _unpriced(comparison: Comparison) -> str:
    """The sentence on a cheaper, maintained system whose accuracy loss is unknown."""
    runs, unpriced = comparison.cheapest_that_runs, comparison.unpriced_that_runs
    if unpriced is None or (
        runs is not None and runs.overhead.mean <= unpriced.overhead.mean + NEAR_OPTIMAL
    ):
        return ""
    return (
        f"{unpriced.name} (runs as {unpriced.facts.runs_as}) costs {unpriced.percent} %, but "
        f"{_why_not_the_best(unpriced)}."
    )


def _near_optimal(comparison: Comparison) -> Iterator[str]:
    """Systems within one percentage point of the cheapest, and their common traits."""
    near = comparison.near_optimal
    if len(near) > 1:
        shared = set.intersection(*(traits_of(system.policy) for system in near))
        words = f", and all {' and '.join(sorted(shared))}" if shared else ""
        names = _few([system.name for system in near])
        yield f"The {len(near)} cheapest differ by at most 1 point{words}: {names}."


def traits_of(policy: Policy) -> set[str]:
    """The kind of a recovery system, in words that follow `all`."""
    media = {tier.medium for tier in policy.tiers if tier.name in policy.written}
    stalls = any(capture.stall is not None and capture.stall.mean_h for capture in policy.captures)
    traits = {
        "copy to memory or disks of the nodes": bool(media - {Medium.REMOTE}),
        "save without a stall": not stalls and bool(policy.captures),
        "continue with fewer nodes": policy.elastic is not None,
    }
    return {words for words, holds in traits.items() if holds}


def _saved(system: RankedSystem, now: RankedSystem, comparison: Comparison) -> str:
    """Its difference to the present system in hours and money; empty if either is unfinished."""
    if system.than_today is None:
        return ""
    if verdict_of(system.than_today) == TIED:
        return f"{system.name} is not distinguished from it"
    less, bills = system.than_today.times(-comparison.result.useful_h), comparison.result.bills
    hours_less = with_interval(abs(less.mean), abs(less.half_width))
    words = f"{system.name} takes {hours_less} h {'more' if less.mean < 0 else 'less'} per job"
    if system.name in bills and now.name in bills:
        then, month = bills[now.name].month, bills[system.name].month
        cents = then.total_cents - month.total_cents
        amount = f"{shown(abs(cents), month.currency)} {'more' if cents < 0 else 'less'}"
        words += f"{', but' if cents < 0 else ' and'} costs {amount} per {WORK}"
    return words


def _remarks(comparison: Comparison) -> Iterator[str]:
    """Inputs that could reverse the answer, its entry, accuracy losses, and assumptions."""
    ranked_systems, best, today = comparison.ranked_systems, comparison.best, comparison.today
    yield from (f"Warning: {warning}" for warning in comparison.result.warnings)
    tied = [name for name in comparison.tied if name != today]
    lower = [
        f"{system.name} {system.percent} % ({', '.join(system.facts.unknown)})"
        for system in ranked_systems
        if system.facts.unknown and system.more and system.more.mean < 0
    ]
    doubts = [
        f"Not distinguished from {best}: {_few(tied)} (the 95 % interval of the paired difference "
        "contains 0)." * bool(tied),
        f"May cost less, but a cost is unknown: {_few(lower)}. Give it in the 'options' of "
        "the entry." * bool(lower),
    ]
    yield " ".join(filter(None, doubts))

    bills = comparison.bills_that_count
    if bills and cheapest_by_bill(bills) != today:  # the answer has today
        bills = {name: bill for name, bill in bills.items() if name != today}
    unsure = break_even_sentences(comparison.break_evens)
    yield " ".join([*([cheapest(bills, best)] if bills else []), *unsure])

    if entries := [pick.facts.text for pick in comparison.picks if pick.name != today]:
        yield f"To run it, put into 'recovery': {' or '.join(entries)}."
    for system in ranked_systems:
        if system.accuracy == WITHIN:
            limits = comparison.result.limits[system.name]
            does = "is within its limit"
            if all(one.is_target for one in limits):
                does = "does not significantly exceed its target"
            held = " ".join(one.sentence for one in limits)
            yield f"{system.name} leaves shards stale, but {does}. {held}"
    lossy = dict[str, list[str]]()  # the cheapest first
    for system in ranked_systems:
        if system.accuracy not in ELIGIBLE:
            lossy.setdefault(_why_not_the_best(system), []).append(system.label)
    for why, labels in lossy.items():
        yield f"{', '.join(labels)}: {why}; not eligible as the cheapest."
    general = (PAPER_ONLY, NO_SERVERS)
    lacking = [name for name, why in comparison.left_out.items() if why.words not in general]
    if lacking:
        yield (
            f"Not compared: {_few(lacking)}. This job can't run them, no interval is within the "
            "limit, or the scenario lacks an input: see the table 'Not compared' (-v)."
        )

    at_stops = stops_save(comparison.path, comparison.result.useful_h)
    yield at_stops
    bare = [
        system.name
        for system in ranked_systems
        if system.finishes
        and not (system.policy.leaves_stale or (at_stops and system.policy.tiers))
        and system.policy.risks_all(system.useful_h)
        and (system.facts.how == FOUND or system in comparison.picks)
    ]  # fmt: skip
    if bare:
        rows = comparison.result.replications
        rows = rows[rows["strategy"].isin(bare)]
        worst = float((rows["wall_h"] / rows["useful_h"]).max()) - 1.0
        yield never_saves(bare, worst, rows["replication"].nunique())
    yield " ".join(_stale_from_the_start(comparison))


def _stale_from_the_start(comparison: Comparison) -> Iterator[str]:
    """For each strategy that never saves: the share of jobs with a shard back at its start."""
    rows = comparison.result.replications
    for system in comparison.ranked_systems:
        if system.every == NEVER and system.policy.leaves_stale:
            struck = (rows.loc[rows["strategy"] == system.name, "pls"] > 0).mean()
            yield f"{system.name} never saves. {back_to_start(struck)}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _why_not_the_best(system: RankedSystem) -> str:
    """Why a system that loses accuracy is not the best."""
    if system.over:
        return system.over
    if system.accuracy == PRICED:
        return "loses AUC that no limit (section 'accuracy') allows"
    return system.facts.not_counted or "the accuracy loss of stale shards is unknown"
