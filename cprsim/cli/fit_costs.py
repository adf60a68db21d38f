"""``cprsim fit-costs``: what saves and loads cost, from a log of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import AsJson, column_names
from cprsim.cli.saying import say_json
from cprsim.foreign import one_line


def fit_costs(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="CSV with a row for each: kind (save, load; also detect, reschedule), start, end, "
            "and bytes if known.",
            show_default=False,
        ),
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="OURS=THEIRS",
            help="What a column is called, e.g. start=begin; may be repeated.",
        ),
    ] = None,
    time_unit: Annotated[
        str | None, typer.Option(help="Unit of times that are numbers: ms, s, min, h, d.")
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(help="Samples behind each p-value; 0 for none.", min=0, max=100_000)
    ] = 199,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Fit what saves and loads cost to a log of them, for a scenario's `costs`."""
    from cprsim.cli.terminal import Terminal
    from cprsim.fitting.cost_fit import fit_costs as fitted
    from cprsim.fitting.cost_fragment import costs_fragment
    from cprsim.fitting.transfers import read_transfers
    from cprsim.report.cost_report import costs_as_json, print_costs

    transfers = read_transfers(log, columns=column_names(columns or []), time_unit=time_unit)
    fits = fitted(transfers, n_bootstrap=bootstrap, seed=seed)
    fragment = costs_fragment(fits, one_line(log.name))
    if as_json:
        found = costs_as_json(fits, fragment, transfers.notes)
        say_json(found)
        return
    print_costs(Terminal(), fits, fragment, transfers.notes)
