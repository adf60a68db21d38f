"""``cprsim ledger``: where the hours of jobs that have run went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import AsJson, settled
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import show, write_document
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


def ledger(
    logs: Logs,
    page: PageFile = None,
    time_unit: TimeUnit = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Book the hours of jobs from their logs: useful work, saves, failures by what they cost.

    What the logs do not say is drawn from what they say of other incidents; 95 % intervals show
    how far it is open, and what was inferred is counted.
    """
    from cprsim.history.ledger import ledgers
    from cprsim.history.reading import read_logs
    from cprsim.present.ledger import document_of_ledger, ledger_as_json, ledger_blocks

    pulse.doing("reading the logs")
    events = read_logs(logs, time_unit)
    pulse.doing("booking the hours")
    jobs = ledgers(events, seed=seed)
    notes = events.notes
    pages = [] if page is None else [write_document(document_of_ledger(jobs, notes), page)]
    show(
        lambda: ledger_as_json(jobs, notes), lambda: ledger_blocks(jobs, notes), as_json=as_json,
        files=pages,
    )  # fmt: skip
