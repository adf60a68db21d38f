"""What ``cprsim compare-systems --map`` prints: a map in letters, and who is cheapest how often."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase
from typing import Any

from rich.console import Console

from cprsim.compare_systems.map_folder import SystemsMap
from cprsim.compare_systems.mapping import tied_with_best
from cprsim.present.terminal import say
from cprsim.results.words import count, hours

NOBODY = "-"
WIDEST = 60  # columns of a map in letters


def print_map(console: Console, made: SystemsMap, *, found_again: bool = False) -> None:
    """Print a map; one that is too wide for a terminal is in its figure alone."""
    first, second = made.axes
    intervals = "the scenario's intervals or defaults" if made.fixed else "best intervals"
    say(
        console,
        f"{made.name}: {hours(made.useful_h)} of useful work; {first.key} x {second.key}: "
        f"{count(len(made.cells), 'point')}, {count(made.n_replications, 'replication')} each, "
        f"at {intervals}.",
    )
    if len(first.values) <= WIDEST:
        console.print()
        for line in letters(made):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print()
    for sentence in answer(made):
        say(console, sentence)
    again = " (found again, nothing was simulated)" if found_again else ""
    say(console, f"results  {made.path}{again}")
    say(console, f"figure   {made.path / 'map.png'}")


def letters(made: SystemsMap) -> Iterator[str]:
    """The map as lines: a capital where a system is surely the cheapest, else a small letter."""
    first, second = made.axes
    signs = dict(zip(made.bests, ascii_uppercase, strict=False))
    labels = [f"{value:g}" for value in second.values]
    width = max(len(second.column), *map(len, labels))
    yield second.column
    for j in reversed(range(len(second.values))):
        row = "".join(f" {_letter(made, signs, i, j)}" for i in range(len(first.values)))
        yield f"{labels[j]:>{width}} {row}"
    yield f"{'':{width}}  from {first.values[0]:g} to {first.values[-1]:g}: {first.column}"


def _letter(made: SystemsMap, signs: dict[str, str], i: int, j: int) -> str:
    cell = made.cells[i, j]
    sign = signs.get(cell["best"] or "", NOBODY)
    return sign.lower() if tied_with_best(cell) else sign


def answer(made: SystemsMap) -> list[str]:
    """Who is the cheapest at how many points, and at how many that can't be told."""
    said = []
    for sign, name in zip(ascii_uppercase, made.bests, strict=False):
        mine = [cell for cell in made.cells.values() if cell["best"] == name]
        tied = [cell for cell in mine if tied_with_best(cell)]
        others = sorted({other for cell in tied for other in tied_with_best(cell)})
        unsure = f", at {len(tied):,} of them not told from {', '.join(others)}" if tied else ""
        said.append(f"{sign}  {name}: cheapest at {count(len(mine), 'point')}{unsure}.")
    if any(tied_with_best(cell) for cell in made.cells.values()):
        said.append("Small letters: the 95 % interval of the difference to another holds 0.")
    nobody = sum(cell["best"] is None for cell in made.cells.values())
    if nobody:
        said.append(
            f"{NOBODY}  at {count(nobody, 'point')} no system that keeps accuracy finishes."
        )
    return said


def map_as_json(made: SystemsMap) -> dict[str, Any]:
    """The object that ``cprsim compare-systems --map --json`` prints."""
    return {
        "name": made.name,
        "results": str(made.path),
        "useful_h": made.useful_h,
        "replications": made.n_replications,
        "fixed": made.fixed,
        "axes": [axis.column for axis in made.axes],
        "cheapest": list(made.rows()),
        "points": [
            {"at": [axis.values[k] for axis, k in zip(made.axes, at, strict=True)], **_body(cell)}
            for at, cell in made.cells.items()
        ],
    }


def _body(cell: Any) -> dict[str, Any]:
    return {key: value for key, value in cell.items() if key != "at"}
