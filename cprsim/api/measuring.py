"""``cprsim.measure``: what stale shards cost in accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Annotated

from pydantic import Field

from cprsim.api import public
from cprsim.api.curves import Curve, json_file
from cprsim.api.keeping import ResultsPlace
from cprsim.api.scenarios import Overrides, ScenarioLike, source_of
from cprsim.curves import read_curve, write_curve
from cprsim.making.options import MEASURED_SEEDS, WORKERS


@public
def measure(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    precision: Annotated[float, Field(gt=0)] = 0.2,
    budget_s: Annotated[float, Field(gt=0)] = 600.0,
    seeds: Annotated[int, Field(**MEASURED_SEEDS)] | None = None,
    workers: Annotated[int, Field(**WORKERS)] | None = None,
    allow_code: bool = False,
    shorter: Sequence[Curve | str | Path] = (),
    file: str | Path | None = None,
) -> Curve:
    """Train with controlled failures, and make a staleness curve, as ``cprsim measure`` does.

    Parameters
    ----------
    scenario, overrides : see `cprsim.load`; the section `kernel` is what is trained
    precision : stop when the standard error of every slope is this share of partial's slope
    budget_s : stop after this time [s]; the same call with the same file goes on
    seeds : run so many, whatever precision and time
    workers : processes; None: one per core
    allow_code : run the code that `kernel.trainer` names, also from outside the working directory
    shorter : two curves of the same model and seeds at shorter lengths of training: where their law
        predicts this one, it serves longer jobs
    file : write the curve here (.json), and keep its runs beside it; None: nothing is kept

    Raises
    ------
    CprsimError : what is wrong with the scenario or its trainer, or that the time was too short
    """
    from cprsim.making.measuring import prepared
    from cprsim.measuring.curve import curve_file
    from cprsim.measuring.lengths import read_shorter, with_lengths
    from cprsim.measuring.measure import MeasureRequest
    from cprsim.measuring.measure import measure as run
    from cprsim.measuring.own_code import require_allowed
    from cprsim.results.folder import require_writable
    from cprsim.workers import Workers

    loaded = source_of(scenario, overrides).read()
    require_allowed(loaded, allow_code, Path.cwd())
    place = ResultsPlace(None)
    path = place.root / f"{loaded.scenario.name}.json" if file is None else json_file(file)
    require_writable(path.parent)
    request, expected, _ = prepared(
        MeasureRequest(
            loaded=loaded,
            folder=path.with_name(f"{path.name}.runs").absolute(),
            precision=precision,
            budget_s=budget_s,
            n_seeds=seeds,
            workers=Workers(workers),
        )
    )
    paths = [one.path if isinstance(one, Curve) else Path(one) for one in shorter]
    others = read_shorter(paths, request)
    measured = with_fields(run(request), expected=expected)
    curve = curve_file(measured, request, path.stem, "cprsim.measure")
    write_curve(path, with_lengths(curve, others))
    return Curve(read_curve(path), path, place)
