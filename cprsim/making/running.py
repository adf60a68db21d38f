"""A run between the scenario and its results folder; heavy to import."""

from __future__ import annotations

from cprsim.curves import curve_path
from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment
from cprsim.making.watch import Watch
from cprsim.records import STATE
from cprsim.results.folder import ResultTarget, finished_or_make
from cprsim.results.identity import failures_digest
from cprsim.results.run import Logbook, Price, Result, load_result, warnings_of, write_result
from cprsim.scenario import LoadedScenario
from cprsim.scenario.failures import ANY
from cprsim.scenario.prices import mean_node_hour

SHOWN = 0  # the replication of the timeline, where none is asked for


def simulate_into(
    target: ResultTarget,
    loaded: LoadedScenario,
    experiment: Experiment,
    watch: Watch,
    *,
    draws: bool = True,
) -> tuple[Result, bool]:
    """Simulate and write the results folder, or find it there.

    Raises CprsimError: of whatever goes wrong; nothing is written then.
    """

    def draw(result: Result) -> None:
        from cprsim.plots.run import run_figures
        from cprsim.plots.save import save_figures

        watch.doing("drawing figures")
        save_figures(run_figures(result), result.path)

    def make() -> Result:
        outcome, logbook = _simulate(experiment, target.identity.replay, watch)
        return write_result(
            with_numbers(target, loaded, outcome),
            outcome,
            logbook,
            draw=draw if draws else None,
            curve_path=curve_path(loaded),
            log_notes=experiment.log_notes,
            warnings=warnings_of(experiment, loaded.scenario.cluster),
            price=_price(loaded),
        )

    return finished_or_make(target.folder, load_result, make, warn=watch.warn)


def with_numbers(
    target: ResultTarget, loaded: LoadedScenario, outcome: pipeline.Outcome
) -> ResultTarget:
    """What the manifest of a run says besides: numbers of replications, and which failures."""
    return target.with_about(
        replications={one.policy.name: one.costs.n_replications for one in outcome.strategies},
        failures_digest=failures_digest(loaded),
    )


def _price(loaded: LoadedScenario) -> Price | None:
    prices = loaded.scenario.prices
    if prices is None or not prices.node_hour:
        return None
    nodes = {role: n for role, n in loaded.scenario.n_nodes_of.items() if role not in (ANY, STATE)}
    return Price(mean_node_hour(prices, nodes), prices.label)


def _simulate(
    experiment: Experiment, replay: int | None, watch: Watch
) -> tuple[pipeline.Outcome, Logbook]:
    if replay is not None:
        return pipeline.outcome_of_one(experiment, replay), logbook_of(experiment, replay)
    with watch.progress("simulating") as on_progress:
        outcome = pipeline.simulate(experiment, on_progress=on_progress)
    return outcome, logbook_of(experiment)


def logbook_of(experiment: Experiment, replication: int = SHOWN) -> Logbook:
    """The event logs of one replication; by default of the one shown where none is asked for."""
    return Logbook(replication, pipeline.replay(experiment, replication, whole=False))
