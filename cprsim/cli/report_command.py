"""``cprsim report``: finished results as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import settled
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import say


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT...",
            help="Results folders; files of staleness curves.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Where to write.", callback=settled),
    ] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option(help="Title of the page, in place of its own.", show_default=False)
    ] = None,
) -> None:
    """Make one HTML file about results: answer, tables, figures, scenario, provenance.

    The file needs no network. Several results are compared, each with the first.
    """
    from cprsim.page import page_of, write_page

    pulse.doing("making the page")
    write_page(page_of(results, title), out)
    say(out)
