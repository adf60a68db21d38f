"""Overrides of single keys from the command line: ``--set costs.save="90 s"``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cprsim.errors import Place, Problem, ScenarioError
from cprsim.foreign import one_line
from cprsim.scenario.quantities import shown
from cprsim.scenario.yaml_text import KeyPath, Plain, as_written, read_document

EXAMPLE = 'write KEY=VALUE, for example --set costs.save="90 s" or recovery.cpr.target_pls=0.05'

EXAMPLE_AXIS = "write KEY=LOW:HIGH:logN or KEY=A,B,C, for example {} costs.save=30s:10min:log12"

# Setting one of these takes the other ways to say the same out of the file.
INSTEAD_OF: dict[KeyPath, tuple[str, ...]] = {
    ("job", "useful"): ("samples", "throughput"),
    ("cluster", "tables"): ("shard_size",),
    ("cluster", "shard_size"): ("tables",),
    ("failures", "count"): ("at",),
    ("failures", "at"): ("count",),
    ("failures", "together"): ("servers",),
    ("failures", "servers"): ("together",),
    ("simulation", "replications"): ("precision", "at_most"),
    ("simulation", "precision"): ("replications",),
    ("recovery", "target_pls"): ("assumed",),  # of any entry
}


def apply_overrides(
    data: dict[str, Plain],
    overrides: Sequence[str],
    places: dict[KeyPath, Place],
    option: str = "--set",
) -> None:
    """Write each override into `data`, and into `places` that it came from an option.

    One that another option stands for begins with it: ``--seed simulation.seed=3``.

    Raises ScenarioError, with all problems at once, for overrides that can't be read or placed.
    """
    problems: list[Problem] = []
    for override in overrides:
        own, _, assignment = override.partition(" ") if override.startswith("--") else ("",) * 3
        key, equals, text = (assignment or override).partition("=")
        place = Place(own if assignment else f"{option} {one_line(key.strip())}")
        try:
            if not equals or not key.strip():
                raise ScenarioError.at(Place(f"{option} {one_line(override)}"), EXAMPLE)
            document = read_document(text, place.file)
            if document.problems:
                raise ScenarioError(document.problems)
            put(data, key.strip(), document.data, places, place)
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)


def apply_axes(
    data: dict[str, Plain],
    axes: Sequence[str],
    places: dict[KeyPath, Place],
    option: str = "--over",
) -> None:
    """Put each ``KEY=VALUES`` of an option in the section `sweep`, instead of the file's own axes.

    Raises ScenarioError where one can't be read, or a key comes twice.
    """
    if not axes:
        return
    over: dict[str, Plain] = {}
    for axis in axes:
        key, equals, text = (part.strip() for part in axis.partition("="))
        place = Place(f"{option} {one_line(key)}")
        if not equals or not key:
            raise ScenarioError.at(Place(f"{option} {one_line(axis)}"), EXAMPLE_AXIS.format(option))
        if key in over:
            raise ScenarioError.at(place, "is there twice")
        over[key] = text
        places["sweep", "over", key] = place
    section = data.get("sweep")
    data["sweep"] = {**(section if isinstance(section, dict) else {}), "over": over}
    places.setdefault(("sweep",), Place(option))
    places["sweep", "over"] = Place(option)


def put(
    data: dict[str, Plain], key: str, value: Plain, places: dict[KeyPath, Place], place: Place
) -> None:
    """Write one value into `data` in place, and into `places` that it stands at `place`.

    Raises ScenarioError where the key has no place.
    """
    parts = key.split(".")
    if not all(parts):
        raise ScenarioError.at(place, EXAMPLE)
    section, path = _section(data, parts, places, place)
    others = INSTEAD_OF.get(path) or INSTEAD_OF.get((path[0], path[-1]), ())
    for other in others if value is not None else ():
        if isinstance(section, dict):
            section.pop(other, None)
    section[path[-1]] = value
    for stale in [p for p in places if p[: len(path)] == path]:
        del places[stale]
    places[path] = place


def _section(
    data: dict[str, Plain], parts: list[str], places: dict[KeyPath, Place], place: Place
) -> tuple[Any, KeyPath]:
    """The dict or list that holds the key, and the key's path. Missing sections are made."""
    here: Any = data
    path: KeyPath = ()
    while True:
        n_used, key = _step(here, parts, place)
        parts, path = parts[n_used:], (*path, key)
        if not parts:
            return here, path
        if isinstance(here, dict) and here.get(str(key)) is None:
            here[str(key)] = {}
            places[path] = place
        if path[0] == "recovery" and isinstance(key, int) and isinstance(here[key], str):
            here[key] = {"strategy": here[key]}  # the short form, spelled out
        here = here[key]


def _step(section: Any, parts: list[str], place: Place) -> tuple[int, str | int]:
    """How many parts of the key name the next step, and the step."""
    if isinstance(section, dict):
        return 1, parts[0]
    if not isinstance(section, list):
        raise ScenarioError.at(
            place,
            f"{shown(parts[0])} has no place: what holds it is {shown(section)}, not a section",
        )
    number = as_written(parts[0])
    if isinstance(number, int) and number < len(section):
        return 1, number
    names = [_name(entry) for entry in section]
    for n_used in range(len(parts), 0, -1):  # a name may hold dots
        if (name := ".".join(parts[:n_used])) in names:
            return n_used, names.index(name)
    known = ", ".join(one_line(str(name)) for name in names if name) or "none with a name"
    raise ScenarioError.at(
        place,
        f"no entry {shown(parts[0])}: give a number from 0 to {len(section) - 1} or a name: "
        f"{known}",
    )


def _name(entry: Plain) -> Plain:
    """What an entry of a list is called: its name, else its strategy."""
    if isinstance(entry, dict):
        return entry.get("name") or entry.get("strategy")
    return entry if isinstance(entry, str) else None
