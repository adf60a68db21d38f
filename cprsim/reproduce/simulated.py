"""A scenario simulated, as numbers that a part of a study can keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

from cprsim.assemble import Experiment, assemble
from cprsim.pipeline import simulate
from cprsim.plots.chart import Series
from cprsim.records import PARTS, RecoveryPolicy
from cprsim.reproduce.verdicts import Ours
from cprsim.results.metrics import spreads, summarise
from cprsim.scenario import LoadedScenario

STACKED = ("save", "load", "lost", "detect", "wait", "reschedule")  # bottom to top


@dataclass(frozen=True, slots=True)
class Simulated:
    """Means and 95 % intervals of what the strategies of one scenario cost."""

    values: Mapping[str, Mapping[str, Sequence[float | None]]]  # mean, low, high

    def __getitem__(self, key: tuple[str, str]) -> Ours:
        strategy, quantity = key
        return Ours(*(nan if value is None else value for value in self.values[strategy][quantity]))

    def percent(self, strategy: str, quantity: str = "overhead_fraction") -> Ours:
        """A share in percent."""
        one = self[strategy, quantity]
        return Ours(100 * one.value, 100 * one.low, 100 * one.high)

    @property
    def strategies(self) -> tuple[str, ...]:
        return tuple(self.values)

    def stack(self, label: Mapping[str, str]) -> tuple[Series, ...]:
        """Stacked bars of mean overhead by cause, in percent; the interval is that of the total.

        Parameters
        ----------
        label : what stands below the bar of each strategy
        """
        names = list(label)
        parts = [part for part in STACKED if any(self[name, part].value > 0 for name in names)]
        totals = [self.percent(name) for name in names]
        x = tuple(label[name] for name in names)
        bars = []
        for part in parts:
            y = tuple(self.percent(name, part).value for name in names)
            ends = part == parts[-1]
            low = tuple(one.ends[0] for one in totals) if ends else ()
            high = tuple(one.ends[1] for one in totals) if ends else ()
            bars.append(Series(part, x, y, low, high, "stack"))
        return tuple(bars)


def simulated(experiment: Experiment) -> dict[str, dict[str, list[float | None]]]:
    """Simulate, and give mean, low and high of every metric of every strategy."""
    found: dict[str, dict[str, list[float | None]]] = {}
    summary = spreads(summarise(simulate(experiment)))
    for policy in experiment.policies:
        metrics = {
            name: [_number(one.mean), _number(one.low), _number(one.high)]
            for name, one in summary[policy.name].items()
        }
        found[policy.name] = {**metrics, **_planned(policy)}
    return found


def of_scenario(loaded: LoadedScenario) -> dict[str, Any]:
    """`simulated`, from a scenario."""
    return simulated(assemble(loaded))


def removed_percent(ours: Simulated, strategy: str, of: str = "full") -> Ours:
    """Share of one strategy's mean overhead that another removes, in percent.

    Its interval takes the two means as independent; common failures make it narrower in truth.
    """
    less, more = ours[strategy, "overhead_fraction"], ours[of, "overhead_fraction"]
    value = 100 * (1 - less.value / more.value)
    relative = sum(
        ((one.ends[1] - one.ends[0]) / 2 / one.value) ** 2 for one in (less, more) if one.value
    ) ** 0.5  # fmt: skip
    half = 100 * less.value / more.value * relative
    return Ours(value, value - half, value + half)


def _planned(policy: RecoveryPolicy) -> dict[str, list[float | None]]:
    """What is known beforehand: the interval, and whether CPR recovers partially."""
    partial = 1.0 if policy.decision is None or policy.decision.chosen == "partial" else 0.0
    return {
        "save_interval_h": [_number(policy.save_interval_h), None, None],
        "chose_partial": [partial, None, None],
    }


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None


assert set(STACKED) == set(PARTS)
