"""Figures of a fleet: hours or money by part, and the curve over the varied key."""

from __future__ import annotations

from functools import partial

from cprsim.commands.fleet.folder import FleetResult
from cprsim.commands.fleet.options import FleetOption
from cprsim.pages.chart import Chart, Panel, Series, chart_figure
from cprsim.pages.figures import OVERHEAD_LABEL, Draw, words_of_key
from cprsim.results.money import USEFUL
from cprsim.results.words import count
from cprsim.scenario.job import values_along

OVERHEADS = {
    "p50_fraction": "P50", "overhead_fraction": "mean", "p90_fraction": "P90",
    "p95_fraction": "P95",
}  # fmt: skip
MOST_OPTIONS = 8  # side by side


def fleet_figures(result: FleetResult) -> dict[str, Draw]:
    """The figures of a fleet, by name; the curve needs an axis of numbers."""
    charts = {"fleet": _bars(result), "curve": _curve(result)}
    return {
        name: partial(chart_figure, chart) for name, chart in charts.items() if chart is not None
    }


def shown_options(result: FleetResult) -> list[FleetOption]:
    """All options; of many, those at the values of the present one, and the best."""
    if len(result.options) <= MOST_OPTIONS:
        return [*result.options]
    best, present = map(result.option, (result.decision.best, result.decision.present))
    at_own_values = [option for option in result.options if option.where == present.where]
    return [*at_own_values, *([] if best in at_own_values else [best])][:MOST_OPTIONS]


def _bars(result: FleetResult) -> Chart:
    """Percentiles of the overhead of each option, and its cost by part."""
    options, (scale, unit) = shown_options(result), _unit(result)
    names = tuple(option.name for option in options)
    overheads = (
        Series(label, names, tuple(100 * o.statistics[key].mean for o in options), kind="points")
        for key, label in OVERHEADS.items()
    )
    costs = [result.parts(option) for option in options]
    parts = dict.fromkeys(part for values in costs for part in values if part != USEFUL)
    stacks = (
        Series(part, names, tuple(cost.get(part, 0) / scale for cost in costs), kind="stack")
        for part in parts
        if any(cost.get(part) for cost in costs)
    )
    return Chart(
        f"Overhead and cost of {len(options)} of {len(result.options)} options: {result.name}",
        f"{count(result.n_jobs, 'job')} in {result.window_h:g} h; options share their failures.",
        (
            Panel("Overhead of the jobs", "option", OVERHEAD_LABEL, tuple(overheads)),
            Panel("Cost besides useful work", "option", unit, tuple(stacks)),
        ),
    )


def _unit(result: FleetResult) -> tuple[float, str]:
    """The divisor and the unit of the shown costs; of one job alone per month of its work."""
    month = "month of work" if result.is_work else "month"
    if result.has_money:
        return 100.0, f"{result.currency or 'money'} per {month}"
    return 1.0, f"node-hours per {month}"


def _curve(result: FleetResult) -> Chart | None:
    """Cost and overhead over the first numeric axis; other axes at their first value."""
    axes = {key: values_along(list(values)) for key, values in result.axes.items()}
    key = next((key for key, axis in axes.items() if axis.numbers is not None), None)
    if key is None:
        return None
    x_of = dict(zip(result.axes[key], axes[key].listed, strict=True))
    fixed = {k: values[0] for k, values in result.axes.items() if k != key}
    scale, unit = _unit(result)
    cost, tail = [], []
    for strategy in dict.fromkeys(option.strategy for option in result.options):
        by_value = {
            option.where[key]: option
            for option in result.options
            if option.strategy == strategy and option.finished and key in option.where
            and fixed.items() <= dict(option.where).items()
        }  # fmt: skip
        options = [by_value[value] for value in x_of if value in by_value]
        x = tuple(x for value, x in x_of.items() if value in by_value)
        cost.append(Series(strategy, x, tuple(option.cost / scale for option in options)))
        p90 = tuple(100 * option.statistics["p90_fraction"].mean for option in options)
        tail.append(Series(strategy, x, p90))
    fixed_words = ", ".join(f"{words_of_key(k)} {v}" for k, v in fixed.items())
    along, x_unit = words_of_key(key), axes[key].unit
    label = f"{along} [{x_unit}]" if x_unit else along
    return Chart(
        f"Cost and overhead over {along}: {result.name}",
        f"At {fixed_words}." if fixed_words else "Useful work, failures and spares together.",
        (
            Panel("Total cost", label, unit, tuple(cost), y_from_zero=False),
            Panel("Overhead that 90 % of the jobs stay below", label, OVERHEAD_LABEL, tuple(tail)),
        ),
    )
