"""Options that `calibrate` and `backtest` share; goes with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import settled
from cprsim.making.options import SEED, STATE_NODES

Logs = Annotated[
    list[Path],
    typer.Argument(
        metavar="LOG",
        help="Event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders.",
        show_default=False,
    ),
]
TimeUnit = Annotated[
    str | None,
    typer.Option(help="Unit of times that are numbers, in CSVs of attempts: ms, s, min, h, d."),
]
SavesEvery = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Work between the saves of the jobs, such as '30 min', where their logs don't tell.",
        show_default=False,
    ),
]
Seed = Annotated[
    int, typer.Option(help="Of the draws of what the logs do not say.", min=SEED["ge"])
]
StateNodes = Annotated[
    int,
    typer.Option(
        help="Nodes that hold the state of the job.", min=STATE_NODES["ge"], max=STATE_NODES["le"]
    ),
]
PageFile = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Write one HTML file, too.", callback=settled),
]
