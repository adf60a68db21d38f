"""A sweep: every point, and where each strategy is at its best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cprsim.commands.run.answer import loss_heading
from cprsim.commands.sweep.figures import axis_words, sweep_figures, value_text
from cprsim.commands.sweep.folder import COST_MONTH, ONE_VARIED, SweepResult
from cprsim.job.policy import RELOAD
from cprsim.job.records import Estimate
from cprsim.pages.answer import Answer
from cprsim.pages.document import MOST_ROWS, Document, Picture, Section, Table
from cprsim.pages.provenance import origin
from cprsim.results.folder import read_manifest
from cprsim.results.metrics import OVERHEAD, records_of
from cprsim.results.words import count, estimated, hours
from cprsim.scenario.prices import ACCURACY, shown

MOST_POINTS_ON_TERMINAL = 30  # rows of points on a terminal; more are on a page alone
USEFUL_MONTH = "a month of 730.5 h of useful work"
SWEEP_CAPTIONS = {
    "curves": "Overhead along the sweep",
    "map": "Least overhead or cost at each point",
    "tornado": "Overhead from lowest to highest along each input",
    "money": "Cost of a month along the sweep",
}

Row = Mapping[str, Any]
Touches = Mapping[str, set[str]]
"""By strategy, the columns of the axes that change anything of it."""


def answer_of_sweep(result: SweepResult, **about: Any) -> Answer:
    """The answer that a results folder of a sweep holds."""
    points, best = points_frame(result), result.cheapest
    columns = [axis.column for axis in result.axes]
    return Answer(
        "sweep",
        result.name,
        lambda: _document(result, points),
        frames={
            "points": points,
            **({"overhead": overhead_frame(result)} if result.mode == "grid" else {}),
        },
        values={
            "mode": result.mode,
            "axes": columns,
            "n_points": result.n_points,
            "reference": result.reference,
            "useful_h": result.useful_h,
            "currency": result.currency,
            "cheapest": best
            and {name: best[name] for name in ("strategy", *columns)} | {COST_MONTH: best["mean"]},
            "accuracy": result.accuracy,
            "warnings": result.warnings,
        },
        rows={"quantities": result.table},
        **about,
    )


# ------------------------------------------------------------------------------ frames


def points_frame(result: SweepResult) -> pd.DataFrame:
    """A row per point and strategy: the axes, and each quantity with its interval."""
    where = [*(axis.column for axis in result.axes), ONE_VARIED]
    numbers = result.table.groupby([*where, "strategy"], sort=False, dropna=False).ngroup()

    def of(quantity: str) -> pd.DataFrame:
        rows = result.of(quantity)
        return rows.set_axis(numbers[rows.index], axis="index")

    overhead = of(OVERHEAD).rename(columns={"n": "replications"})
    about = ["strategy", "save_interval_h", "interval_rule", "replications"]
    frames = [overhead[[*where, *about]]]
    for name, quantity in result.columns.items():
        ends = ["mean", "low", "high"][: 1 if " " in quantity else 3]  # parts of costs have none
        frames.append(of(quantity)[ends].set_axis(_ends(name)[: len(ends)], axis="columns"))
    differences = overhead[_ends("difference")]
    frames.append(differences.set_axis(_ends("difference_fraction"), axis="columns"))
    points: pd.DataFrame = pd.concat(frames, axis="columns")
    return points.assign(cheapest=points.index.isin(numbers[result.best.index]))


def _ends(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]


def overhead_frame(result: SweepResult) -> pd.DataFrame:
    """The overhead as a table: a row per point, such as a save interval, a column per strategy."""
    places = [axis.column for axis in result.axes]
    table = result.of(OVERHEAD).set_index([*places, "strategy"])["mean"].unstack(sort=False)
    return table[list(result.strategies)].rename_axis(columns=None).reset_index()


# ------------------------------------------------------------------------------ the document


def _document(result: SweepResult, points: pd.DataFrame) -> Document:
    touches = _touches(result)
    axes = " and ".join(map(axis_words, result.axes))
    tables = _points_tables(result, points, touches)
    is_small = len(tables[0].rows) <= MOST_POINTS_ON_TERMINAL
    return Document(
        title=f"How the overhead changes along a sweep: {result.name}",
        question=(
            f"How does the overhead of a job of {hours(result.useful_h)} of useful work change "
            f"with {axes}, over {count(result.n_points, 'point')}?"
        ),
        answer=_answer(result, points, touches),
        table=tables[0] if is_small else None,
        remarks=[
            *(f"Warning: {warning}" for warning in result.warnings),
            *_left_out(result),
            *result.accuracy,
            *([] if is_small else ["All points: with -v, on the page, or in sweep.csv."]),
        ],
        sections=[
            Section("The sweep in pictures", _pictures(result)),
            Section("All points", tables[is_small:]),
            *origin(read_manifest(result.path), result.path, "with the values"),
        ],
    )


def _pictures(result: SweepResult) -> list[Picture]:
    """Its figures; the map can be drawn of one strategy, and of any quantity of it."""
    axes = ", ".join(map(axis_words, result.axes))
    of_map = {"strategy": result.strategies, "metric": [*result.columns]}
    return [
        Picture(caption, f"{caption}: {axes}.", draw, name, of_map if name == "map" else {})
        for name, draw in sweep_figures(result).items()
        for caption in [SWEEP_CAPTIONS[name]]
    ]


def _left_out(result: SweepResult) -> list[str]:
    """Strategies that do not save at the interval of an axis, and at how many points."""
    overhead, of = result.table[result.table["quantity"] == OVERHEAD], result.n_points
    off = overhead.loc[result.is_off_axis(overhead), "strategy"].value_counts()
    why = "it does not save at the interval there, and only sweep.csv has what it costs"
    fell = "falls back to full recovery at"
    return [f"{name} {fell} {n:,} of {count(of, 'point')}: {why}." for name, n in off.items()]


def _touches(result: SweepResult) -> Touches:
    touched: dict[str, set[str]] = {name: set() for name in result.strategies}
    for axis in result.axes:
        rows = result.table[result.table[axis.column].notna() | (result.table[ONE_VARIED] == "")]
        others = [another.column for another in result.axes if another is not axis]
        means = rows.groupby(["strategy", "quantity", *others], dropna=False)["mean"]
        has_one = rows[axis.column].nunique(dropna=False) == 1
        for name, most in means.nunique(dropna=False).groupby("strategy").max().items():
            touched[str(name)] |= {axis.column} if most > 1 or has_one else set()
    return touched


def _answer(result: SweepResult, points: pd.DataFrame, touches: Touches) -> list[str]:
    """Who is the cheapest at how many points; then in all, or where each is at its best."""
    counts = points.loc[points["cheapest"], "strategy"].value_counts()
    if counts.empty:
        return ["At no point do all replications of a strategy finish."]
    is_counted = len(result.of(f"{COST_MONTH} {ACCURACY}"))
    is_stale = (result.table["on_failure"] == RELOAD).any()
    counted = ", accuracy not counted" if is_stale and not is_counted else ""
    least = f"{'Least overhead' if result.currency is None else 'Cheapest'}{counted}"
    parts = (f"{name} at {n:,} of {count(result.n_points, 'point')}" for name, n in counts.items())
    shares = [f"{least}: {'; '.join(parts)}."] if len(result.strategies) > 1 else []
    best = result.cheapest
    if best is not None:
        at = _at(best, result, touches[best["strategy"]])
        amount = shown(100 * float(best["mean"]), result.currency or "")
        in_all = f"Cheapest in all{counted}: {best['strategy']}{at}, {amount} for {USEFUL_MONTH}."
        return [*shares, in_all]
    finished = points[points[OVERHEAD].notna()].groupby("strategy", sort=False)[OVERHEAD]
    lowest_of_each = [
        f"{row['strategy']} {_cell(row, OVERHEAD)} %{_at(row, result, touches[row['strategy']])}"
        for row in records_of(points.loc[finished.idxmin()])
    ]
    return [*shares, f"Lowest overhead of each: {'; '.join(lowest_of_each)}."]


def _at(row: Row, result: SweepResult, columns: set[str]) -> str:
    """The values of some axes at a point: ``at mtbf 14 h, interval 38.7 h``."""
    values = [
        f"{name} {value_text(row[axis.column], axis)}"
        for axis, name in zip(result.axes, _short_names(result), strict=True)
        if axis.column in columns and axis.key in row[ONE_VARIED].split()
    ]
    return f" at {', '.join(values)}" if values else ""


def _short_names(result: SweepResult) -> list[str]:
    """The last part of each axis' key, or the whole key where two would be the same."""
    last = [axis.key.rpartition(".")[2] for axis in result.axes]
    pairs = zip(result.axes, last, strict=True)
    return [name if last.count(name) == 1 else axis.key for axis, name in pairs]


# ------------------------------------------------------------------------------ tables


def _caption(result: SweepResult) -> str:
    return (
        f"{result.name}: {hours(result.useful_h)} of useful work, "
        f"{count(result.n_points, 'point')}, {result.replications} each. Overhead in % of "
        f"useful time, ± half of the 95 % interval."
        f"{'' if result.mode == 'grid' else ' Own: as the scenario says.'}"
    )


def _points_tables(result: SweepResult, points: pd.DataFrame, touches: Touches) -> list[Table]:
    """Overhead, cost of a month and losses: a row per point, a column per strategy.

    A strategy that an axis does not touch has one row for all of its values.
    """
    is_grid, axes = result.mode == "grid", _short_names(result)
    values = {axis.column: list(points[axis.column].dropna().unique()) for axis in result.axes}
    untouched = len(points), "any" if is_grid else "own"
    rows: dict[tuple[tuple[int, str], ...], dict[str, Row]] = {}
    for row in records_of(points):
        place = tuple(
            (values[axis.column].index(row[axis.column]), value_text(row[axis.column], axis))
            if axis.column in touches[row["strategy"]] and axis.key in row[ONE_VARIED].split()
            else untouched
            for axis in result.axes
        )
        rows.setdefault(place, {}).setdefault(row["strategy"], row)
    captions = {OVERHEAD: _caption(result)}
    captions |= (
        {} if result.currency is None else {COST_MONTH: f"{result.currency} for {USEFUL_MONTH}"}
    )
    captions |= {loss: loss_heading(loss) for loss in result.losses}
    left = f" The first {MOST_ROWS} of {len(rows):,} rows; all are in sweep.csv."
    return [
        Table(
            caption + (left if len(rows) > MOST_ROWS else ""),
            [*axes, *result.strategies],
            [
                [
                    *(text for _, text in place),
                    *(_cell(of[who], name) if who in of else "" for who in result.strategies),
                ]
                for place, of in sorted(rows.items(), key=lambda item: item[0])[:MOST_ROWS]
            ],
            axes,
            grouped=is_grid and len(result.axes) > 1,
        )
        for name, caption in captions.items()
    ]


def _cell(row: Row, quantity: str) -> str:
    scale = {OVERHEAD: 100.0, COST_MONTH: 1.0}.get(quantity, 1e4)  # losses in ten-thousandths
    return estimated(Estimate(*(row[end] for end in _ends(quantity))), scale)
