"""A comparison of recovery systems between the scenario and its results folder; heavy to import."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from cprsim.curves import chosen_curve, curve_path
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import assemble
from cprsim.making.deciding import sensitivity_of
from cprsim.making.options import shortcuts
from cprsim.making.running import logbook_of, with_numbers
from cprsim.making.selecting import Load, limit_if_any
from cprsim.making.watch import Watch
from cprsim.results import Result, write_result
from cprsim.results.folder import FROM_POINTS, ResultTarget, finished_or_make, write_record
from cprsim.results.money import bills_of, cheapest_of, prices_of, used_in
from cprsim.results.sensitivity import Sensitivity
from cprsim.results.store import PointStore
from cprsim.results.warnings import warnings
from cprsim.scenario import LoadedScenario
from cprsim.scenario.sweep import Axis
from cprsim.selector.pricing import affordable
from cprsim.systems_compared.best import best_policies, run_of
from cprsim.systems_compared.folder import (
    BESIDE,
    Comparison,
    compared,
    comparison_of,
    load_comparison,
)
from cprsim.systems_compared.lineup import Lineup, lineup_of
from cprsim.systems_compared.map_folder import SystemsMap, load_map, write_map
from cprsim.systems_compared.mapping import axes_of, points_of, run_points
from cprsim.systems_compared.standings import BEST, bills_that_count, standings
from cprsim.workers import Workers


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Everything that decides a comparison."""

    loaded: LoadedScenario
    lineup: Lineup


@dataclass(frozen=True, slots=True)
class Rules:
    """How systems are compared: at fixed intervals, and who is (all where nobody is named)."""

    fixed: bool = False
    only: tuple[str, ...] = ()
    available: bool = False  # without what a job can't run today

    def named(self, kind: str) -> str:
        """What a folder's name says of them."""
        chosen = hashlib.sha256(" ".join(sorted(self.only)).encode()).hexdigest()[:6]
        words = (f"of-{chosen}" * bool(self.only), "available" * self.available)
        return "-".join(filter(None, (kind, *words, "fixed" * self.fixed)))


def asked(load: Load, replications: int | None, rules: Rules) -> CompareRequest:
    """Read and check all that a comparison needs. Raises CprsimError for what is wrong.

    Parameters
    ----------
    replications : of each system; None: as many as tell intervals apart
    """
    loaded = _with_replications(load, replications)
    return CompareRequest(loaded, _lineup(loaded, rules=rules, today=True))


def _with_replications(load: Load, n: int | None) -> LoadedScenario:
    if n is None:
        loaded = load([])
        limit = limit_if_any(loaded)
        experiment = assemble(loaded, with_policies=False)
        n = affordable(experiment, tail=limit is not None and limit.risk is not None)
    return load(shortcuts(None, n))


def _lineup(loaded: LoadedScenario, *, rules: Rules, today: bool = False) -> Lineup:
    experiment = assemble(loaded, with_policies=False)
    limit = limit_if_any(loaded)
    curve = chosen_curve(loaded)
    return lineup_of(
        loaded, experiment, limit, curve,
        fixed=rules.fixed, only=rules.only, available=rules.available, today=today,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MapAsked:
    """Everything that decides a map; its points are made as they are wanted."""

    loaded: LoadedScenario
    axes: tuple[Axis, ...]
    rules: Rules


def map_asked(load: Load, replications: int | None, rules: Rules) -> MapAsked:
    """Read and check all that a map needs but its points. Raises CprsimError for what is wrong."""
    loaded = _with_replications(load, replications)
    return MapAsked(loaded, axes_of(loaded), rules)


def map_into(
    target: ResultTarget,
    wanted: MapAsked,
    workers: Workers,
    watch: Watch,
    keeps: Callable[[Callable[[], str]], object],
) -> tuple[SystemsMap, bool]:
    """Compute what is missing of a map and write its folder, or find it there.

    Parameters
    ----------
    keeps : is handed what says how many points are finished, once there are points

    Returns
    -------
    the map, and whether it was there already

    Raises
    ------
    CprsimError : of whatever goes wrong; finished points are kept
    """

    def draw(made: SystemsMap) -> None:
        from cprsim.plots.save import save_figures
        from cprsim.plots.systems_map import systems_map_figures

        save_figures(systems_map_figures(made), made.path)

    def make() -> SystemsMap:
        points = points_of(wanted.loaded, wanted.axes, partial(_lineup, rules=wanted.rules))
        store = PointStore(target.root)
        keeps(lambda: store.finished(points))
        with watch.progress("points") as on_progress:
            bodies, _ = run_points(points, store, workers, on_progress)
        about = target.with_about(points=len(points))
        name = wanted.loaded.scenario.name
        return write_map(about, name, wanted.rules.fixed, wanted.axes, points, bodies, draw)

    return finished_or_make(
        target.folder, load_map, make, warn=watch.warn, instead=FROM_POINTS, alone=True
    )


def compare_into(
    target: ResultTarget, wanted: CompareRequest, watch: Watch, *, draws: bool = True
) -> tuple[Comparison, bool]:
    """Find each system's best interval, run all of them and write the folder, or find it there.

    Parameters
    ----------
    draws : whether the figure goes into the folder

    Returns
    -------
    the comparison, and whether it was there already

    Raises
    ------
    CprsimError : of whatever goes wrong; nothing is written then
    """

    def make() -> Comparison:
        return _compare(target, wanted, watch, draws=draws)

    return finished_or_make(target.folder, load_comparison, make, warn=watch.warn)


def _compare(
    target: ResultTarget, wanted: CompareRequest, watch: Watch, *, draws: bool
) -> Comparison:
    loaded, lineup = wanted.loaded, wanted.lineup
    with watch.progress("best interval of systems") as on_progress:
        found, dropped = best_policies(lineup, on_progress)
    experiment = run_of(lineup, found)
    with watch.progress("simulating") as on_progress:
        outcome = pipeline.simulate(experiment, on_progress=on_progress)

    def finish(result: Result) -> None:
        comparison = compared(result, loaded.scenario, lineup, found, dropped)
        with watch.counting("values of unknown inputs") as on_priced:
            unsure = _sensitivity(loaded, comparison, on_priced)
        comparison = replace(comparison, sensitivity=unsure)
        write_record(result.path / BESIDE, comparison)
        if draws:
            from cprsim.plots.save import save_figures
            from cprsim.plots.systems import systems_figures

            watch.doing("drawing figures")
            save_figures(systems_figures(comparison), result.path)

    made = write_result(
        with_numbers(target, loaded, outcome),
        outcome,
        logbook_of(experiment),
        draw=finish,
        curve_path=curve_path(loaded),
        log_notes=experiment.log_notes,
        warnings=warnings(experiment, loaded.scenario.cluster),
    )
    return comparison_of(made)


def _sensitivity(
    loaded: LoadedScenario, comparison: Comparison, on_priced: Callable[[], None]
) -> Sensitivity | None:
    """What would make another system the cheapest of those that may be the best."""
    found = standings(comparison)
    bills = bills_of(prices_of(loaded.scenario), used_in(comparison.result))
    counted = bills_that_count(found, bills)
    costs = {name: float(one.month.total_cents) for name, one in counted.items()}
    best = cheapest_of(counted) if counted else None
    if not bills:
        able = [one for one in found if one.may_be_best and one.finishes]
        costs = {one.name: one.overhead.mean for one in able}
        best = next((one.name for one in found if one.verdict == BEST), None)
    if best is None:
        return None
    entries = {name: one.text for name, one in comparison.beside.items()}
    return sensitivity_of(loaded, entries, costs, best, on_priced)
