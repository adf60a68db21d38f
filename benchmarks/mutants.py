"""Which mutants of the simulator, recovery, results and selector do the tests notice? A count.

    python -m benchmarks.mutants JOURNAL [--tree DIR] [--n 200] [--seed 1] [--like JOURNAL]

Each mutant is the package with one small thing changed in one function (`tests/mutating.py`), run
through the fast tests of its room until one fails. The journal has a line for each, so that a run
that was stopped goes on where it stood. `--tree` tries another checkout, such as one of an older
commit. With `--like`, the mutants are those of another journal, found by function and change
wherever they stand now; what died there and survives here is listed, and the exit code is 1.
Takes hours.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutating import mutants_of

ROOMS = {  # by room, the tests that know it best, in this order
    "simulate": ("tests/simulate", "tests/recovery", "tests/experiments"),
    "recovery": ("tests/recovery", "tests/simulate"),
    "results": ("tests/results", "tests/cli"),
    "selector": ("tests/selector",),
}
PATIENCE_S = 1800
SURVIVED, DIED, TOO_LONG, GONE = "survived", "died", "took too long", "gone"


@dataclass(frozen=True, slots=True)
class Change:
    """One small thing that is changed in a function, wherever that stands."""

    room: str
    function: str
    was: str
    turned: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a change can be made: the nth mutant of a file."""

    file: str
    number: int


def functions_of(tree: ast.Module) -> list[ast.FunctionDef]:
    """Those at the top of a module, and the methods of its classes."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    return [node for body in bodies for node in body if isinstance(node, ast.FunctionDef)]


def places_in(package: Path, room: str) -> Iterator[tuple[Change, Place]]:
    """All changes of a room and where they can be made."""
    for path in sorted((package / room).rglob("*.py")):
        number = 0
        for function in functions_of(ast.parse(path.read_text("utf-8"))):
            for mutant in mutants_of(function):
                change = Change(room, mutant.function, mutant.was, mutant.turned)
                yield change, Place(str(path.relative_to(package)), number)
                number += 1


def mutated(package: Path, place: Place) -> str:
    """The source of a file with its nth mutant in it."""
    tree = ast.parse((package / place.file).read_text("utf-8"))
    number = 0
    for function in functions_of(tree):
        for _ in mutants_of(function):
            if number == place.number:
                return ast.unparse(ast.fix_missing_locations(tree))
            number += 1
    raise LookupError(place)


def chosen(package: Path, n: int, seed: int) -> list[tuple[Change, Place | None]]:
    """So many mutants, as many of each room, in an order that is mixed."""
    rng = random.Random(seed)
    found: list[tuple[Change, Place | None]] = []
    for room in ROOMS:
        there = list(places_in(package, room))
        found += rng.sample(there, min(len(there), n // len(ROOMS)))
    rng.shuffle(found)
    return found


def found_again(package: Path, changes: list[Change]) -> list[tuple[Change, Place | None]]:
    """Where the changes of another journal can be made now; None for what is gone."""
    places: dict[Change, Place] = {}
    for room in ROOMS:
        for change, place in places_in(package, room):
            places.setdefault(change, place)
    return [(change, places.get(change)) for change in changes]


def what_becomes_of(tree: Path, change: Change, place: Place) -> tuple[str, str]:
    """Whether the tests notice a mutant, and which test does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(tree, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis"))
        (copy / "cprsim" / place.file).write_text(mutated(tree / "cprsim", place), "utf-8")
        tests = [one for one in ROOMS[change.room] if (copy / one).exists()]
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
            "-m", "not long", *tests,
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        try:
            ran = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, text=True,
                timeout=PATIENCE_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return TOO_LONG, ""
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (SURVIVED, "") if ran.returncode == 0 else (DIED, failed[0][:200] if failed else "")


def read(journal: Path) -> dict[Change, str]:
    """What a journal says of each mutant."""
    if not journal.exists():
        return {}
    lines = map(json.loads, journal.read_text("utf-8").splitlines())
    return {Change(**line["change"]): line["became"] for line in lines}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("journal", type=Path)
    parser.add_argument("--tree", type=Path, default=Path.cwd())
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--like", type=Path)
    asked = parser.parse_args()
    package = asked.tree / "cprsim"
    before = {} if asked.like is None else read(asked.like)
    todo = found_again(package, list(before)) if before else chosen(package, asked.n, asked.seed)
    done = read(asked.journal)
    for change, place in todo:
        if change in done:
            continue
        became, by = (GONE, "") if place is None else what_becomes_of(asked.tree, change, place)
        done[change] = became
        with asked.journal.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"change": asdict(change), "became": became, "by": by}) + "\n")
        print(f"{became:14} {change.room}.{change.function}: `{change.was}` -> `{change.turned}`")
    for became in (DIED, TOO_LONG, SURVIVED, GONE):
        print(f"{became:14} {sum(done[change] == became for change, _ in todo)}")
    worse = [one for one, became in before.items() if became == DIED and done[one] == SURVIVED]
    for change in worse:
        print(f"died before    {change.room}.{change.function}: {change.was} -> {change.turned}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
