"""Figures of a fleet: where the hours or the money go, and the curve over what was varied."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cprsim.fleets.folder import FleetResult
from cprsim.fleets.options import FleetOption
from cprsim.plots.axes import OVERHEAD_LABEL, words_of_key
from cprsim.plots.chart import Chart, Panel, Series
from cprsim.plots.draw_chart import chart_figure
from cprsim.plots.save import Draw
from cprsim.results.money import USEFUL

OVERHEADS = {"p50": "P50", "overhead": "mean", "p90": "P90", "p95": "P95"}
MOST_OPTIONS = 12  # side by side


def fleet_figures(result: FleetResult) -> dict[str, Draw]:
    """The figures of a fleet, by name."""
    return {name: partial(chart_figure, chart) for name, chart in fleet_charts(result).items()}


def fleet_charts(result: FleetResult) -> dict[str, Chart]:
    """The charts that suit the fleet, by name."""
    charts = {"fleet": _bars(result)}
    if (curve := _curve(result)) is not None:
        charts["curve"] = curve
    return charts


def shown_options(result: FleetResult) -> list[FleetOption]:
    """Those of the scenario's own values, and the best."""
    own = [one for one in result.options if one.where == result.options[0].where]
    best = result.option(result.decision.best)
    return [*own, *([] if best in own else [best])][:MOST_OPTIONS]


def _bars(result: FleetResult) -> Chart:
    options = shown_options(result)
    names = tuple(one.name for one in options)
    overheads = [
        Series(
            label, names, tuple(100 * one.statistics[key].mean for one in options), kind="points"
        )
        for key, label in OVERHEADS.items()
    ]
    first = Panel("Overhead of the jobs", "option", OVERHEAD_LABEL, tuple(overheads))
    return Chart(
        f"{result.name}: {result.n_jobs:,} jobs in {result.window_h:g} h",
        "Every option meets the same failures.",
        (first, _parts(result, options, names)),
    )


def _parts(result: FleetResult, options: list[FleetOption], names: tuple[str, ...]) -> Panel:
    by_option, (scale, what) = [result.parts(one) for one in options], _unit(result)
    parts = dict.fromkeys(part for values in by_option for part in values if part != USEFUL)
    stacks = tuple(
        Series(
            part, names, tuple(values.get(part, 0) / scale for values in by_option), kind="stack"
        )
        for part in parts
        if any(values.get(part) for values in by_option)
    )
    return Panel("What is not useful work", "option", what, stacks)


def _unit(result: FleetResult) -> tuple[float, str]:
    """By what costs are divided to be shown, and their unit."""
    if result.has_money:
        return 100.0, f"{result.currency or 'money'} per month"
    return 1.0, "node-hours per month"


def _curve(result: FleetResult) -> Chart | None:
    """Cost and overhead over the first axis that is numbers, others at their first value."""
    key = next((k for k, values in result.axes.items() if _numbers(values) is not None), None)
    if key is None:
        return None
    values = result.axes[key]
    numbers = _numbers(values)
    held = {k: v[0] for k, v in result.axes.items() if k != key}
    scale, what = _unit(result)
    cost, tail = [], []
    for strategy in dict.fromkeys(one.strategy for one in result.options):
        options = {
            one.where[key]: one
            for one in result.options
            if one.strategy == strategy
            and one.where
            and one.finished
            and all(one.where[k] == v for k, v in held.items())
        }
        pairs = [
            (x, options[v]) for x, v in zip(numbers or (), values, strict=True) if v in options
        ]
        x = tuple(x for x, _ in pairs)
        cost.append(Series(strategy, x, tuple(one.cost / scale for _, one in pairs)))
        p90 = tuple(100 * one.statistics["p90"].mean for _, one in pairs)
        tail.append(Series(strategy, x, p90))
    others = ", ".join(f"{words_of_key(k)} {v}" for k, v in held.items())
    along = words_of_key(key)
    return Chart(
        f"{result.name} over {along}",
        f"At {others}." if others else "Useful work, failures and spares together.",
        (
            Panel("Cost in all", along, what, tuple(cost), y_from_zero=False),
            Panel("Overhead that 90 % of the jobs stay below", along, OVERHEAD_LABEL,
                  tuple(tail)),
        ),
    )  # fmt: skip


def _numbers(values: Sequence[object]) -> tuple[float, ...] | None:
    """Values as numbers in the unit of the first; None where they are words."""
    from cprsim.scenario.sweep import values_along

    return values_along(list(values)).numbers  # type: ignore[arg-type]
