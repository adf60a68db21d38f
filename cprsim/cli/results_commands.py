"""``cprsim compare`` and ``cprsim plot``: about results that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cprsim.cli.options import AsJson, settled
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import say, show

if TYPE_CHECKING:
    from cprsim.present.kinds import ResultKind

RUNS = ("run", "comparison of systems")  # kinds of folders that hold a run


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
        _kind_among(RUNS, path, "compares two results of `cprsim run`")
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
    """Draw the figures of a result again.

    Its results folder stays as it is.
    """
    from cprsim.errors import ParameterError
    from cprsim.files import writes
    from cprsim.plots.save import FORMATS, save_figures
    from cprsim.present.kinds import KINDS

    wanted = formats or ["png", "svg"]
    for unknown in set(wanted) - set(FORMATS):
        raise ParameterError(f"--format: {unknown!r} is none of {', '.join(FORMATS)}")
    drawn = [name for name, kind in KINDS.items() if kind.figures is not None]
    kind = _kind_among(drawn, result, f"draws every {' or '.join(drawn)}")
    assert kind.figures is not None
    figures = kind.figures(kind.load(result))
    pulse.doing("drawing figures")
    with writes(f"to {out}"):
        out.mkdir(parents=True, exist_ok=True)
        paths = save_figures(figures, out, prefix=f"{result.resolve().name}-", formats=wanted)
    for path in paths:
        say(path)


def _kind_among(kinds: Sequence[str], path: Path, does: str) -> ResultKind:
    """The kind of a result. Raises ResultError where it is none of those."""
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
    return kind
