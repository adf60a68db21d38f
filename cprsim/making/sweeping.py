"""A sweep between the scenario and its results folder; heavy to import."""

from __future__ import annotations

from collections.abc import Callable

from cprsim.making.watch import Watch
from cprsim.results.folder import FROM_POINTS, ResultTarget, finished_or_make
from cprsim.results.store import PointStore
from cprsim.scenario import LoadedScenario
from cprsim.sweeps.folder import SweepResult, load_sweep, sweep_result, write_sweep
from cprsim.sweeps.points import points_of, require_sweep
from cprsim.sweeps.running import run_points
from cprsim.workers import Workers


def sweep_into(
    target: ResultTarget,
    loaded: LoadedScenario,
    workers: Workers,
    watch: Watch,
    *,
    keeps: Callable[[Callable[[], str]], object] = lambda say: None,
    draws: bool = True,
) -> tuple[SweepResult, int]:
    """Compute what is missing of a sweep, and write its folder, or find it there.

    Raises CprsimError: of whatever goes wrong; finished points are kept.
    """
    require_sweep(loaded)
    store, n_computed = PointStore(target.root), 0

    def make() -> SweepResult:
        nonlocal n_computed
        points = points_of(loaded)
        keeps(lambda: store.finished(points))
        with watch.progress("points") as on_progress:
            bodies, n_computed = run_points(points, store, workers, on_progress)
        _tell_damage(store, watch)
        return write_sweep(
            target.with_about(points=len(points)),
            sweep_result(loaded, points, bodies),
            draw if draws else lambda result: None,
        )

    def draw(result: SweepResult) -> None:
        from cprsim.plots.save import save_figures
        from cprsim.plots.sweep import sweep_figures

        watch.doing("drawing figures")
        save_figures(sweep_figures(result), result.path)

    result, _ = finished_or_make(
        target.folder, load_sweep, make, warn=watch.warn, instead=FROM_POINTS, alone=True
    )
    return result, n_computed


def _tell_damage(store: PointStore, watch: Watch) -> None:
    if store.damaged:
        which = f"{store.damaged[0]}" + (", ..." if len(store.damaged) > 1 else "")
        n = len(store.damaged)
        watch.warn(f"{n} damaged point{'s' if n > 1 else ''} computed anew: {which}")
