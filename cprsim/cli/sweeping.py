"""What ``cprsim sweep`` does between the scenario and the table; heavy to import."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from cprsim.cli.finished import found_again
from cprsim.cli.interrupts import Kept
from cprsim.cli.progress import progress
from cprsim.cli.pulse import pulse
from cprsim.cli.running import inputs_of
from cprsim.cli.saying import complain
from cprsim.results import Identity
from cprsim.results.publish import require_writable, sole
from cprsim.results.words import count
from cprsim.scenario import LoadedScenario, dump_scenario
from cprsim.sweeps import (
    Store,
    SweepResult,
    about,
    load_sweep,
    points_of,
    require_sweep,
    run_points,
    sweep_table,
    write_sweep,
)
from cprsim.sweeps.points import Point
from cprsim.sweeps.store import FOLDER
from cprsim.workers import Workers


def sweep_into(
    root: Path, loaded: LoadedScenario, workers: Workers, started: datetime, kept: Kept
) -> tuple[SweepResult, int]:
    """Compute what is missing of a sweep, and write its folder under `root`, or find it there.

    Parameters
    ----------
    kept : learns how many points are finished

    Returns
    -------
    the sweep, and how many points had to be computed

    Raises
    ------
    CprsimError : of whatever goes wrong; finished points are kept
    """
    sweep = require_sweep(loaded)
    require_writable(root)
    identity = _identity(loaded)
    found = found_again(
        root / identity.folder_name, load_sweep, instead="it is made anew from its points"
    )
    if found is not None:
        return found, 0
    points = points_of(loaded)
    store = Store(root)
    kept.say = lambda: _finished(store, points)
    with sole(root / identity.folder_name):
        with progress("points") as on_progress:
            bodies, n_computed = run_points(points, store, workers, on_progress)
        _tell_damage(store)
        axes = sweep.axes()
        experiments = [point.experiment for point in points]
        name, reference = loaded.scenario.name, points[0].reference
        said = about(name, sweep.mode, axes, reference, experiments)
        pulse.doing("drawing figures")
        from cprsim.plots.sweep import draw_sweep

        manifest = {
            "command": ["cprsim", *sys.argv[1:]],
            "seed": loaded.scenario.simulation.seed,
            "points": len(points),
        }
        result = write_sweep(
            root,
            identity,
            said,
            sweep_table(axes, points, bodies),
            manifest=manifest,
            started=started,
            draw=lambda result: draw_sweep(result, result.path),
        )
    return result, n_computed


def _finished(store: Store, points: Sequence[Point]) -> str:
    """How many points are finished, in a clause."""
    digests = {point.digest for point in points}
    n = sum(store.path(digest).is_file() for digest in digests)
    where = store.root / FOLDER
    return f"{n:,} of {count(len(digests), 'point')} are finished and kept in {where}"


def _identity(loaded: LoadedScenario) -> Identity:
    return Identity(
        name=f"{loaded.scenario.name}-sweep",
        scenario_yaml=dump_scenario(loaded.scenario),
        inputs=inputs_of(loaded),
    )


def _tell_damage(store: Store) -> None:
    if store.damaged:
        which = f"{store.damaged[0]}" + (", ..." if len(store.damaged) > 1 else "")
        n = len(store.damaged)
        complain(f"cprsim: {n} damaged point{'s' if n > 1 else ''} computed anew: {which}")
