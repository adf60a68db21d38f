"""``cprsim compare`` and ``cprsim plot``: about results that are there already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cprsim.cli.options import AsJson, settled
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import say
from cprsim.cli.showing import show

RUNS = ("run", "comparison of systems")  # kinds of folders that hold a run
DRAWS = "draws runs, sweeps, comparisons and maps of systems"


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A results folder.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Say what changes from result A to result B, with 95 % intervals.

    Replications are paired where both results met the same failures (same seed, job, cluster and
    failures); otherwise the results count as independent samples (Welch). Inputs that differ are
    listed.
    """
    from cprsim.present.comparison import comparison_as_json, comparison_of_two
    from cprsim.present.money import money_of_two_as_json
    from cprsim.results import compare as differences
    from cprsim.results import different, inputs_of, load_result, same_failures, shared_errors

    for path in (a, b):
        _require_kind(path, RUNS, "compares two results of `cprsim run`")
    results = load_result(a), load_result(b)

    def plain() -> dict[str, Any]:
        inputs = different([inputs_of(result.path, result.manifest) for result in results])
        paired, errors = same_failures(*results), shared_errors(*results)
        found = comparison_as_json(differences(*results), paired, inputs, errors)
        return found | money_of_two_as_json(*results)

    show(plain, lambda: comparison_of_two(*results), as_json=as_json)


def plot(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A results folder.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where to draw.", callback=settled)
    ] = Path(),
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="png|svg|pdf", help="May be repeated. Default: png, svg."),
    ] = None,
) -> None:
    """Draw the figures of a run, a sweep or a comparison of systems again.

    Its results folder stays as it is.
    """
    from cprsim.errors import ParameterError
    from cprsim.plots import FORMATS, draw_result, save_figure
    from cprsim.plots.sweep import draw_sweep
    from cprsim.plots.systems import systems_figure
    from cprsim.plots.systems_map import systems_map_figure
    from cprsim.results import Result, load_result
    from cprsim.sweeps import SweepResult, is_sweep, load_sweep
    from cprsim.systems_compared import is_comparison, load_comparison
    from cprsim.systems_compared.map_folder import SystemsMap, is_map, load_map
    from cprsim.whole_file import writes

    wanted = formats or ["png", "svg"]
    for unknown in set(wanted) - set(FORMATS):
        raise ParameterError(f"--format: {unknown!r} is none of {', '.join(FORMATS)}")
    _require_kind(result, (*RUNS, "sweep", "map of systems"), DRAWS)
    prefix = f"{result.resolve().name}-"
    load = load_map if is_map(result) else load_sweep if is_sweep(result) else load_result
    loaded: object = load(result)
    pulse.doing("drawing figures")
    with writes(f"to {out}"):
        out.mkdir(parents=True, exist_ok=True)
        if isinstance(loaded, SweepResult):
            paths = draw_sweep(loaded, out, prefix=prefix, formats=wanted)
        elif isinstance(loaded, SystemsMap):
            paths = save_figure(systems_map_figure(loaded), out / f"{prefix}map", wanted)
        elif is_comparison(result):
            figure = systems_figure(load_comparison(result))
            paths = save_figure(figure, out / f"{prefix}systems", wanted)
        else:
            assert isinstance(loaded, Result)
            paths = draw_result(loaded, out, prefix=prefix, formats=wanted)
    for path in paths:
        say(path)


def _require_kind(path: Path, kinds: tuple[str, ...], does: str) -> None:
    """Raise ResultError for a result that is of none of some kinds."""
    from cprsim.errors import ResultError
    from cprsim.present.kinds import KINDS, kind_of

    kind = kind_of(path)
    name = next(name for name, one in KINDS.items() if one is kind)
    if name not in kinds:
        what = "a file, no results folder" if path.is_file() else f"the folder of a {name}"
        raise ResultError(
            f"{path} is {what}: this command {does}; `cprsim report` shows results of every kind, "
            "also several side by side"
        )
