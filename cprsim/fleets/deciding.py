"""What a fleet should do: the cheapest option, what it saves, and which input would reverse it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cprsim.codec import inlined
from cprsim.errors import ParameterError, ScenarioError
from cprsim.estimate import Estimate
from cprsim.fleets.cells import cost_of
from cprsim.fleets.options import Axes, FleetOption, prices_of, run_options, saving, varied
from cprsim.records import Floats
from cprsim.results.sensitivity import MOST_CONTENDERS, Sensitivity, only_prices, sensitivity
from cprsim.results.store import PointStore
from cprsim.scenario import LoadedScenario, Plain
from cprsim.scenario.reading import UNKNOWN, unknown_values
from cprsim.scenario.sweep import Values
from cprsim.workers import Workers


@inlined("sensitivity")
@dataclass(frozen=True, slots=True)
class FleetDecision:
    """The cheapest option, and the present one."""

    best: str
    present: str
    saves: Estimate  # what the best costs less per month, in cents or node-hours
    sensitivity: Sensitivity
    n_left_out: int  # options in which some jobs did not finish


def decide(
    loaded: LoadedScenario,
    options: Sequence[FleetOption],
    axes: Axes,
    workers: Workers,
    store: PointStore,
    on_progress: Callable[[int, int], None] | None = None,
) -> FleetDecision:
    """Recommend the cheapest option that leaves no shard stale, or not more than is accepted.

    Raises ScenarioError: an unknown input that can't be varied; ParameterError: there is no option
    in which all jobs finish.
    """
    able = [one for one in options if one.finished]
    if not able:
        raise ParameterError("under no option do all jobs of the fleet finish: nothing to decide")
    counted = _eligible(loaded, able) or able
    best, present = min(counted, key=lambda one: one.cost), options[0]
    few = contenders(counted, best, present, axes)
    names = [entry.name for entry in loaded.scenario.recovery]

    def costs(all_changes: Sequence[Mapping[str, Plain]]) -> dict[str, Floats]:
        """Cost of options under each of some changes: of all where prices alone change."""
        if only_prices(all_changes):
            scenarios = [varied(loaded, changes, UNKNOWN) for changes in all_changes]
            prices = [prices_of(scenario) for scenario in scenarios]
            return {
                one.name: np.array(
                    [np.mean([cost_of(cell, p) for cell in one.cells]) for p in prices]
                )
                for one in counted
            }
        points = [{**one.where, **changes} for changes in all_changes for one in few]
        numbers = [[names.index(one.strategy)] for _ in all_changes for one in few]
        ran = run_options(loaded, points, workers, store, UNKNOWN, on_progress, numbers)
        found = [one.cost if one.finished else np.inf for one in ran]
        table = np.array(found).reshape(len(all_changes), len(few))
        return {one.name: table[:, place] for place, one in enumerate(few)}

    return FleetDecision(
        best=best.name,
        present=present.name,
        saves=saving(present, best) if present.finished else Estimate(float("nan")),
        sensitivity=sensitivity(loaded, best.name, costs, unknown_of(loaded, axes)),
        n_left_out=len(options) - len(able),
    )


def _eligible(loaded: LoadedScenario, able: Sequence[FleetOption]) -> list[FleetOption]:
    """The options that leave no shard stale, or whose entry says how much of that is accepted."""
    entries = loaded.scenario.recovery
    accepted = {one.name for one in entries if one.target_pls is not None and not one.assumed}
    return [one for one in able if one.strategy in accepted or not one.statistics["pls"].mean > 0.0]


def contenders(
    able: Sequence[FleetOption], best: FleetOption, present: FleetOption, axes: Axes
) -> list[FleetOption]:
    """The options that could be the cheapest if something were otherwise.

    The best, the present, the best of each strategy, and the neighbours of the best on each axis.
    """
    cheapest = sorted(able, key=lambda one: one.cost)
    firsts = {one.strategy: one for one in reversed(cheapest)}
    near = [one for one in cheapest if _are_neighbours(one, best, axes)]
    found = {one.name: one for one in (best, present, *firsts.values(), *near) if one in able}
    return list(found.values())[:MOST_CONTENDERS]


def _are_neighbours(one: FleetOption, other: FleetOption, axes: Axes) -> bool:
    if one.strategy != other.strategy or not (one.where and other.where):
        return False
    mine, others = (
        np.array([values.written.index(option.where[key]) for key, values in axes.items()])
        for option in (one, other)
    )
    return int(abs(mine - others).sum()) == 1


def unknown_of(loaded: LoadedScenario, axes: Axes) -> dict[str, Values]:
    """The values to try of each unknown input.

    Raises ScenarioError where one is an option, or its ends make no scenario.
    """
    found = unknown_values(loaded)
    for key in axes:
        if key in found:
            message = "is varied by --over: what is chosen is not unknown"
            raise ScenarioError.at(loaded.place(UNKNOWN), message, key=f"{UNKNOWN}.{key}")
    return found


# ------------------------------------------------------------------------------ how many spares


@dataclass(frozen=True, slots=True)
class Knee:
    """How many spares are enough for one strategy, of the numbers that were tried."""

    strategy: str
    cheapest: float  # from here on one more costs more than it saves
    nobody_waits: float | None  # from here on; None: at none that was tried
    at_end: bool  # whether the cheapest is the last that was tried, so that more may be better


def knees(options: Sequence[FleetOption], axes: Axes) -> tuple[Knee, ...]:
    """The knee of each strategy's curve of spares, where spares are what is varied alone."""
    key = "fleet.spares"
    if list(axes) != [key]:
        return ()
    most = max(axes[key].numbers or ())
    found = []
    for strategy in dict.fromkeys(one.strategy for one in options):
        able = {
            float(one.where[key]): one
            for one in options
            if one.strategy == strategy and one.where and one.finished
        }
        if not able:
            continue
        cheapest = min(sorted(able), key=lambda n: able[n].cost)
        free = [n for n, one in able.items() if one.statistics["wait_h"].mean == 0.0]
        found.append(Knee(strategy, cheapest, min(free, default=None), cheapest == most))
    return tuple(found)
