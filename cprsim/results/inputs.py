"""What went into a result, key by key, and in what several results differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cprsim.errors import InputError, ResultError
from cprsim.records import NO_NUMBER
from cprsim.results.folder import SCENARIO
from cprsim.results.identity import N_DIGITS
from cprsim.scenario import read_yaml

OF_SCENARIO = "name"  # a key that every scenario has


@dataclass(frozen=True, slots=True)
class Differing:
    """One input that is not the same in all results."""

    key: str
    values: tuple[str, ...]  # of each result; NO_NUMBER where it has none


def inputs_of(folder: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Every input of a results folder: the scenario's keys, seed, replications, files, versions."""
    found = dict(flat(stored_scenario(folder), ""))
    program = manifest.get("cprsim") or {}
    git = program.get("git") or {}
    more = {
        "seed": manifest.get("seed"),
        "replication shown alone": manifest.get("replay"),
        "replications": manifest.get("replications"),
        "effort": manifest.get("effort"),
        "clicks": manifest.get("clicks"),
        "input": {name: of[:N_DIGITS] for name, of in (manifest.get("inputs") or {}).items()},
        "cprsim": program.get("version"),
        "source of cprsim": (program.get("source") or "")[:N_DIGITS] or None,
        "commit": (git.get("commit") or "")[:N_DIGITS] or None,
        "uncommitted changes": git.get("dirty"),
        "Python": manifest.get("python"),
        "library": manifest.get("libraries"),
    }
    return found | dict(flat(more, ""))


def different(inputs: Sequence[Mapping[str, str]]) -> list[Differing]:
    """In what several results differ, in the order of the keys; the seed is told once."""
    keys = dict.fromkeys(key for one in inputs for key in one)
    alike = all(OF_SCENARIO in one for one in inputs)
    found = [Differing(key, tuple(one.get(key, NO_NUMBER) for one in inputs)) for key in keys]
    differ = [one for one in found if len(set(one.values) - (set() if alike else {NO_NUMBER})) > 1]
    told = {one.key for one in differ}
    return [one for one in differ if not (one.key == "seed" and "simulation.seed" in told)]


def stored_scenario(folder: Path) -> Any:
    """The scenario of a results folder as plain data; empty where it has none."""
    path = folder / SCENARIO
    if not path.is_file():
        return {}
    try:
        return read_yaml(path.read_text("utf-8"), path)[0]
    except (OSError, UnicodeDecodeError, InputError) as error:
        raise ResultError(f"{path} can't be read: {error}") from error


def flat(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Dotted keys and values as texts; entries of a list by their name where they have one."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and value and all(_name(one) for one in value):
        for one in value:
            rest = {name: inner for name, inner in one.items() if name != "name"}
            yield from flat(rest, f"{key}.{_name(one)}")
    elif value is not None:
        yield key, _text(value)


def _name(entry: Any) -> str | None:
    return entry.get("name") if isinstance(entry, Mapping) else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)
