"""A fleet: recommendation, options, cost per month, and the sufficient number of spares."""

from __future__ import annotations

from math import isnan
from typing import Any

import pandas as pd

from cprsim.commands.fleet.figures import fleet_figures, shown_options
from cprsim.commands.fleet.folder import FleetResult, options_frame, parts_frame
from cprsim.commands.fleet.options import FleetOption
from cprsim.job.records import NO_NUMBER, Estimate
from cprsim.pages.answer import Answer
from cprsim.pages.document import MOST_ROWS, Document, Picture, Section, Table
from cprsim.pages.money import WORK, with_spares
from cprsim.pages.provenance import origin
from cprsim.pages.recommendation import (
    break_even_sentences,
    maintained,
    never_saves,
    others_do_not_wait,
    recommendation,
    turns_on,
    waits_decide,
)
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.folder import read_manifest, stops_save, stored_scenario
from cprsim.results.money import prices_in
from cprsim.results.unknown import WAITING, shows_waits
from cprsim.results.words import count, estimated, hours, significant, with_ends
from cprsim.scenario.prices import HOURS_PER_MONTH, shown

MONTH = "month of 730.5 h"
CAPTIONS = {"fleet": "Overheads, and the cost besides useful work", "curve": "Over the varied key"}


def answer_of_fleet(result: FleetResult, **about: Any) -> Answer:
    """The answer that a results folder of a fleet holds."""
    decision, unknown = result.decision, pd.DataFrame(result.decision.break_evens)
    return Answer(
        "fleet",
        result.name,
        lambda: _document(result),
        frames={
            "options": options_frame(result),
            "parts": parts_frame(result),
            **({"unknown": unknown} if len(unknown) else {}),
        },
        values={
            "best": decision.best,
            "recommendation": _recommended(result),
            "spares": result.decision.spares,
            "present": decision.present,
            "saves_per_month": _saves(result).by_name,
            "currency": result.currency,
            "n_left_out": decision.n_left_out,
            "n_jobs": result.n_jobs,
            "n_kinds": result.n_kinds,
            "window_h": result.window_h,
            "histories": result.histories,
            "shared": result.shared,
        },
        **about,
    )


def _recommended(result: FleetResult) -> dict[str, Any]:
    """The best option's strategy and values, compared with the present option."""
    best, present = map(result.option, (result.decision.best, result.decision.present))
    entries = {entry["name"]: entry for entry in stored_scenario(result.path)["recovery"]}
    of_strategy = recommendation(
        entries[best.strategy], best.statistics["overhead_fraction"],
        beats=None, less=None, turns_on=result.decision.assumption,
    )  # fmt: skip
    beats = {} if best is present else {"beats": present.name, "by": result.decision.less.by_name}
    return {**of_strategy, "at": dict(best.where), **beats}


def _document(result: FleetResult) -> Document:
    pictures = [
        Picture(CAPTIONS[name], f"{CAPTIONS[name]}. The tables have the numbers.", draw, name)
        for name, draw in fleet_figures(result).items()
    ]
    decision, of = result.decision, "the fleet's nodes" if result.n_jobs > 1 else "the job's nodes"
    part = "One job's answer" if result.n_jobs > 1 else ""
    prices = prices_in(result.path) if decision.spares else None
    return Document(
        title=f"What failures cost a fleet: {result.name}",
        question=f"What should {count(result.n_jobs, 'job')} on one cluster do about failures?",
        answer=[_advice(result), *waits_decide(decision.spares, decision.n_nodes, prices, of)],
        table=_options(result),
        remarks=[
            *_cautions(result),
            *([decision.resources] if decision.resources else []),
            *break_even_sentences(decision.break_evens),
        ],
        turns_on=turns_on(decision.assumption, part, decision.best),
        sections=[
            Section("What a month costs", [_costs(result)]),
            Section("In pictures", pictures),
            *origin(read_manifest(result.path), result.path, "with the values"),
        ],
    )


# ------------------------------------------------------------------------------ tables


def _options(result: FleetResult) -> Table:
    """A row for each option: overheads, waiting, utilisation, and cost per month."""
    uses = any(
        not isnan(option.statistics["utilisation_fraction"].mean) for option in result.options
    )
    queued = any(option.statistics["queued_h"].mean > 0 for option in result.options)
    waits = any(shows_waits(option.statistics) for option in result.options)
    columns = {
        "P90, %": ("p90_fraction", 100),
        **({"queued per job, h": ("queued_h", 1)} if queued else {}),
        **({WAITING: ("wait_fraction", 100)} if waits else {}),
        **({"jobs done a month": ("jobs_per_month", 1)} if result.n_jobs > 1 else {}),
        **({"nodes busy, %": ("utilisation_fraction", 100)} if uses else {}),
    }
    rows = []
    for option in result.options[:MOST_ROWS]:
        cells = [estimated(option.statistics["overhead_fraction"], 100)]
        cells += [significant(n * option.statistics[name].mean) for name, n in columns.values()]
        if not option.finished:
            cells = ["not all finish", *[NO_NUMBER] * len(columns)]
        rows.append([option.name, *cells, _amount(result, option.cost)])
    same = {key: of for key, of in result.shared.items() if f"fleet.{key}" not in result.axes}
    shared = ", ".join(f"{key}: {value}" for key, value in same.items())
    if not shared and result.n_jobs > 1 and not result.axes:
        shared = "nothing"  # nor do options differ in what they share
    have = "they share" if result.n_jobs > 1 else "it has"
    shared = f"; {have} {shared}" if shared else ""
    if "spares" not in result.shared and "fleet.spares" not in result.axes:
        shared += ", spares always available"
    every_part = [of for option in result.options for of in result.parts(option).items()]
    spares = with_spares({part: amount for part, amount in every_part if amount})
    cost = f"{_unit(result)} per {_month(result)}{spares}"
    times = f", {result.histories:,} histories" if result.histories > 1 else ""
    return Table(
        f"{result.name}: {count(result.n_jobs, 'job')} of {count(result.n_kinds, 'kind')} in "
        f"{hours(result.window_h)}{times}{shared}. Overhead in % of "
        "useful time, without the hours in the queue, ± half of the 95 % interval.",
        ["option", "overhead, %", *columns, cost],
        rows,
    )


def _costs(result: FleetResult) -> Table:
    """The parts of the cost by option, their total, and that of a job."""
    options = shown_options(result)
    columns = [result.parts(option) for option in options]
    totals = [sum(column.values()) for column in columns]
    n_per_month = result.n_jobs * HOURS_PER_MONTH / result.window_h
    amounts = {
        part: [column.get(part, 0) for column in columns]
        for part in dict.fromkeys(part for column in columns for part in column)
        if any(column.get(part) for column in columns)
    } | {"total": totals, "per job": [total / n_per_month for total in totals]}
    rows = [[part, *(_amount(result, option) for option in of)] for part, of in amounts.items()]
    for heading, name in (("MWh", "energy_kwh"), ("t of CO2", "carbon_kg")):
        cells = [significant(getattr(option, name) / 1000) for option in options]
        rows += [[heading, *cells]] if NO_NUMBER not in cells else []
    return Table(
        f"Per {_month(result)}, in {_unit(result)}",
        ["", *(option.name for option in options)],
        rows,
    )


def _month(result: FleetResult) -> str:
    """A month of the cluster; of one job alone, of its work."""
    return WORK if result.is_work else MONTH


def _unit(result: FleetResult) -> str:
    return (result.currency or "units of the prices") if result.has_money else "node-hours"


def _amount(result: FleetResult, cost: float) -> str:
    return shown(cost, "") if result.has_money else f"{cost:,.1f}"


# ------------------------------------------------------------------------------ sentences


def _saves(result: FleetResult) -> Estimate:
    """Saving per month of the best option compared with the present one."""
    return result.decision.saves.times(0.01 if result.has_money else 1.0)


def _advice(result: FleetResult) -> str:
    best, present, saves = result.decision.best, result.decision.present, _saves(result)
    words = maintained(_recommended(result))
    named = f"{best} ({words})" if words else best
    if best == present:
        least = result.option(best).cost
        bare = any(o.risks_all and o.finished and o.cost < least for o in result.options)
        does = "saves and keeps" if bare else "keeps"
        is_own = "fleet.spares" not in result.axes or "spares" in result.shared
        as_now = ", as at present" if is_own else ""  # free spares can't be compared
        return f"Use {named}{as_now}: no option that {does} accuracy costs less."
    if isnan(saves.mean):
        return f"Use {named}, the cheapest option: under {present} not all jobs finish."
    unsure = ""
    if isnan(saves.low):
        unsure = " Its interval is unknown: give --histories of 2 or more."
    elif saves.low <= 0:
        unsure = " The interval contains 0: more --histories may decide."
    amount = with_ends(*saves.triple, _unit(result))
    less = f"compared with {present}, it saves {amount} per {_month(result)}."
    return f"Use {named}: {less}{unsure}"


def _cautions(result: FleetResult) -> list[str]:
    """Stale shards of the best option, cheaper options with stale shards, options left out."""
    best, cautions = result.option(result.decision.best), []
    entries = {entry["name"]: entry for entry in stored_scenario(result.path)["recovery"]}
    able = [option for option in result.options if option.finished]
    n_arrive = result.n_jobs * HOURS_PER_MONTH / result.window_h
    if behind := [option for option in able if not option.keeps_up(n_arrive)]:
        done = significant(best.statistics["jobs_per_month"].mean)
        cautions.append(
            f"{significant(n_arrive)} jobs arrive a month, and {done} are done under {best.name}. "
            f"Under {len(behind)} of {count(len(result.options), 'option')} fewer are done than "
            "arrive: the queue grows. A month's cost is that of the jobs which arrive in it."
        )
        able = [o for o in able if best in behind or o not in behind]
    if others := others_do_not_wait(best.statistics):
        cautions.append(others)
    if at_stops := stops_save(result.path, result.window_h):
        cautions.append(at_stops)
    saves = at_stops and result.n_jobs == 1 and entries[best.strategy]["strategy"] != "none"
    if best.risks_all and best.statistics["pls"].mean == 0 and not saves:
        cautions.append(never_saves([best.strategy]))
    if best.limits or best.statistics["pls"].mean > 0:
        stale = _stale(best, "no entry accepts that (`target_pls`)")
        why = "" if best.keeps_limits else ", and all else leaves jobs unfinished"
        loses = "leaves shards stale" if best.statistics["pls"].mean > 0 else "loses accuracy"
        cautions.append(f"{best.name} {loses}: {stale}{why}.")
    for option in result.options:
        not_counted = SYSTEMS[entries[option.strategy]["strategy"]].not_counted
        stale = _stale(option, "if you accept that, give it as `target_pls` of its entry")
        why = f"and leaves shards stale, so it is not recommended: {stale}"
        is_cheaper = option in able and option.cost < best.cost
        if not_counted and not option.limits and (is_cheaper or option is best):
            why = f"but {not_counted}"
        elif not is_cheaper or not (option.limits or option.statistics["pls"].mean):
            continue
        elif option.statistics["pls"].mean == 0:
            why = f"but loses accuracy: {stale}"
        cost = f"{_amount(result, option.cost)} {_unit(result)} per {_month(result)}"
        cautions.append(f"{option.name} costs{' less' * is_cheaper}, {cost}, {why}.")
    if n := result.decision.n_left_out:
        cautions.append(f"Left out: {count(n, 'option')} under which not all jobs finish.")
    return cautions


def _stale(option: FleetOption, without: str) -> str:
    """Losses of an option beside their limits; without limits, its PLS and `without`."""
    pls = f"a job's PLS is {estimated(option.statistics['pls'], 1)} on average; {without}"
    mean_alone = " (of jobs that share, only the mean PLS is known: try `cprsim select`)"
    is_unknown = any(isnan(held.bound) for held in option.limits)
    known = (h.cell if isnan(h.bound) else h.sentence.removesuffix(".") for h in option.limits)
    return "; ".join(known) + mean_alone * is_unknown or pls
