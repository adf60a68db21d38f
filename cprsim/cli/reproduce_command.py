"""``cprsim reproduce``: the paper's results again, ours beside published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SCENARIOS = Path("scenarios")


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="emulation, production, distribution; default: all."
        ),
    ] = None,
    scenarios: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the project's scenarios are.")
    ] = SCENARIOS,
) -> None:
    """Run the CPR paper's experiments again and show ours beside the published numbers.

    distribution needs two public failure logs and is left out of all where they are not there.
    """
    from rich.console import Console

    from cprsim.errors import ParameterError
    from cprsim.reproduce import MISSING, REPRODUCTIONS

    for unknown in set(names or ()) - set(REPRODUCTIONS):
        raise ParameterError(f"{unknown!r} is none of {', '.join(REPRODUCTIONS)}")
    console = Console()
    for position, name in enumerate(names or REPRODUCTIONS):
        if position:
            console.print()
        if names is None and name in MISSING and (why := MISSING[name]()):
            console.print(f"{name} is left out: {why}", soft_wrap=True, highlight=False)
            continue
        REPRODUCTIONS[name](scenarios).print_on(console)
