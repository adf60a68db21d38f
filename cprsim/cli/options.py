"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from cprsim.errors import ParameterError
from cprsim.making.options import WORKERS


def settled(path: Path | None) -> Path | None:
    """A path to write to, without a `..` in its middle.

    ``a/../b`` is ``b`` also where there is no ``a`` yet: none is made. Where ``a`` is a link, it
    leads to where the link does, as everywhere else in the system.

    Raises ParameterError where links lead nowhere but in a ring.
    """
    if path is None or not any(
        before != ".." and part == ".." for before, part in pairwise(path.parts)
    ):
        return path
    try:
        there = path.resolve()
    except (OSError, RuntimeError) as error:
        raise ParameterError(f"--out {path}: leads nowhere: {error}") from None
    return there if path.is_absolute() else Path(os.path.relpath(there))


def _by_name(path: Path) -> Path:
    """The file that SCENARIO names: one of the user's, or one that comes with the program."""
    if path.is_file():
        return path
    from cprsim.files import file_or_shipped

    return file_or_shipped(path)


ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO",
        help="The scenario file (YAML), or the name of one that `cprsim init --list` shows.",
        show_default=False,
        callback=_by_name,
    ),
]
Overrides = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change one value of the scenario, e.g. costs.save='90 s'; may be repeated.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for scripts.")]
OutFolder = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="Where the results folders go.", callback=settled),
]
RESULTS = Path("results")  # its default
SimulationSeed = Annotated[
    int | None, typer.Option(help="Seed of all random numbers, instead of the scenario's.")
]


class Backend(StrEnum):
    """Where the workers are."""

    local = "local"
    dask = "dask"


NumberOfWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        help="Processes on this machine; default one per core.",
        min=WORKERS["ge"],
        max=WORKERS["le"],
    ),
]
BackendName = Annotated[
    Backend, typer.Option("--backend", help="local: this machine; dask: a cluster.")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="tcp://HOST:PORT", help="Of the scheduler of a dask cluster."
    ),
]
