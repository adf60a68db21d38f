"""What a shell offers after TAB: scenarios and curves.

Each function reads names of files, and imports no room of the program.
Whatever goes wrong, it offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path

import typer

from cprsim.files import CURVES, shipped_scenarios

Offered = list[tuple[str, str]]  # each with what a shell may show beside it
Offer = Callable[[typer.Context, str], Offered]


def quiet(names: Callable[[typer.Context, str], Iterable[tuple[str, str]]]) -> Offer:
    """Offer what begins as the text before the cursor does; nothing where anything goes wrong."""

    @wraps(names)
    def offered(ctx: typer.Context, incomplete: str) -> Offered:
        try:
            return [one for one in names(ctx, incomplete) if one[0].startswith(incomplete)]
        except Exception:
            return []

    return offered


# ----------------------------------------------------------------------------- names and files


@quiet
def scenarios(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """Shipped scenarios, and YAML files and folders of the user."""
    yield from _files(incomplete, (".yaml", ".yml"))
    yield from ((name, "comes with cprsim") for name in shipped_scenarios())


@quiet
def shipped(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """Scenarios that come with the program."""
    return ((name, "") for name in shipped_scenarios())


@quiet
def curves(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """Shipped staleness curves, and files that may hold one."""
    yield from _files(incomplete, (".json", ".csv"))
    yield from ((path.stem, "comes with cprsim") for path in sorted(CURVES.glob("*.json")))


def _files(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Files with one of the suffixes, and folders, as the user began to write them."""
    begun, _, _ = incomplete.rpartition("/")
    prefix = incomplete[: len(incomplete) - len(incomplete.rpartition("/")[2])]
    for path in sorted(Path(begun or ("/" if prefix else ".")).iterdir()):
        if path.name.startswith(".") and not incomplete.endswith("."):
            continue
        if path.is_dir():
            yield f"{prefix}{path.name}/", ""
        elif path.suffix.lower() in suffixes:
            yield f"{prefix}{path.name}", ""
