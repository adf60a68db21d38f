"""``cprsim reproduce``: the paper's results again, ours beside published."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cprsim.cli.options import AsJson, settled
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import complain, say_json, say_list
from cprsim.making.options import WORKERS

if TYPE_CHECKING:
    from cprsim.reproduce.study import Work

SCENARIOS = Path("scenarios")
OUT = Path("results/reproduce")
KEPT = Path("results/reproduction")


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Results to make (see --list); default: all.",
        ),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the results that there are.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="All within 5 minutes on 2 cores.")
    ] = False,
    large: Annotated[bool, typer.Option("--large", help="More of everything; hours.")] = False,
    scenarios: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the project's scenarios are.")
    ] = SCENARIOS,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="Where the finished results go.", callback=settled
        ),
    ] = OUT,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help=f"Also keep them in {KEPT}, from which the documents are made."
        ),
    ] = False,
    n_workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            help="Processes; one per core unless said.",
            min=WORKERS["ge"],
            max=WORKERS["le"],
        ),
    ] = None,
    clicks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A click log in Criteo's format, to train on instead of generated clicks.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the CPR paper's experiments again and show ours beside the published numbers.

    Finished results are found again; a run that was cut off goes on where it was. A result whose
    data are not there is left out of all, in one line.
    """
    from cprsim.reproduce import STUDIES
    from cprsim.reproduce.study import Effort, Work
    from cprsim.workers import Workers

    _require_sense(names or [], list(STUDIES), clicks, quick=quick, large=large, keep=keep)
    if list_them:
        say_list({study.name: study.shows for study in STUDIES.values()})
        return
    effort = Effort.QUICK if quick else Effort.LARGE if large else Effort.FULL
    folder, workers = _folder_of(scenarios), Workers(n_workers)
    works = [
        Work(study, effort, folder, out, workers, clicks if study.trains else None)
        for study in map(STUDIES.__getitem__, names or STUDIES)
    ]
    _make(works, keep=keep, as_json=as_json)


def _folder_of(scenarios: Path) -> Path:
    """The folder of the scenarios: outside the repository, that of the program."""
    from cprsim.files import SHIPPED

    return SHIPPED if scenarios == SCENARIOS and not scenarios.is_dir() else scenarios


def _finished(work: Work, number: int, n_studies: int) -> str:
    """How many results are finished, in a clause."""
    return (
        f"{number - 1} of {n_studies} results are finished and kept in {work.out}, and the "
        f"finished parts of {work.study.name} in {work.out / 'parts'}"
    )


def _require_sense(
    names: Sequence[str],
    known: Sequence[str],
    clicks: Path | None,
    *,
    quick: bool,
    large: bool,
    keep: bool,
) -> None:
    """Raise ParameterError for options that do not go together."""
    from cprsim.errors import ParameterError

    for unknown in set(names) - set(known):
        raise ParameterError(f"{unknown!r} is none of {', '.join(known)}")
    if quick and large:
        raise ParameterError("--quick and --large exclude each other")
    if keep and (quick or large or clicks):
        raise ParameterError(
            "--keep keeps full runs on generated clicks only: leave --quick, --large and --clicks "
            "out"
        )
    if clicks is not None and not clicks.is_file():
        raise ParameterError(f"--clicks: {clicks} is no file")


def _make(works: Sequence[Work], *, keep: bool, as_json: bool) -> None:
    from cprsim.cli.terminal import Terminal
    from cprsim.cli.unforeseen import telling_what_is_kept
    from cprsim.files import encode
    from cprsim.present.reproduction import reproduced_blocks
    from cprsim.present.terminal import show
    from cprsim.reproduce.runner import record, reproduce

    console, as_plain = Terminal(), {}
    for number, work in enumerate(works, start=1):
        name = work.study.name
        complain(f"[{number}/{len(works)}] {name} ...")
        with telling_what_is_kept() as kept:
            kept.say = partial(_finished, work, number, len(works))
            pulse.doing(name)
            made = reproduce(work)
        if keep:
            record(made, KEPT)
        as_plain[name] = {"path": str(made.path), **encode(made.summary)}
        if not as_json:
            if number > 1:
                console.print()
            show(console, reproduced_blocks(made))
    if as_json:
        say_json(as_plain, indent=1)
