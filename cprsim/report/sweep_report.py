"""Everything that `cprsim sweep` prints: heading, a line per strategy, where the results are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from cprsim.present.terminal import plain_table, print_whole, say
from cprsim.report.as_json import number
from cprsim.report.run_table import AUC_LOSS
from cprsim.results import Spread
from cprsim.results.words import NO_NUMBER, count, hours, ten_thousandths, with_interval
from cprsim.sweeps import Extreme, Summary, SweepResult, summaries


def print_sweep(console: Console, result: SweepResult, n_computed: int) -> None:
    """Print what a sweep found.

    Parameters
    ----------
    console : where to; wraps sentences on a terminal and leaves them whole in a pipe
    result : what was found
    n_computed : points that were not there already
    """
    say(console, _heading(result))
    console.print()
    print_whole(console, _table(result))
    console.print()
    for sentence in (*result.accuracy, *(f"Warning: {one}" for one in result.warnings)):
        say(console, sentence)
    there = result.n_points - n_computed
    kept = f" ({there:,} of the points were there already)" if there > 0 else ""
    say(console, f"results  {result.path}{kept}")
    for path in sorted(result.path.glob("*.png")):
        say(console, f"figure   {path}")


def sweep_as_json(result: SweepResult, n_computed: int) -> dict[str, Any]:
    """The object that ``cprsim sweep --json`` prints."""
    return {
        "name": result.name,
        "mode": result.mode,
        "axes": [axis.column for axis in result.axes],
        "points": result.n_points,
        "computed": n_computed,
        "reference": result.reference,
        "accuracy": list(result.accuracy),
        "warnings": list(result.warnings),
        "results": str(result.path),
        "figures": [str(path) for path in sorted(result.path.glob("*.png"))],
        "strategies": [_as_json(summary) for summary in summaries(result)],
    }


def _as_json(summary: Summary) -> dict[str, Any]:
    return {
        "name": summary.strategy,
        "lowest": summary.lowest and _extreme_as_json(summary.lowest),
        "highest": summary.highest and _extreme_as_json(summary.highest),
        "less_than_reference": summary.n_less,
        "more_than_reference": summary.n_more,
        "points": summary.n_points,
        "engines": list(summary.engines),
    }


def _extreme_as_json(extreme: Extreme) -> dict[str, Any]:
    return {
        "where": dict(extreme.where),
        "save_interval_h": number(extreme.save_interval_h),
        **_interval(extreme),
        **({} if extreme.auc_loss is None else {"auc_loss": _interval(extreme.auc_loss)}),
    }


def _interval(spread: Extreme | Spread) -> dict[str, float | None]:
    return {name: number(getattr(spread, name)) for name in ("mean", "low", "high")}


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


def _table(result: SweepResult) -> Any:
    out = plain_table()
    out.add_column("strategy", no_wrap=True)
    for heading in ("lowest\noverhead", "highest\noverhead"):
        out.add_column(heading, justify="right", no_wrap=True)
        out.add_column("at", justify="left")
        if result.knows_loss:
            out.add_column(AUC_LOSS, justify="right", no_wrap=True)
    out.add_column(f"less than\n{result.reference} at", justify="right", no_wrap=True)
    out.add_column("more\nat", justify="right", no_wrap=True)
    names = _short_names(result)
    for summary in summaries(result):
        out.add_row(
            summary.strategy,
            *_cells(summary.lowest, names, result.knows_loss),
            *_cells(summary.highest, names, result.knows_loss),
            *_compared(summary, result.reference),
        )  # fmt: skip
    return out


def _short_names(result: SweepResult) -> dict[str, str]:
    """By column, the last part of each key, or the whole key where two would be the same."""
    last = {axis.column: axis.key.rpartition(".")[2] for axis in result.axes}
    taken = list(last.values())
    return {
        axis.column: last[axis.column] if taken.count(last[axis.column]) == 1 else axis.key
        for axis in result.axes
    }


def _cells(extreme: Extreme | None, names: Mapping[str, str], priced: bool) -> tuple[str, ...]:
    """Overhead, where it is so, and where losses are priced what AUC it costs there."""
    if extreme is None:
        nowhere = NO_NUMBER, "no point at which every replication finishes"
        return (*nowhere, NO_NUMBER) if priced else nowhere
    half_width = 100 * (extreme.high - extreme.low) / 2
    shown = with_interval(float(100 * extreme.mean), half_width)
    there = extreme.where.items()
    where = ", ".join(_at(column, names[column], value) for column, value in there)
    if not priced:
        return shown, where
    loss = extreme.auc_loss
    return shown, where, NO_NUMBER if loss is None else ten_thousandths(loss.mean, loss.half_width)


def _at(column: str, name: str, value: Any) -> str:
    """``save 30 s`` from the table's column ``costs.save [s]``."""
    unit = column.partition(" [")[2].rstrip("]")
    said = f"{value:.3g}" if isinstance(value, float) else str(value)
    return f"{name} {said} {unit}".rstrip()


def _compared(summary: Summary, reference: str) -> tuple[str, str]:
    if summary.strategy == reference:
        return NO_NUMBER, NO_NUMBER
    return f"{summary.n_less:,} of {summary.n_points:,}", f"{summary.n_more:,}"
