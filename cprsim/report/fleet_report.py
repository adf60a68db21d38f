"""Everything that `cprsim fleet` prints: overheads, money, the knee, the recommendation."""

from __future__ import annotations

import json
from math import isnan
from typing import Any

from rich.console import Console
from rich.table import Table

from cprsim.estimate import Estimate
from cprsim.fleet.cells import USEFUL
from cprsim.fleet.deciding import Flip, Knee
from cprsim.fleet.folder import ABOUT, FleetResult, OptionRow
from cprsim.plots.fleet import shown_options
from cprsim.present.terminal import plain_table, print_whole, say
from cprsim.prices import shown
from cprsim.results.words import (
    NO_NUMBER,
    count,
    hours,
    percent_number,
    significant,
    with_ends,
    with_interval,
)

MONTH = "month of 730.5 h"


def print_fleet(console: Console, result: FleetResult, *, found_again: bool = False) -> None:
    """Print what became of a fleet.

    Parameters
    ----------
    console : where to; wraps sentences on a terminal and leaves them whole in a pipe
    found_again : nothing was simulated, because the finished folder was there already
    """
    say(console, heading(result))
    console.print()
    print_whole(console, _overheads(result))
    console.print()
    say(console, what_costs(result))
    console.print()
    print_whole(console, _costs(result))
    for paragraph in (energy(result), knee_sentences(result), recommendation(result)):
        if paragraph:
            console.print()
        for sentence in paragraph:
            say(console, sentence)
    console.print()
    again = " (found again, nothing was simulated)" if found_again else ""
    say(console, f"results  {result.path}{again}")
    for path in sorted(result.path.glob("*.png")):
        say(console, f"figure   {path}")


def fleet_as_json(result: FleetResult) -> dict[str, Any]:
    """The object that ``cprsim fleet --json`` prints."""
    said = json.loads((result.path / ABOUT).read_text("utf-8"))
    figures = [str(path) for path in sorted(result.path.glob("*.png"))]
    return {**said, "results": str(result.path), "figures": figures}


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


def _overheads(result: FleetResult) -> Table:
    out = plain_table()
    out.add_column("option", no_wrap=True)
    shows_use = any(not isnan(one.statistics["utilisation"].mean) for one in result.options)
    for name in (
        "overhead\nmean",
        "P50",
        "P90",
        "P95",
        "years\nlost",
        "queued,\nh",
        "jobs a\nmonth",
    ):
        out.add_column(name, justify="right", no_wrap=True)
    if shows_use:
        out.add_column("used,\n%", justify="right", no_wrap=True)
    for one in _in_order(result):
        of = one.statistics
        cells = [
            _percents(of["overhead"]),
            *(percent_number(of[name].mean) for name in ("p50", "p90", "p95")),
            significant(of["machine_years"].mean),
            significant(of["queued_h"].mean),
            significant(of["jobs_per_month"].mean),
            *([percent_number(of["utilisation"].mean)] if shows_use else []),
        ]
        out.add_row(one.name, *(cells if one.finished else _unfinished(cells)))
    return out


def _in_order(result: FleetResult) -> list[OptionRow]:
    """Strategy by strategy, along the axes; the scenario's own values first if no axis has them."""
    along = {key: list(values) for key, values in result.axes.items()}

    def place(one: OptionRow) -> tuple[int, ...]:
        return tuple(values.index(one.where[key]) if one.where else -1
                     for key, values in along.items())  # fmt: skip

    strategies = list(dict.fromkeys(one.strategy for one in result.options))
    return sorted(result.options, key=lambda one: (strategies.index(one.strategy), place(one)))


def _unfinished(cells: list[str]) -> list[str]:
    return ["not all jobs finish", *([NO_NUMBER] * (len(cells) - 1))]


def _percents(interval: Estimate) -> str:
    half = (interval.high - interval.low) / 2
    return with_interval(100 * interval.mean, 100 * half)


def what_costs(result: FleetResult) -> str:
    """What the second table is."""
    if result.has_money:
        return f"What a {MONTH} costs, in {result.currency or 'units of the prices'}:"
    return f"Node-hours of a {MONTH} (prices would make them money):"


def cost_rows(result: FleetResult) -> list[tuple[str, ...]]:
    """The parts of the cost by option, their total, and that of a job."""
    options = shown_options(result)
    parts = dict.fromkeys(part for one in options for part in _parts(result, one))
    rows = [
        (part, *(_amount(result, _parts(result, one).get(part, 0)) for one in options))
        for part in parts
        if part == USEFUL or any(_parts(result, one).get(part) for one in options)
    ]
    totals = [sum(_parts(result, one).values()) for one in options]
    n_per_month = result.n_jobs * 730.5 / result.window_h
    each = [_amount(result, total / n_per_month) for total in totals]
    rows.append(("total", *(_amount(result, total) for total in totals)))
    return [*rows, ("per job", *each)]


def _parts(result: FleetResult, one: OptionRow) -> dict[str, float]:
    return dict(one.cents if result.has_money else one.node_h)


def _amount(result: FleetResult, value: float) -> str:
    return shown(value, "") if result.has_money else f"{value:,.1f}"


def _costs(result: FleetResult) -> Table:
    out = plain_table()
    out.add_column("", no_wrap=True)
    for one in shown_options(result):
        out.add_column(one.name, justify="right", no_wrap=True)
    *parts, total, each = cost_rows(result)
    for row in parts:
        out.add_row(*row)
    out.add_section()
    out.add_row(*total)
    out.add_row(*each)
    return out


def energy(result: FleetResult) -> list[str]:
    """Energy and carbon of the options that are shown, per month."""
    said = []
    for one in shown_options(result):
        if isnan(one.energy_kwh):
            continue
        carbon = "" if isnan(one.carbon_kg) else f", {significant(one.carbon_kg / 1000)} t of CO2"
        said.append(
            f"Energy, {one.name}: {significant(one.energy_kwh / 1000)} MWh{carbon} a month."
        )
    return said


def knee_sentences(result: FleetResult) -> list[str]:
    """How many spares are enough."""
    return [_knee(result, knee) for knee in result.knees]


def _knee(result: FleetResult, knee: Knee) -> str:
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
    said = [_advice(result)]
    best = result.option(decision.best)
    if best.statistics["pls"].mean > 0:
        said.append(
            "It leaves shards stale, which has no price here: a job's PLS is "
            f"{significant(100 * best.statistics['pls'].mean)} % on average."
        )
    if decision.n_left_out:
        said.append(
            f"Left out: {count(decision.n_left_out, 'option')} under which not all jobs finish."
        )
    return [*said, *_unknowns(result)]


def _advice(result: FleetResult) -> str:
    decision = result.decision
    if decision.best == decision.present:
        return f"Recommendation: stay with {decision.present}: no other option costs less."
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


def _unknowns(result: FleetResult) -> list[str]:
    decision = result.decision
    if not decision.n_draws:
        return ["No input is said to be unknown (fleet.unknown), so none is tried for a reversal."]
    said = [_flip(flip) for flip in decision.flips]
    others = ", ".join(f"{name} {n:,}" for name, n in decision.others.items())
    draws = (
        f"If all of them vary at once, it is the cheapest of those tried in "
        f"{round(decision.share * decision.n_draws):,} of {decision.n_draws:,} joint draws"
        + (f" (others: {others})." if others else ".")
    )
    return [*said, draws]


def _flip(flip: Flip) -> str:
    unit = f" {flip.unit}" if flip.unit else ""
    span = f"{significant(flip.low)} to {significant(flip.high)}{unit}"
    if flip.at is None:
        return f"{flip.key}: no value from {span} reverses it."
    at = f"{significant(flip.at)}{unit}"
    return f"{flip.key} (from {span}): at {at}, {flip.becomes} costs as little."
