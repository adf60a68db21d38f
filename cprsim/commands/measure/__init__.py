"""``measure``: the accuracy that a model loses by stale shards."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Annotated

from annotated_types import Ge, Le

from cprsim.accuracy.curve_file import read_curve, write_curve
from cprsim.commands import command, options
from cprsim.commands.measure.answer import answer_of_curve
from cprsim.errors import ParameterError, watch
from cprsim.files.units import SHARE, TIME
from cprsim.job.losses import Metric
from cprsim.pages.answer import Answer
from cprsim.results.folder import StoredResult, require_writable
from cprsim.scenario.curves import digests_of, option_files
from cprsim.training.kernel.weights import TrainableModel
from cprsim.training.measuring.curve import curve_file
from cprsim.training.measuring.design import design_of, measurable
from cprsim.training.measuring.expectation import Expected, check_trainer, expect
from cprsim.training.measuring.measure import Measured, MeasureRequest
from cprsim.training.measuring.measure import measure as run
from cprsim.training.measuring.own_code import require_allowed
from cprsim.training.measuring.runs import n_finished, own_model, setting_of
from cprsim.workers import Workers

CURVE_FOLDER = Path("results") / "curves"


@command("cprsim measure criteo-kaggle --budget '30 min' --out curve.json")
def measure(
    scenario: options.ScenarioLike,
    overrides: options.Overrides = (),
    *,
    file: Annotated[str | Path | None, options.CliOption("--out", "FILE")] = None,
    seeds: Annotated[int | None, Ge(3), Le(10_000), options.CliOption(metavar="N")] = None,
    precision: Annotated[str | float, options.CliOption(metavar="SHARE")] = "20 %",
    budget: Annotated[str, options.CliOption(metavar="TIME")] = "10 min",
    strategies: Annotated[
        Sequence[str], options.CliOption("--strategy", "NAME", many=True, complete="tracker")
    ] = (),
    metrics: Annotated[Sequence[str], options.CliOption("--metric", "NAME", many=True)] = (),
    workers: options.Workers = None,
    dask: options.Dask = None,
    allow_code: options.AllowCode = False,
) -> Answer:
    """Measure the accuracy lost by stale shards.

    The answer is a staleness curve. The model of the scenario's section 'kernel' is trained many
    times with controlled failures, and each run is compared with its twin without failures.
    Finished runs are stored in FILE.runs: the same command continues where it was stopped. Workers
    of a cluster write there too: they need the same file system.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`.
    file : str or Path, optional
        The curve to write (.json); default: results/curves/NAME.json.
    seeds : int, optional
        Run this number of seeds; default: as many as precision and budget ask for.
    precision : str or float, default "20 %"
        Stop when the standard error of every slope is at most this share of partial's slope.
    budget : str, default "10 min"
        Start no run after this time; the same command continues.
    strategies : sequence of str, optional
        Strategies to measure, partial among them; may be repeated. Default: all.
    metrics : sequence of str, optional
        Further metrics of the curve, such as ne or calibration; may be repeated. Default: all of
        your own trainer, none of the built-in model.
    workers : int, optional
        Processes on this machine; default: one per core.
    dask : str, optional
        Scheduler of a dask cluster that trains, instead of this machine.
    allow_code : bool, default False
        Run the code that 'kernel.trainer' names, also from outside the working directory.

    Returns
    -------
    Answer
        ``frames["strategies"]`` (loss per PLS), ``["losses"]`` at portions of lost samples,
        ``["weights"]`` by the time of the failure, ``["held_out"]`` (whether it predicts);
        ``values["unfit"]`` says why `select` refuses the curve.

    Raises
    ------
    CprsimError
        The scenario or its trainer is wrong, or the time was too short.
    """
    loaded = options.source_of(scenario, overrides).read()

    design, kinds = design_of(strategies), tuple(map(Metric, metrics))
    path = CURVE_FOLDER / f"{loaded.scenario.name}.json" if file is None else Path(file)
    if path.suffix.lower() != ".json":
        raise ParameterError(f"`{path}` should end in .json", option="--out")
    require_writable(path.parent)
    share = f"{100 * precision:.12g} %" if isinstance(precision, float) else precision
    request = MeasureRequest(
        loaded=loaded,
        folder=path.with_name(f"{path.name}.runs").absolute(),  # for workers that are elsewhere
        precision=options.positive("--precision", share, SHARE.parse),
        budget_s=options.positive("--budget", budget, TIME.parse) * 3600,
        n_seeds=seeds,
        workers=Workers(workers, "dask" if dask else "local", dask),
        design=design,
        metrics=kinds or None,
    )
    require_allowed(loaded, allow_code, Path.cwd())
    watch.doing("training once, to say what can be expected")
    request, expected = prepared(request)
    measured = _trained(request, expected, path)
    words = shlex.join(watch.command or ["cprsim.measure"])
    words = re.sub(r" --(workers|dask)[ =]\S+", "", words)  # where it ran changes no number
    write_curve(path, curve_file(measured, request, path.stem, words))
    written = StoredResult(read_curve(path), path, path)
    return answer_of_curve(written.made, **written.about())


# ------------------------------------------------------------------------------ the runs


def prepared(request: MeasureRequest) -> tuple[MeasureRequest, Expected]:
    """Train once without failures, and warn if the model or the precision is unsuitable."""
    kernel = request.kernel
    if kernel.trainer is None:
        built_in = setting_of(request.loaded, kernel.seed)
        model: TrainableModel = built_in.trainer()
        request = replace(request, n_samples=model.n_samples)
        expected = expect(built_in)
    else:
        model, again = (own_model(request.loaded, kernel.seed)[0] for _ in range(2))
        expected = check_trainer(model, again)
        described = dict(model.trainer.describe())
        if files := digests_of(option_files(kernel.options)):
            described["files"] = files
        request = replace(request, described=described, n_samples=model.n_samples)
    design = measurable(request.design, has_momentum=model.weights.momentum is not None)
    request = replace(request, design=design)
    for warning in expected.warnings(request.precision):
        watch.warn(warning)
    return request, expected


def _trained(request: MeasureRequest, expected: Expected, path: Path) -> Measured:
    """Run the missing trainings until precision, time limit or number of seeds is reached."""
    n_seeds = request.n_seeds or expected.seeds_for(request.precision)
    n_runs = n_seeds * (1 + len(request.design.trials(request.kernel.seed, request.n_servers)))
    watch.keeps(
        lambda: (
            f"{n_finished(request.folder):,} finished training runs are kept in {request.folder}; "
            f"{path} is not written yet"
        )
    )
    watch.doing(
        f"training {n_seeds} seeds, which tell a loss to about ± {expected.half_width(n_seeds):.0%}"
    )
    over = Event()
    with watch.progress("training runs") as on_progress:

        def count() -> None:  # in the journals, which workers write
            while not over.wait(1.0):
                n_done = n_finished(request.folder)
                on_progress(n_done, max(n_done, n_runs))

        thread = Thread(target=count, daemon=True)
        thread.start()
        try:
            return replace(run(request), expected=expected)
        finally:
            over.set()
            thread.join()
