"""What ``cprsim compare-systems`` does between the scenario and the table; heavy to import."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cprsim import pipeline
from cprsim.assemble import assemble
from cprsim.cli.progress import counting, progress
from cprsim.cli.running import failures_digest, inputs_of, logbook_of
from cprsim.cli.selecting import limit_if_any
from cprsim.compare_systems import Comparison, Lineup, best_policies, lineup_of
from cprsim.compare_systems.best import run_of
from cprsim.compare_systems.folder import beside_of, comparison_of, load_comparison, write_beside
from cprsim.curves import chosen_curve, curve_path
from cprsim.plots.save import save_figure
from cprsim.plots.systems import systems_figure
from cprsim.results import Identity, Result, write_result
from cprsim.results.publish import require_writable
from cprsim.results.warnings import warnings
from cprsim.scenario import LoadedScenario, dump_scenario, load_scenario
from cprsim.selector.pricing import affordable


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything that decides a comparison."""

    loaded: LoadedScenario
    lineup: Lineup
    identity: Identity


def asked(path: Path, overrides: list[str], replications: int | None, *, fixed: bool) -> Asked:
    """Read and check all that a comparison needs. Raises CprsimError for what is wrong."""
    loaded = load_scenario(path, overrides)
    limit = limit_if_any(loaded)
    experiment = assemble(loaded, with_policies=False)
    n = replications
    if n is None:
        n = affordable(experiment, tail=limit is not None and limit.risk is not None)
    loaded = load_scenario(path, [*overrides, f"simulation.replications={n}"])
    experiment = assemble(loaded, with_policies=False)
    lineup = lineup_of(loaded, experiment, limit, chosen_curve(loaded), fixed=fixed)
    identity = Identity(
        name=f"{loaded.scenario.name}-systems{'-fixed' if fixed else ''}",
        scenario_yaml=dump_scenario(loaded.scenario),
        inputs=inputs_of(loaded),
    )
    return Asked(loaded, lineup, identity)


def compare_into(root: Path, wanted: Asked, started: datetime) -> Comparison:
    """Find each system's best interval, run all of them, and write the folder under `root`.

    Raises CprsimError for whatever goes wrong; nothing is written then.
    """
    require_writable(root)
    loaded, lineup = wanted.loaded, wanted.lineup
    with counting("candidates simulated") as on_priced:
        found, dropped = best_policies(lineup, on_priced)
    experiment = run_of(lineup, found)
    with progress("simulating") as on_progress:
        outcome = pipeline.simulate(experiment, on_progress=on_progress)
    scenario = loaded.scenario

    def finish(result: Result) -> None:
        said = beside_of(lineup, found, scenario.cluster.shard_bytes)
        write_beside(result.path, said, {**lineup.left_out, **dropped})
        save_figure(systems_figure(comparison_of(result)), result.path / "systems")

    write_result(
        root,
        wanted.identity,
        outcome,
        logbook_of(experiment),
        about={
            "command": ["cprsim", *sys.argv[1:]],
            "seed": scenario.simulation.seed,
            "replications": {s.policy.name: s.costs.n_replications for s in outcome.strategies},
            "failures_digest": failures_digest(loaded),
        },
        started=started,
        draw=finish,
        curve_path=curve_path(loaded),
        log_notes=experiment.log_notes,
        warnings=warnings(experiment),
    )
    return load_comparison(root / wanted.identity.folder_name)
