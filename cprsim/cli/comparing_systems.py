"""What ``cprsim compare-systems`` does between the scenario and the table; heavy to import."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from cprsim import pipeline
from cprsim.assemble import assemble
from cprsim.cli.interrupts import Kept
from cprsim.cli.progress import counting, progress
from cprsim.cli.running import failures_digest, inputs_of, logbook_of
from cprsim.cli.selecting import limit_if_any
from cprsim.compare_systems import Comparison, Lineup, best_policies, lineup_of
from cprsim.compare_systems.best import run_of
from cprsim.compare_systems.folder import beside_of, comparison_of, load_comparison, write_beside
from cprsim.compare_systems.map_folder import SystemsMap, plain_map, write_map
from cprsim.compare_systems.mapping import MapPoint, axes_of, points_of, run_points
from cprsim.curves import chosen_curve, curve_path
from cprsim.plots.save import save_figure
from cprsim.plots.systems import systems_figure
from cprsim.plots.systems_map import systems_map_figure
from cprsim.results import Identity, Result, write_result
from cprsim.results.publish import require_writable, sole
from cprsim.results.warnings import warnings
from cprsim.results.words import count
from cprsim.scenario import LoadedScenario, dump_scenario, load_scenario
from cprsim.scenario.sweep import Axis
from cprsim.selector.pricing import affordable
from cprsim.sweeps import Store
from cprsim.sweeps.store import FOLDER
from cprsim.workers import Workers


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything that decides a comparison."""

    loaded: LoadedScenario
    lineup: Lineup
    identity: Identity


@dataclass(frozen=True, slots=True)
class Rules:
    """How systems are compared: at fixed intervals, and who is (all where nobody is named)."""

    fixed: bool = False
    only: tuple[str, ...] = ()

    def named(self, kind: str) -> str:
        """What a folder's name says of them."""
        chosen = hashlib.sha256(" ".join(sorted(self.only)).encode()).hexdigest()[:6]
        return f"{kind}{f'-of-{chosen}' if self.only else ''}{'-fixed' if self.fixed else ''}"


def asked(path: Path, overrides: list[str], replications: int | None, rules: Rules) -> Asked:
    """Read and check all that a comparison needs. Raises CprsimError for what is wrong."""
    loaded = _with_replications(path, overrides, replications)
    lineup = _lineup(loaded, rules=rules)
    return Asked(loaded, lineup, _identity(loaded, rules.named("systems")))


def _with_replications(
    path: Path, overrides: list[str], n: int | None, axes: Sequence[str] = ()
) -> LoadedScenario:
    """The scenario with a number of replications, by default as many as tell intervals apart."""
    if n is None:
        loaded = load_scenario(path, overrides)
        limit = limit_if_any(loaded)
        experiment = assemble(loaded, with_policies=False)
        n = affordable(experiment, tail=limit is not None and limit.risk is not None)
    said = [*overrides, f"simulation.replications={n}"]
    said += ["sweep.mode=grid"] if axes else []
    return load_scenario(path, said, axes, axes_option="--map")


def _lineup(loaded: LoadedScenario, *, rules: Rules) -> Lineup:
    experiment = assemble(loaded, with_policies=False)
    limit = limit_if_any(loaded)
    curve = chosen_curve(loaded)
    return lineup_of(loaded, experiment, limit, curve, fixed=rules.fixed, only=rules.only)


def _identity(loaded: LoadedScenario, kind: str) -> Identity:
    return Identity(
        name=f"{loaded.scenario.name}-{kind}",
        scenario_yaml=dump_scenario(loaded.scenario),
        inputs=inputs_of(loaded),
    )


@dataclass(frozen=True, slots=True)
class MapAsked:
    """Everything that decides a map; its points are made as they are wanted."""

    loaded: LoadedScenario
    axes: tuple[Axis, ...]
    rules: Rules
    identity: Identity


def map_asked(
    path: Path, overrides: list[str], over: list[str], replications: int | None, rules: Rules
) -> MapAsked:
    """Read and check all that a map needs but its points. Raises CprsimError for what is wrong."""
    loaded = _with_replications(path, overrides, replications, over)
    return MapAsked(loaded, axes_of(loaded), rules, _identity(loaded, rules.named("systems-map")))


def map_into(
    root: Path, wanted: MapAsked, workers: Workers, started: datetime, kept: Kept
) -> SystemsMap:
    """Compute what is missing of a map, and write its folder under `root`.

    Parameters
    ----------
    kept : learns how many points are finished

    Raises
    ------
    CprsimError : of whatever goes wrong; finished points are kept
    """
    require_writable(root)
    points = points_of(wanted.loaded, wanted.axes, partial(_lineup, rules=wanted.rules))
    store = Store(root)
    kept.say = lambda: _finished(store, points)
    with sole(root / wanted.identity.folder_name):
        with progress("points") as on_progress:
            bodies, _ = run_points(points, store, workers, on_progress)
        name, seed = wanted.loaded.scenario.name, wanted.loaded.scenario.simulation.seed
        return write_map(
            root,
            wanted.identity,
            plain_map(name, wanted.rules.fixed, wanted.axes, points, bodies),
            about={"command": ["cprsim", *sys.argv[1:]], "seed": seed, "points": len(points)},
            started=started,
            draw=lambda made: save_figure(systems_map_figure(made), made.path / "map"),
        )


def _finished(store: Store, points: Sequence[MapPoint]) -> str:
    """How many points are finished, in a clause."""
    n = sum(store.path(point.digest).is_file() for point in points)
    where = store.root / FOLDER
    return f"{n:,} of {count(len(points), 'point')} are finished and kept in {where}"


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
        said = beside_of(scenario.name, lineup, found, scenario.cluster.shard_bytes)
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
