"""``sweep``: a scenario at every combination of some values."""

from __future__ import annotations

from typing import Annotated, Literal

from cprsim.commands import command, options
from cprsim.commands.sweep.answer import answer_of_sweep
from cprsim.commands.sweep.figures import sweep_figures
from cprsim.commands.sweep.folder import SweepResult, load_sweep, sweep_result, write_sweep
from cprsim.commands.sweep.points import points_of, require_sweep, run_points
from cprsim.errors import ParameterError, watch
from cprsim.pages.answer import Answer
from cprsim.pages.figures import drawing
from cprsim.results.folder import ResultTarget, load_or_compute
from cprsim.results.store import PointStore
from cprsim.results.words import count
from cprsim.workers import Workers


@command("cprsim sweep quickstart --over failures.mtbf=4h:16h:log3")
def sweep(
    scenario: options.ScenarioLike,
    over: options.Over = (),
    overrides: options.Overrides = (),
    *,
    mode: Literal["grid", "one-at-a-time"] | None = None,
    seed: options.Seed = None,
    replications: int | None = None,
    precision: Annotated[str | float | None, options.CliOption(metavar="SHARE")] = None,
    workers: options.Workers = None,
    dask: options.Dask = None,
    folder: options.ResultsFolder = None,
) -> Answer:
    """Simulate a scenario at every combination of some values.

    Points with the same failure settings are simulated on the same failures. Finished points are
    stored: the same command continues where it was stopped, a longer axis computes its new points.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`.
    over : mapping or sequence of str, optional
        Values of one key, e.g. costs.save='30 s:10 min:log12', cluster.emb_ps=4:64:lin5 or
        failures.mtbf='14 h,28 h'; may be repeated. Default: the scenario's section 'sweep'.
    mode : {"grid", "one-at-a-time"}, optional
        Every combination, or each axis alone; default: the scenario's, or grid.
    seed : int, optional
        Seed of all random numbers; default: the scenario's.
    replications : int, optional
        Replications of each point; default: the scenario's.
    precision : str or float, optional
        Simulate until the half-width of the 95 % interval of every mean overhead is this share
        of it: 0.5%, or 0.005.
    workers : int, optional
        Processes on this machine; default: one per core.
    dask : str, optional
        Scheduler of a dask cluster that does the work.
    folder : str or Path, optional
        Folder of the results folders and of finished points. None: nothing is kept.

    Returns
    -------
    Answer
        ``frames["points"]``: a row per point and strategy, with the quantities of docs/concepts.md
        and the difference from the reference. ``rows["quantities"]``: a row per point, strategy and
        quantity.

    Raises
    ------
    CprsimError
        The scenario, an axis or a point is wrong.

    Examples
    --------
    >>> swept = cprsim.sweep("quickstart", {"failures.mtbf": ["4 h", "16 h"]}, replications=100)
    >>> points = swept.frames["points"].query("strategy == 'full'")
    >>> points[["failures.mtbf_h", "overhead_fraction"]].round(2).values.tolist()
    [[4.0, 0.16], [16.0, 0.07]]
    """
    if replications is not None and precision is not None:
        message = "it replaces a number of replications: give one of the two"
        raise ParameterError(message, option="--precision")
    if isinstance(precision, float):
        precision = f"{100 * precision:.12g} %"
    changes = options.shortcuts(seed=seed, replications=replications, precision=precision)
    changes += options.shortcuts("sweep", mode=mode)
    loaded = options.source_of(scenario, overrides).read(changes, options.assignments(over))

    require_sweep(loaded)

    pool = Workers(workers, "dask" if dask else "local", dask)

    def simulated(target: ResultTarget) -> SweepResult:
        store, points = PointStore(target.root), points_of(loaded)
        watch.keeps(lambda: store.finished(points))
        with watch.progress("points") as on_progress:
            bodies = run_points(points, store, pool, on_progress)
        if store.damaged:
            names = ", ".join(map(str, store.damaged))
            watch.warn(f"{count(len(store.damaged), 'damaged point')} computed anew: {names}")
        result = sweep_result(loaded, points, bodies)
        return write_sweep(target, result, drawing(folder, sweep_figures))

    stored = load_or_compute(folder, loaded, load_sweep, simulated, kind="sweep", one_writer=True)
    return answer_of_sweep(stored.made, **stored.about())
