"""A map of recovery systems: which is cheapest where, over two inputs."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase
from typing import Any

from cprsim.estimate import NO_NUMBER
from cprsim.plots.axes import words_of_key
from cprsim.plots.systems_map import systems_map_figure
from cprsim.present.document import (
    Block,
    Column,
    Document,
    ListingBlock,
    Picture,
    Section,
    Table,
    Words,
)
from cprsim.present.provenance import FOUND_AGAIN, origin, places
from cprsim.results.words import count, hours, suited
from cprsim.systems_compared.map_folder import SystemsMap
from cprsim.systems_compared.mapping import tied_with_best

NO_SYSTEM = "-"
WIDEST = 60  # columns of a map in letters
MOST_ROWS = 200  # of a page


def map_blocks(made: SystemsMap, *, found_again: bool = False) -> list[Block]:
    """What a terminal shows; a map that is too wide for it is in its figure alone."""
    first, second = made.axes
    intervals = "the scenario's intervals or defaults" if made.fixed else "best intervals"
    heading = (
        f"{made.name}: {hours(made.useful_h)} of useful work; {first.key} x {second.key}: "
        f"{count(len(made.cells), 'point')}, {count(made.n_replications, 'replication')} each, "
        f"at {intervals}."
    )
    in_letters = ListingBlock("The map in letters", "\n".join(letters(made)))
    return [
        Words([heading]),
        *([in_letters] if len(first.values) <= WIDEST else []),
        Words(key_to_letters(made)),
        places(made.path, [made.path / "map.png"], FOUND_AGAIN if found_again else ""),
    ]


def document_of_map(made: SystemsMap) -> Document:
    """Everything about one map. Raises ResultError for an unreadable file."""
    first, second = made.axes
    return Document(
        title=f"Which recovery system where: {made.name}",
        question=(
            f"Which recovery system costs a job of {hours(made.useful_h)} of useful work least, by "
            f"{words_of_key(first.key)} and {words_of_key(second.key)}, over "
            f"{count(len(made.cells), 'point')}?"
        ),
        answer=answer(made),
        sections=[
            Section("The map", [_picture(made)]),
            Section("All points", [_table(made)]),
            *origin(made.manifest, made.path, "with the values"),
        ],
    )


def _picture(made: SystemsMap) -> Picture:
    return Picture(
        caption="The cheapest system at each point",
        alternative=(
            "A cell per point with the mark of the cheapest system, hatched where another can't "
            "be told from it. The table below names both."
        ),
        draw=lambda: systems_map_figure(made),
    )


def _table(made: SystemsMap) -> Table:
    first, second = made.axes
    rows = []
    for row in list(made.rows())[:MOST_ROWS]:
        mean = row["overhead_fraction"]
        overhead = NO_NUMBER
        if mean is not None:
            overhead = suited(100 * mean, 100 * row["low"], 100 * row["high"])[0]
        others = ", ".join(row["cant_be_told"]) or NO_NUMBER
        where = (f"{row[first.column]:g}", f"{row[second.column]:g}")
        rows.append([*where, row["best"] or NO_NUMBER, overhead, others])
    more = len(made.cells) - len(rows)
    cut = f"; {more} more are in map.csv" if more > 0 else ""
    return Table(
        caption=f"The cheapest at each point{cut}",
        columns=[
            Column(first.column),
            Column(second.column),
            Column("cheapest", is_number=False),
            Column("overhead, %"),
            Column("can't be told from it", is_number=False),
        ],
        rows=rows,
    )


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
    sign = signs.get(cell["best"] or "", NO_SYSTEM)
    return sign.lower() if tied_with_best(cell) else sign


def answer(made: SystemsMap) -> list[str]:
    """Each system's number of points at which it is the cheapest, and of those not told apart."""
    return [sentence for _, sentence in _bests(made)]


def key_to_letters(made: SystemsMap) -> list[str]:
    """The same with the letters of the map in letters, and what a small one means."""
    key = [f"{sign}  {sentence}" for sign, sentence in _bests(made)]
    if any(tied_with_best(cell) for cell in made.cells.values()):
        key.append("Small letters: the 95 % interval of the difference to another contains 0.")
    return key


def _bests(made: SystemsMap) -> Iterator[tuple[str, str]]:
    """(letter, sentence) of each system that is the cheapest somewhere, and of points without."""
    for sign, name in zip(ascii_uppercase, made.bests, strict=False):
        cells = [cell for cell in made.cells.values() if cell["best"] == name]
        tied = [cell for cell in cells if tied_with_best(cell)]
        others = sorted({other for cell in tied for other in tied_with_best(cell)})
        unsure = f", at {len(tied):,} of them not told from {', '.join(others)}" if tied else ""
        yield sign, f"{name}: cheapest at {count(len(cells), 'point')}{unsure}."
    n_none = sum(cell["best"] is None for cell in made.cells.values())
    if n_none:
        points = count(n_none, "point")
        yield NO_SYSTEM, f"At {points} no system that keeps accuracy finishes."


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
