"""Scenarios simulated case by case: what their strategies cost, as numbers, lines and bars."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, TypeVar

from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import simulate
from cprsim.files import finite_or_none
from cprsim.plots.chart import Panel, Series
from cprsim.results.metrics import IN_TABLES, spreads, summarise
from cprsim.studies.estimates import StudyEstimate, series
from cprsim.studies.study import Work

Case = TypeVar("Case", bound=Hashable)
OVERHEAD = "overhead, % of useful time"
Values = Mapping[
    str, Mapping[str, Sequence[float | None]]
]  # by strategy, quantity: mean, low, high


@dataclass(frozen=True, slots=True)
class Simulated:
    """Means and 95 % intervals of what the strategies of one scenario cost."""

    values: Values

    def __getitem__(self, key: tuple[str, str]) -> StudyEstimate:
        strategy, quantity = key
        found = self.values[strategy][quantity]
        mean, low, high = (nan if value is None else value for value in found)
        return StudyEstimate(mean, low, high)

    def percent(self, strategy: str, quantity: str = "overhead_fraction") -> StudyEstimate:
        """A share in percent."""
        return self[strategy, quantity].times(100)

    def interval(self, strategy: str) -> str:
        """T_save in hours, and whether CPR went back to full recovery."""
        full = "" if self[strategy, "chose_partial"].mean else " (full)"
        return f"{self[strategy, 'save_interval_h'].mean:.3g}{full}"

    def removed_percent(self, strategy: str, of: str = "full") -> StudyEstimate:
        """Share of one strategy's mean overhead that another removes, in percent.

        Its interval takes the two means as independent; common failures make it narrower in truth.
        """
        left = self[strategy, "overhead_fraction"].over(self[of, "overhead_fraction"])
        return StudyEstimate.around(100 * (1 - left.mean), 100 * left.half_width)

    def stack(self, label: Mapping[str, str]) -> tuple[Series, ...]:
        """Stacked bars of mean overhead by cause, in percent; the interval is that of the total."""
        parts = [part for part in IN_TABLES if any(self[name, part].mean > 0 for name in label)]
        low, high = zip(*(self.percent(name).ends for name in label), strict=True)
        bars = []
        for part in parts:
            y = tuple(self.percent(name, part).mean for name in label)
            interval = (low, high) if part == parts[-1] else ((), ())
            bars.append(Series(part, tuple(label.values()), y, *interval, "stack"))
        return tuple(bars)


def simulate_cases(
    work: Work, scenario: str, cases: Mapping[Case, Sequence[str]]
) -> dict[Case, Simulated]:
    """Simulate one of the study's scenarios under the overrides of each case."""
    parts = {case: partial(_simulated, work, scenario, sets) for case, sets in cases.items()}
    return {case: Simulated(values) for case, values in work.each(parts).items()}


def _simulated(work: Work, scenario: str, overrides: Sequence[str]) -> Values:
    """Mean, low and high of every metric of every strategy; and what is known beforehand."""
    experiment = assemble(work.scenario(scenario, overrides))
    summary = spreads(summarise(simulate(experiment)))
    values = {}
    for policy in experiment.policies:
        metrics = {
            name: [*map(finite_or_none, one.triple)] for name, one in summary[policy.name].items()
        }
        is_partial = policy.decision is None or policy.decision.chosen == "partial"
        values[policy.name] = metrics | {
            "save_interval_h": [finite_or_none(policy.interval_h), None, None],
            "chose_partial": [1.0 if is_partial else 0.0, None, None],
        }
    return values


def overheads_over(
    title: str,
    x_label: str,
    cases: Mapping[Any, Simulated],
    strategies: Mapping[str, str],
    *,
    x_log: bool = False,
    y_log: bool = False,
) -> Panel:
    """A panel with the overhead of some strategies, by their labels, over an input."""
    lines = tuple(
        series(label, map(float, cases), [one.percent(name) for one in cases.values()])
        for name, label in strategies.items()
    )
    return Panel(title, x_label, OVERHEAD, lines, x_log=x_log, y_log=y_log)
