"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cprsim.errors import ParameterError

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="The scenario file (YAML).", show_default=False)
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
    Path, typer.Option("--out", metavar="DIR", help="Where the results folders go.")
]


class Backend(StrEnum):
    """Where the workers are."""

    local = "local"
    dask = "dask"


NumberOfWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", help="Processes on this machine; default one per core.", min=1
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


def column_names(columns: list[str]) -> dict[str, str]:
    """The file's names of columns by ours, from ``--column OURS=THEIRS``.

    Raises ParameterError for what is no pair.
    """
    pairs = [pair.partition("=") for pair in columns]
    for ours, sign, _ in pairs:
        if not sign:
            raise ParameterError(f"--column: {ours!r} is no pair such as start=begin")
    names = [ours for ours, _, _ in pairs]
    if twice := [ours for ours in names if names.count(ours) > 1]:
        raise ParameterError(f"--column: {twice[0]!r} is given two names; it can have one")
    return {ours: theirs for ours, _, theirs in pairs}
