"""What ``cprsim sweep`` does between the scenario and the table; heavy to import."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from cprsim.cli.finished import finished_or_make, target_of
from cprsim.cli.interrupts import Kept
from cprsim.cli.progress import progress
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import complain
from cprsim.scenario import LoadedScenario
from cprsim.sweeps import (
    PointStore,
    SweepResult,
    load_sweep,
    points_of,
    require_sweep,
    run_points,
    sweep_result,
    write_sweep,
)
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
    require_sweep(loaded)
    target, store, n_computed = target_of(root, loaded, started, "sweep"), PointStore(root), 0

    def make() -> SweepResult:
        nonlocal n_computed
        points = points_of(loaded)
        kept.say = lambda: store.finished(points)
        with progress("points") as on_progress:
            bodies, n_computed = run_points(points, store, workers, on_progress)
        _tell_damage(store)
        pulse.doing("drawing figures")
        from cprsim.plots.sweep import draw_sweep

        return write_sweep(
            target.with_about(points=len(points)),
            sweep_result(loaded, points, bodies),
            lambda result: draw_sweep(result, result.path),
        )

    instead = "it is made anew from its points"
    result, _ = finished_or_make(target, load_sweep, make, instead=instead, alone=True)
    return result, n_computed


def _tell_damage(store: PointStore) -> None:
    if store.damaged:
        which = f"{store.damaged[0]}" + (", ..." if len(store.damaged) > 1 else "")
        n = len(store.damaged)
        complain(f"cprsim: {n} damaged point{'s' if n > 1 else ''} computed anew: {which}")
