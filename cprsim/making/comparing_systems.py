"""A comparison of recovery systems between the scenario and its results folder; heavy to import."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from cprsim.curves import chosen_curve, curve_path
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import assemble
from cprsim.making.deciding import sensitivity_of
from cprsim.making.options import shortcuts
from cprsim.making.running import logbook_of, with_numbers
from cprsim.making.selecting import Load, limit_if_any
from cprsim.making.watch import Watch
from cprsim.results import Result, write_result
from cprsim.results.folder import ResultTarget, finished_or_make, write_record
from cprsim.results.money import bills_of, cheapest_of, prices_of, used_in
from cprsim.results.sensitivity import Sensitivity
from cprsim.results.warnings import warnings
from cprsim.scenario import LoadedScenario
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
from cprsim.systems_compared.standings import BEST, bills_that_count, standings


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
    """Read and check all that a comparison needs. Raises CprsimError for what is wrong."""
    if replications is None:
        loaded = load([])
        limit = limit_if_any(loaded)
        experiment = assemble(loaded, with_policies=False)
        tail = limit is not None and limit.risk is not None
        replications = affordable(experiment, tail=tail)
    loaded = load(shortcuts(None, replications))
    lineup = lineup_of(
        loaded,
        assemble(loaded, with_policies=False),
        limit_if_any(loaded),
        chosen_curve(loaded),
        fixed=rules.fixed,
        only=rules.only,
        available=rules.available,
        today=True,
    )
    return CompareRequest(loaded, lineup)


def compare_into(
    target: ResultTarget, wanted: CompareRequest, watch: Watch, *, draws: bool = True
) -> tuple[Comparison, bool]:
    """Find each system's best interval, run all of them and write the folder, or find it there.

    Raises CprsimError: of whatever goes wrong; nothing is written then.
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
