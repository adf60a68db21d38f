"""A comparison of recovery systems between the scenario and its results folder; heavy to import."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cprsim.curves import curve_path
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.making.deciding import sensitivity_of
from cprsim.making.options import shortcuts
from cprsim.making.running import logbook_of, with_numbers
from cprsim.making.selecting import Load, limit_if_any
from cprsim.making.watch import Watch
from cprsim.results import Result, write_result
from cprsim.results.folder import ResultTarget, finished_or_make, write_record
from cprsim.results.money import bills_of, cheapest_of, prices_of, used_in
from cprsim.results.run import warnings_of
from cprsim.results.sensitivity import Sensitivity
from cprsim.scenario import LoadedScenario
from cprsim.selector.limit import Limit
from cprsim.selector.pricing import affordable
from cprsim.systems_compared.best import at_their_best
from cprsim.systems_compared.comparison import (
    ABOUT,
    Comparison,
    assumptions,
    facts_of_system,
    load_comparison,
)
from cprsim.systems_compared.contents import contents_kept
from cprsim.systems_compared.lineup import Entrant, Rules, entrants_of


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Everything that decides a comparison."""

    loaded: LoadedScenario
    experiment: Experiment
    limit: Limit | None  # what may be lost of accuracy; None: the scenario says none
    entrants: Sequence[Entrant]
    left_out: Mapping[str, str]  # why, by name
    rules: Rules


def asked(load: Load, replications: int | None, rules: Rules) -> CompareRequest:
    """Read and check all that a comparison needs. Raises CprsimError for what is wrong."""
    if replications is None:
        loaded = load([])
        limit = limit_if_any(loaded)
        experiment = assemble(loaded, with_policies=False)
        replications = affordable(experiment, tail=limit is not None and limit.risk is not None)
    loaded = load(shortcuts(None, replications))
    experiment, limit = assemble(loaded, with_policies=False), limit_if_any(loaded)
    entrants, left_out = entrants_of(loaded, experiment, limit, rules)
    return CompareRequest(loaded, experiment, limit, entrants, left_out, rules)


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
    loaded, found, left_out = wanted.loaded, wanted.entrants, wanted.left_out
    scenario, limit = loaded.scenario, wanted.limit
    if not wanted.rules.fixed:
        with watch.progress("best interval of systems") as on_progress:
            found, dropped = at_their_best(found, wanted.experiment, limit, on_progress)
        left_out = {**left_out, **dropped}
    experiment = replace(wanted.experiment, policies=tuple(one.policy for one in found))
    with watch.progress("simulating") as on_progress:
        outcome = pipeline.simulate(experiment, on_progress=on_progress)

    def finish(result: Result) -> None:
        comparison = Comparison(
            name=scenario.name,
            fixed=wanted.rules.fixed,
            limit=None if limit is None else {"quantity": limit.quantity.value, "most": limit.most},
            facts={one.name: facts_of_system(one, experiment) for one in found},
            left_out=left_out,
            assumed=tuple(assumptions(scenario)),
            result=result,
            today=next((one.name for one in found if one.is_today), ""),
        )
        with watch.counting("values of unknown inputs") as on_priced:
            unsure = _sensitivity(loaded, comparison, on_priced)
        comparison = replace(comparison, sensitivity=unsure)
        if comparison.cheapest is not None and loaded.scenario.silent is not None:
            watch.doing("simulating numbers of contents")
            contents = contents_kept(experiment, comparison.cheapest.policy)
            comparison = replace(comparison, contents=contents)
        write_record(result.path / ABOUT, comparison)
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
        warnings=warnings_of(experiment, scenario.cluster),
    )
    return load_comparison(made.path)


def _sensitivity(
    loaded: LoadedScenario, comparison: Comparison, on_priced: Callable[[], None]
) -> Sensitivity | None:
    """What would make another system the cheapest of those that may be the best."""
    bills = bills_of(prices_of(loaded.scenario), used_in(comparison.result))
    counted = comparison.bills_that_count(bills)
    costs = {name: float(one.month.total_cents) for name, one in counted.items()}
    best = cheapest_of(counted) if counted else None
    if not bills:
        able = [one for one in comparison.standings if one.may_be_best]
        costs = {one.name: one.overhead.mean for one in able}
        best = comparison.best
    if best is None:
        return None
    entries = {name: one.text for name, one in comparison.facts.items()}
    return sensitivity_of(loaded, entries, costs, best, on_priced)
