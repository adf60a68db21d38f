"""A sweep: where each strategy is at its best and its worst, and every point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.files import finite_or_none
from cprsim.present.document import (
    Block,
    Column,
    Document,
    Picture,
    Section,
    Table,
    Words,
    row_columns,
)
from cprsim.present.money import MONTH, WORK
from cprsim.present.provenance import origin, places
from cprsim.present.run import loss_column
from cprsim.records import NO_NUMBER, Estimate, interval
from cprsim.results import records_of
from cprsim.results.manifest import read_manifest
from cprsim.results.words import count, hours, suited, ten_thousandths, with_interval
from cprsim.scenario.prices import ACCURACY, shown
from cprsim.sweeps.costs import COST_MONTH, OVERHEAD
from cprsim.sweeps.folder import SweepResult
from cprsim.sweeps.summary import Extreme, StrategySummary, summaries

MOST_ROWS = 200  # of the table of all points; the rest is in sweep.csv
CAPTIONS = {
    "curves": "Overhead along the sweep",
    "map": "Overhead less that of the reference",
    "tornado": "Overhead from lowest to highest along each input",
    "money": "What a month costs along the sweep",
}


def sweep_blocks(result: SweepResult, n_computed: int) -> list[Block]:
    """What a terminal shows."""
    warned = [f"Warning: {one}" for one in result.warnings]
    remarks = Words([*cheapest_point(result), *result.accuracy, *warned])
    n_there = result.n_points - n_computed
    note = f" ({n_there:,} of the points were there already)" if n_there > 0 else ""
    files = places(result.path, _figures(result), note)
    return [Words([_heading(result)]), extremes_table(result), remarks, files]


def _heading(result: SweepResult) -> str:
    by = " x ".join(axis.key for axis in result.axes)
    how = by if result.mode == "grid" else f"{by.replace(' x ', ', ')}, one at a time"
    n = result.table["n"].agg(["min", "max"])
    each = count(n["max"], "replication")
    if n["min"] < n["max"]:
        each = f"{n['min']:,} to {each}"
    return (
        f"{result.name}: {hours(result.useful_h)} of useful work; {how}: "
        f"{count(result.n_points, 'point')}, {each} each. Overhead in % of useful time, ± "
        "the half-width of the 95 % interval."
    )


def _figures(result: SweepResult) -> list[Path]:
    return sorted(result.path.glob("*.png"))


# ------------------------------------------------------------------------------ extremes


def extremes_table(result: SweepResult) -> Table:
    """A row per strategy: its lowest and its highest overhead, and where they are."""
    ends = [column for end in ("lowest", "highest") for column in _end_columns(end, result)]
    less = f"less than {result.reference} at"
    names = _short_names(result)
    return Table(
        caption=(
            "Overhead in % of useful time, ± the half-width of its 95 % interval, at the points "
            "where every replication finishes; points at which it is surely less and more than "
            f"that of {result.reference}"
        ),
        columns=[
            Column("strategy", is_number=False),
            *ends,
            Column(less, brief=less.replace("than ", "than\n")),
            Column("more at", brief="more\nat"),
        ],
        rows=[
            [
                summary.strategy,
                *_end_cells(summary.lowest, names, result),
                *_end_cells(summary.highest, names, result),
                *_compared(summary, result.reference),
            ]
            for summary in summaries(result)
        ],
    )


def _end_columns(end: str, result: SweepResult) -> list[Column]:
    columns = [
        Column(f"{end} overhead, %", brief=f"{end}\noverhead"),
        Column("at", is_number=False),
    ]
    unit = result.currency or "cost"
    money = (
        []
        if result.currency is None
        else [Column(f"{unit} per {WORK}", brief=f"{unit} per\n{WORK}")]
    )
    return [*columns, *money, *map(loss_column, result.losses)]


def _short_names(result: SweepResult) -> dict[str, str]:
    """By column, the last part of each key, or the whole key where two would be the same."""
    last = {axis.column: axis.key.rpartition(".")[2] for axis in result.axes}
    taken = list(last.values())
    return {
        axis.column: last[axis.column] if taken.count(last[axis.column]) == 1 else axis.key
        for axis in result.axes
    }


def _end_cells(
    extreme: Extreme | None, names: Mapping[str, str], result: SweepResult
) -> tuple[str, ...]:
    """Overhead, where it is so, and where there are prices or priced losses what it costs there."""
    losses, has_money = result.losses, result.currency is not None
    if extreme is None:
        nowhere = NO_NUMBER, "no point at which every replication finishes"
        return (*nowhere, *[NO_NUMBER] * (len(losses) + has_money))
    percent = extreme.overhead.times(100)
    overhead = with_interval(percent.mean, percent.half_width)
    there = extreme.where.items()
    where = ", ".join(_at(column, names[column], value) for column, value in there)
    money = [_amount(extreme.cost_month)] if has_money else []
    return (overhead, where, *money, *(_loss(extreme.losses.get(quantity)) for quantity in losses))


def _amount(cost: Estimate | None) -> str:
    return NO_NUMBER if cost is None or isnan(cost.mean) else f"{cost.mean:,.2f}"


def cheapest_point(result: SweepResult) -> list[str]:
    """Which strategy is the cheapest in all, and where, if there are prices."""
    shares = cheapest_shares(result)
    best = result.cheapest
    if best is None:
        return shares
    names = _short_names(result)
    there = {axis.column: best[axis.column] for axis in result.axes}
    where = ", ".join(_at(key, names[key], v) for key, v in there.items() if not pd.isna(v))
    amount = shown(100 * float(best["mean"]), result.currency or "")
    at = f" at {where}" if where else " at the scenario's own values"
    counted = "" if len(result.of(f"{COST_MONTH} {ACCURACY}")) else ", accuracy not counted"
    words = f"Cheapest in all{counted}: {best['strategy']}{at}"
    return [*shares, f"{words}, {amount} for 730.5 h of useful work."]


def cheapest_shares(result: SweepResult) -> list[str]:
    """At how many points each strategy is the cheapest, where there are several."""
    counts = result.cheapest_by_point["strategy"].value_counts()
    if len(result.strategies) < 2 or counts.empty:
        return []
    what = "Least overhead" if result.currency is None else "Cheapest"
    parts = (f"{name} at {n:,} of {count(result.n_points, 'point')}" for name, n in counts.items())
    return [f"{what}: {'; '.join(parts)}."]


def _loss(found: Estimate | None) -> str:
    return NO_NUMBER if found is None else ten_thousandths(found.mean, found.half_width)


def _at(column: str, name: str, value: Any) -> str:
    """``save 30 s`` from the table's column ``costs.save [s]``."""
    unit = column.partition(" [")[2].rstrip("]")
    number = f"{value:.3g}" if isinstance(value, float) else str(value)
    return f"{name} {number} {unit}".rstrip()


def _compared(summary: StrategySummary, reference: str) -> tuple[str, str]:
    if summary.strategy == reference:
        return NO_NUMBER, NO_NUMBER
    return f"{summary.n_less:,} of {summary.n_points:,}", f"{summary.n_more:,}"


# ------------------------------------------------------------------------------ a page


def document_of_sweep(result: SweepResult) -> Document:
    """Everything about one sweep. Raises ResultError for an unreadable file."""
    from cprsim.plots.axes import words_of_key  # matplotlib, which a terminal does without

    found = summaries(result)
    axes = ", ".join(words_of_key(axis.key) for axis in result.axes)
    return Document(
        title=f"What becomes of the overhead: {result.name}",
        question=(
            f"How does the overhead of a job of {hours(result.useful_h)} of useful work change "
            f"with {axes}, over {count(result.n_points, 'point')}?"
        ),
        answer=_answer(result, found),
        sections=[
            Section("Where each strategy is at its best and its worst", [extremes_table(result)]),
            Section("The sweep in pictures", _pictures(result, axes)),
            Section("All points", _points(result)),
            *origin(read_manifest(result.path), result.path, "with the values"),
        ],
    )


def _pictures(result: SweepResult, axes: str) -> list[Block]:
    from cprsim.plots.sweep import sweep_figures

    return [
        Picture(
            caption=CAPTIONS.get(name, name),
            alternative=(
                f"{CAPTIONS.get(name, name)}: {_drawn(result, name)} of each strategy over {axes}. "
                "The table of all points has the numbers."
            ),
            draw=draw,
        )
        for name, draw in sweep_figures(result).items()
    ]


def _drawn(result: SweepResult, name: str) -> str:
    if name == "money":
        return f"{result.currency or 'cost'} for {MONTH}"
    return "overhead in percent of useful time"


def _answer(result: SweepResult, found: Sequence[StrategySummary]) -> list[str]:
    """Who costs less than the reference, and where; then how far each strategy's cost goes."""
    against = [_against(one) for one in found if one.strategy != result.reference]
    money = cheapest_point(result)
    ranges = [
        f"{one.strategy} {_percent(one.lowest)} to {_percent(one.highest)}"
        for one in found
        if one.lowest is not None and one.highest is not None
    ]
    beside = [f"Beside {result.reference}: {'; '.join(against)}."] if against else []
    if not ranges:
        return [*beside, "At no point does every replication of any strategy finish."]
    over_all = f"Overhead over the whole sweep, in % of useful time: {'; '.join(ranges)}."
    return [*beside, over_all, *money]


def _against(one: StrategySummary) -> str:
    more = f", more at {one.n_more:,}" if one.n_more else ""
    return f"{one.strategy} surely costs less at {one.n_less:,} of {one.n_points:,} points{more}"


def _percent(extreme: Extreme) -> str:
    mean, low, high = suited(*extreme.overhead.times(100).triple)
    return f"{mean} % ({low} to {high})"


def _points(result: SweepResult) -> list[Block]:
    rows = result.of(OVERHEAD)
    names = [axis.column for axis in result.axes]
    unit = result.currency or "cost"
    costs = [] if result.currency is None else result.of(COST_MONTH)["mean"].tolist()
    table = Table(
        caption="Mean overhead in % of useful time, with its 95 % interval"
        + (f"; {unit} for {MONTH}" if costs else ""),
        columns=[
            *row_columns("strategy", *names, "overhead, %", "95 % interval"),
            *([Column(f"{unit} per {WORK}")] if costs else []),
        ],
        rows=[
            [*_point(row, names), *(_amount(Estimate(cost)) for cost in costs[n : n + 1])]
            for n, row in enumerate(records_of(rows.head(MOST_ROWS)))
        ],
    )
    left = len(rows) - MOST_ROWS
    more = [f"{left:,} further rows are in sweep.csv of the results folder."] if left > 0 else []
    return [table, Words(more)]


def _point(row: dict[str, Any], names: Sequence[str]) -> list[str]:
    mean, low, high = suited(*(100 * float(row[name]) for name in ("mean", "low", "high")))
    within = NO_NUMBER if NO_NUMBER in (low, high) else f"{low} to {high}"
    places = [_said(row[name]) for name in names]
    return [str(row["strategy"]), *places, mean, within]


def _said(value: Any) -> str:
    if pd.isna(value):
        return NO_NUMBER
    return f"{value:g}" if isinstance(value, float) else str(value)


# ------------------------------------------------------------------------------ for scripts


def sweep_as_json(result: SweepResult, n_computed: int) -> dict[str, Any]:
    """The object that ``cprsim sweep --json`` prints."""
    return {
        "name": result.name,
        "mode": result.mode,
        "axes": [axis.column for axis in result.axes],
        "points": result.n_points,
        "computed": n_computed,
        "reference": result.reference,
        "currency": result.currency,
        "cheapest": _cheapest_as_json(result),
        "accuracy": list(result.accuracy),
        "warnings": list(result.warnings),
        "results": str(result.path),
        "figures": [str(path) for path in _figures(result)],
        "strategies": [_as_json(summary) for summary in summaries(result)],
    }


def _as_json(summary: StrategySummary) -> dict[str, Any]:
    return {
        "name": summary.strategy,
        "lowest": summary.lowest and _extreme_as_json(summary.lowest),
        "highest": summary.highest and _extreme_as_json(summary.highest),
        "less_than_reference": summary.n_less,
        "more_than_reference": summary.n_more,
        "points": summary.n_points,
    }


def _cheapest_as_json(result: SweepResult) -> dict[str, Any] | None:
    best = result.cheapest
    if best is None:
        return None
    there = {axis.column: best[axis.column] for axis in result.axes}
    where = {key: value for key, value in there.items() if not pd.isna(value)}
    return {
        "strategy": best["strategy"],
        "where": where,
        "cost_month": finite_or_none(best["mean"]),
    }


def _extreme_as_json(extreme: Extreme) -> dict[str, Any]:
    return {
        "where": dict(extreme.where),
        "save_interval_h": finite_or_none(extreme.save_interval_h),
        **interval(extreme.overhead),
        **({} if extreme.cost_month is None else {COST_MONTH: interval(extreme.cost_month)}),
        **{quantity: interval(loss) for quantity, loss in extreme.losses.items()},
    }
