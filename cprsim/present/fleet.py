"""A fleet: overheads, what a month costs, how many spares are enough, and the recommendation."""

from __future__ import annotations

import json
from math import isnan
from typing import Any

from cprsim.fleets.course import STATISTICS
from cprsim.fleets.folder import ABOUT, FleetResult
from cprsim.fleets.options import FleetOption, Knee
from cprsim.plots.chart import Chart
from cprsim.plots.draw_chart import chart_figure
from cprsim.plots.fleet import fleet_charts, shown_options
from cprsim.present.document import (
    Block,
    Cell,
    Column,
    Document,
    Picture,
    Section,
    Table,
    Words,
    row_columns,
)
from cprsim.present.provenance import FOUND_AGAIN, origin, places
from cprsim.present.sensitivity import sensitivity_sentences
from cprsim.records import NO_NUMBER, Estimate
from cprsim.results.manifest import read_manifest
from cprsim.results.money import USEFUL
from cprsim.results.words import (
    count,
    hours,
    percent_number,
    significant,
    suited,
    with_ends,
    with_interval,
)
from cprsim.scenario.prices import HOURS_PER_MONTH, shown

MONTH = "month of 730.5 h"
CAPTIONS = {"fleet": "Overheads, and what is not useful work", "curve": "Over what was varied"}
IN_PERCENT = ("overhead", "p50", "p90", "p95", "utilisation", "pls")
MOST_ROWS = 200  # of a page
BRIEF = {  # headings on a terminal, of the statistics that it shows
    "overhead": "overhead\nmean",
    "p50": "P50",
    "p90": "P90",
    "p95": "P95",
    "machine_years": "years\nlost",
    "queued_h": "queued,\nh",
    "jobs_per_month": "jobs a\nmonth",
    "utilisation": "used,\n%",
}


def fleet_blocks(result: FleetResult, *, found_again: bool = False) -> list[Block]:
    """What a terminal shows."""
    figures = sorted(result.path.glob("*.png"))
    return [
        Words([heading(result)]),
        _options(result),
        Words([what_costs(result)]),
        _costs(result),
        Words(energy(result)),
        Words([knee_sentence(knee) for knee in result.knees]),
        Words(recommendation(result)),
        places(result.path, figures, FOUND_AGAIN if found_again else ""),
    ]


def document_of_fleet(result: FleetResult) -> Document:
    """Everything about one fleet. Raises ResultError for an unreadable file."""
    return Document(
        title=f"What failures cost a fleet: {result.name}",
        question=f"What should {result.n_jobs:,} jobs on one cluster do about failures?",
        answer=[*recommendation(result), *map(knee_sentence, result.knees)],
        sections=[
            Section("What was simulated", [Words([heading(result)])]),
            Section("All options", [_options(result, MOST_ROWS)]),
            Section("What a month costs", [_costs(result), Words(energy(result))]),
            Section("In pictures", [_picture(*item) for item in fleet_charts(result).items()]),
            *origin(read_manifest(result.path), result.path, "with the values"),
        ],
    )


def _picture(name: str, chart: Chart) -> Picture:
    return Picture(
        caption=CAPTIONS[name],
        alternative=f"{CAPTIONS[name]}; the tables have the numbers.",
        draw=lambda: chart_figure(chart),
    )


# ------------------------------------------------------------------------------ tables


def _options(result: FleetResult, most: int | None = None) -> Table:
    """A row for each option, with all its statistics; `most` limits the rows."""
    shows_use = any(not isnan(one.statistics["utilisation"].mean) for one in result.options)
    columns = [
        Column(
            name,
            brief=BRIEF.get(name, ""),
            in_full=name not in BRIEF or (name == "utilisation" and not shows_use),
        )
        for name in STATISTICS
    ]
    return Table(
        caption="Each option, with 95 % intervals where they are known; shares in %. "
        + "; ".join(f"{name}: {meaning}" for name, meaning in STATISTICS.items()),
        columns=[Column("option", is_number=False), *columns],
        rows=[[one.name, *_statistics(one)] for one in _in_order(result)[:most]],
    )


def _statistics(one: FleetOption) -> list[Cell]:
    cells = [_statistic(name, one.statistics[name]) for name in STATISTICS]
    if one.finished:
        return cells
    unfinished = ["not all jobs finish", *([NO_NUMBER] * (len(cells) - 1))]
    return [Cell(cell.text, brief) for cell, brief in zip(cells, unfinished, strict=True)]


def _statistic(name: str, interval: Estimate) -> Cell:
    """With its interval on a page; on a terminal the mean overhead alone has one."""
    scale = 100 if name in IN_PERCENT else 1
    mean, low, high = suited(*interval.times(scale).triple)
    text = mean if NO_NUMBER in (low, high) else f"{mean} ({low} to {high})"
    if name == "overhead":
        return Cell(text, with_interval(100 * interval.mean, 100 * interval.half_width))
    brief = percent_number if name in IN_PERCENT else significant
    return Cell(text, brief(interval.mean))


def _in_order(result: FleetResult) -> list[FleetOption]:
    """Strategy by strategy, along the axes; the scenario's own values first if no axis has them."""
    along = {key: list(values) for key, values in result.axes.items()}

    def place(one: FleetOption) -> tuple[int, ...]:
        return tuple(values.index(one.where[key]) if one.where else -1
                     for key, values in along.items())  # fmt: skip

    strategies = list(dict.fromkeys(one.strategy for one in result.options))
    return sorted(result.options, key=lambda one: (strategies.index(one.strategy), place(one)))


def what_costs(result: FleetResult) -> str:
    """What the second table is."""
    if result.has_money:
        return f"What a {MONTH} costs, in {result.currency or 'units of the prices'}:"
    return f"Node-hours of a {MONTH} (prices would make them money):"


def _cost_rows(result: FleetResult) -> list[tuple[str, ...]]:
    """The parts of the cost by option, their total, and that of a job."""
    columns = [result.parts(one) for one in shown_options(result)]
    totals = [sum(column.values()) for column in columns]
    n_per_month = result.n_jobs * HOURS_PER_MONTH / result.window_h
    amounts = {
        part: [column.get(part, 0) for column in columns]
        for part in dict.fromkeys(part for column in columns for part in column)
        if part == USEFUL or any(column.get(part) for column in columns)
    } | {"total": totals, "per job": [total / n_per_month for total in totals]}
    return [
        (part, *(shown(one, "") if result.has_money else f"{one:,.1f}" for one in values))
        for part, values in amounts.items()
    ]


def _costs(result: FleetResult) -> Table:
    return Table(
        caption=what_costs(result).rstrip(":"),
        columns=row_columns("", *(one.name for one in shown_options(result))),
        rows=_cost_rows(result),
        n_totals=2,
    )


# ------------------------------------------------------------------------------ sentences


def heading(result: FleetResult) -> str:
    """What was simulated."""
    shared = ", ".join(f"{key} {value}" for key, value in result.shared.items())
    times = f", {result.histories:,} histories" if result.histories > 1 else ""
    return (
        f"{result.name}: {count(result.n_jobs, 'job')} of {count(result.n_kinds, 'kind')} in "
        f"{hours(result.window_h)}{times}. "
        + (f"They share: {shared}. " if shared else "They share nothing. ")
        + "Overhead in % of useful time, without the hours in the queue, ± the half-width of the "
        "95 % interval; years lost: machine-years of overhead; jobs that end in a month of the "
        "window; used: share of the nodes' time that is useful."
    )


def energy(result: FleetResult) -> list[str]:
    """Energy and carbon of the options that are shown, per month."""

    def carbon(one: FleetOption) -> str:
        known = not isnan(one.carbon_kg)
        return f", {significant(one.carbon_kg / 1000)} t of CO2" if known else ""

    return [
        f"Energy, {one.name}: {significant(one.energy_kwh / 1000)} MWh{carbon(one)} a month."
        for one in shown_options(result)
        if not isnan(one.energy_kwh)
    ]


def knee_sentence(knee: Knee) -> str:
    """How many spares are enough for one strategy."""
    tried = " (the most that was tried: more may be cheaper yet)" if knee.at_end else ""
    waits = (
        "at none of these numbers does nobody wait"
        if knee.nobody_waits is None
        else f"from {knee.nobody_waits:g} on no job waits for one"
    )
    return (
        f"Spares, {knee.strategy}: {knee.cheapest:g} are cheapest in all{tried}: beyond, they cost "
        f"more than they save; {waits}."
    )


def recommendation(result: FleetResult) -> list[str]:
    """The cheapest option, what it saves, and what would reverse that."""
    decision = result.decision
    sentences = [_advice(result)]
    best = result.option(decision.best)
    if best.statistics["pls"].mean > 0:
        sentences.append(f"It leaves shards stale: {_pls(best)}; the scenario says what it may.")
    for one in result.options:
        if one.finished and one.cost < best.cost and one.statistics["pls"].mean > 0:
            sentences.append(
                f"{one.name} costs less, {_total(result, one)} per {MONTH}, and leaves shards "
                f"stale: {_pls(one)}. It is not recommended, as `target_pls` of its entry does not "
                "say how much you accept."
            )
    sentences.append(
        "Compared are the scenario's entries of `recovery` alone; `cprsim systems` "
        "compares every system for one job."
    )
    if decision.n_left_out:
        sentences.append(
            f"Left out: {count(decision.n_left_out, 'option')} under which not all jobs finish."
        )
    return [*sentences, *sensitivity_sentences(decision.sensitivity)]


def _pls(one: FleetOption) -> str:
    return f"a job's PLS is {significant(100 * one.statistics['pls'].mean)} % on average"


def _total(result: FleetResult, one: FleetOption) -> str:
    if result.has_money:
        return shown(one.cost, result.currency or "")
    return f"{significant(one.cost)} node-hours"


def _advice(result: FleetResult) -> str:
    decision = result.decision
    if decision.best == decision.present:
        return (
            f"Recommendation: stay with {decision.present}: no option that keeps accuracy costs "
            "less."
        )
    scale = 100.0 if result.has_money else 1.0
    saves = decision.saves
    unit = (result.currency or "") if result.has_money else "node-hours"
    if isnan(saves.mean):
        return (
            f"Recommendation: {decision.best}, the cheapest option; under {decision.present} not "
            "all jobs finish."
        )
    amount = with_ends(saves.mean / scale, saves.low / scale, saves.high / scale, unit)
    unsure = ""
    if isnan(saves.low):
        unsure = " How sure that is can't be told: give fleet.histories of 2 or more."
    elif saves.low <= 0:
        unsure = " The interval holds 0: more histories would tell."
    return (
        f"Recommendation: {decision.best}. Beside {decision.present} it saves {amount} per "
        f"{MONTH}.{unsure}"
    )


# ------------------------------------------------------------------------------ JSON


def fleet_as_json(result: FleetResult) -> dict[str, Any]:
    """The object that ``cprsim fleet --json`` prints."""
    about = json.loads((result.path / ABOUT).read_text("utf-8"))
    figures = [str(path) for path in sorted(result.path.glob("*.png"))]
    return {**about, "results": str(result.path), "figures": figures}
