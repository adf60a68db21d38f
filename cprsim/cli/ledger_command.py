"""``cprsim ledger``: where the hours of jobs that have run went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import AsJson, settled
from cprsim.cli.saying import say, say_json

Logs = Annotated[
    list[Path],
    typer.Argument(
        metavar="LOG...",
        help="Event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders.",
        show_default=False,
    ),
]
TimeUnit = Annotated[
    str | None,
    typer.Option(help="Unit of times that are numbers, in CSVs of attempts: ms, s, min, h, d."),
]
Seed = Annotated[int, typer.Option(help="Of the draws of what the logs do not say.", min=0)]


def ledger(
    logs: Logs,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", help="Write one HTML file, too.", callback=settled),
    ] = None,
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

    events = read_logs(logs, time_unit)
    jobs = ledgers(events, seed=seed)
    if page is not None:
        from cprsim.page.ledger import page_of_ledger
        from cprsim.present.writing import write_page

        write_page(page_of_ledger(jobs, events.notes), page)
    if as_json:
        from cprsim.report.ledger_report import ledger_as_json

        say_json(ledger_as_json(jobs, events.notes))
        return
    from cprsim.cli.terminal import Terminal
    from cprsim.report.ledger_report import print_ledger

    print_ledger(Terminal(), jobs, events.notes)
    if page is not None:
        say(page)
