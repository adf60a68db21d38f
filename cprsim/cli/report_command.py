"""``cprsim report``: finished results as one page, in HTML or Markdown."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import settled
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import say


class Format(StrEnum):
    """How the page is written."""

    html = "html"
    md = "md"


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT",
            help="Results folders; files of staleness curves.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where to write.",
            callback=settled,
            show_default="report.html",
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="md: Markdown, with figures in a folder beside it. Default: by the name of FILE.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the page, in place of its own.", show_default=False)
    ] = None,
) -> None:
    """Make one page about results: answer, tables, figures, scenario, provenance.

    In HTML it is one file that needs no network. Several results are compared, each with the first.
    """
    from cprsim.present.kinds import page_of
    from cprsim.present.writing import write_page

    path = out or Path(f"report.{form or Format.html}")
    pulse.doing("making the page")
    for written in write_page(page_of(results, title), path, None if form is None else form.value):
        say(written)
