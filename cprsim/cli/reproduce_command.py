"""``cprsim reproduce``: the paper's results again, ours beside published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SCENARIOS = Path("scenarios")


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="emulation, production; default: all."),
    ] = None,
    scenarios: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the project's scenarios are.")
    ] = SCENARIOS,
) -> None:
    """Run the CPR paper's experiments again and show ours beside the published numbers."""
    from rich.console import Console

    from cprsim.errors import ParameterError
    from cprsim.reproduce import REPRODUCTIONS

    for unknown in set(names or ()) - set(REPRODUCTIONS):
        raise ParameterError(f"{unknown!r} is none of {', '.join(REPRODUCTIONS)}")
    console = Console()
    for position, name in enumerate(names or REPRODUCTIONS):
        if position:
            console.print()
        REPRODUCTIONS[name](scenarios).print_on(console)
