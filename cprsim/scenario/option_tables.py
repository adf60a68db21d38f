"""Tables by nodes in files: options of elastic systems whose numbers a CSV file holds.

``throughput: table.csv`` or ``throughput: {file: table.csv, column: samples_per_s}`` becomes the
list of numbers that it stands for: with all nodes of the job first, then with a unit fewer and so
on, as far as the table goes. Of stalls, as ``restarts: {file: table.csv, column: restart_s}``, the
first is that with a unit missing, and the column's name ends in their unit. The entry `policy`
takes ``elastic: {speed: table.csv}`` likewise, as speeds relative to all nodes. A table of others
may call its column of nodes something else: ``{file: table.csv, nodes: "GPU nodes"}``. So what is
dumped of a scenario holds the numbers themselves.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any

from cprsim.errors import ParameterError
from cprsim.foreign import one_line
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.schema import Scenario
from cprsim.scenario.yaml_text import Plain

NODES, UNIT = "nodes", "unit_nodes"  # a column, and an option of the systems
SPEED = ("elastic", "speed")  # of a policy that the scenario writes
BY_NODES = ("throughput", "speed")  # options that a table by nodes may give
TABLE, STALLS = "table", "stalls"  # kinds of options
UNITS = ("s", "min", "h")  # of stalls: a column's name ends in one
MOST_BYTES = 1_000_000
KEYS = {"file", "column", "nodes"}
HOW = "give a list, a .csv file, or {file: table.csv, column: samples_per_s}"


@dataclass(frozen=True, slots=True)
class OptionTable:
    """An option that names a file: of which entry of `recovery`, and what it says."""

    entry: int
    path: tuple[str, ...]  # of its key below the options
    written: Any  # as the scenario has it
    is_stalls: bool = False

    @property
    def key(self) -> str:
        return ".".join(("recovery", str(self.entry), "options", *self.path))

    @property
    def is_relative(self) -> bool:
        """Whether its numbers are speeds relative to the first."""
        return self.path == SPEED


def tables_in(data: Mapping[str, Plain]) -> list[OptionTable]:
    """Options of scenarios that name a file instead of a list of numbers."""
    entries: Any = data.get("recovery")
    return [
        OptionTable(i, path, said, is_stalls)
        for i, entry in enumerate(entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        for path, is_stalls in _table_options(entry.get("strategy"))
        if isinstance(said := _at(entry.get("options"), path), str | dict)
    ]


def _at(section: Any, path: tuple[str, ...]) -> Any:
    """What stands at a path; None where nothing does."""
    for key in path:
        section = section.get(key) if isinstance(section, dict) else None
    return section


def _table_options(strategy: object) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Where options stand that a file may give, and whether they are stalls."""
    system = SYSTEMS.get(strategy) if isinstance(strategy, str) else None
    if strategy == "policy":
        yield SPEED, False
    elif system is not None:
        for option in fields(system.options):
            kind = option.metadata.get("kind")
            if kind == STALLS or (kind == TABLE and option.name in BY_NODES):
                yield (option.name,), kind == STALLS


def with_values(
    data: Mapping[str, Plain], tables: list[OptionTable], values: Callable[[OptionTable], Plain]
) -> dict[str, Any]:
    """The data with other values of some options."""
    made: dict[str, Any] = deepcopy(dict(data))
    for table in tables:
        _at(made["recovery"][table.entry]["options"], table.path[:-1])[table.path[-1]] = values(
            table
        )
    return made


def file_of(written: Any) -> tuple[str, str | None, str]:
    """The file that an option names, its column, and that of the nodes.

    Raises ParameterError for what is none.
    """
    if isinstance(written, str):
        written = {"file": written}
    unknown = set(written) - KEYS
    file, named, nodes = written.get("file"), written.get("column"), written.get("nodes", NODES)
    names = isinstance(named, str | None) and isinstance(nodes, str)
    if unknown or not isinstance(file, str) or not names:
        raise ParameterError(f"is no table: {HOW}")
    if not file.lower().endswith(".csv"):
        raise ParameterError(f"`{one_line(file)}` is no table: {HOW}")
    return file, named, nodes


def values_from(
    path: Path, named: str | None, nodes: str, scenario: Scenario, table: OptionTable
) -> list[float] | list[str]:
    """What an option says: numbers, or stalls with their unit.

    Parameters
    ----------
    path, named, nodes : the file, the column of its numbers, None: the only one besides that of the
        nodes, and that one
    scenario : complete but for such options

    Raises
    ------
    ParameterError : the file is no such table, or does not know the job's number of nodes
    """
    name, by_nodes = read_table(path, named, nodes)
    n_nodes_of, around = scenario.cluster.n_nodes_of, table.path[:-1]
    section = _at(scenario.recovery[table.entry].options or {}, around)
    role = (section.get("role") if around else None) or scenario.cluster.state_role
    if role not in n_nodes_of:
        raise ParameterError(f"the cluster has no role `{one_line(role)}`")
    step = section.get(UNIT) or 1
    n = n_nodes_of[role] - (step if table.is_stalls else 0)
    numbers = []
    while n in by_nodes and n > 0:
        numbers.append(by_nodes[n])
        n -= step
    first = n + step * len(numbers)
    if not numbers:
        whose = "" if table.is_stalls else "the job's "
        raise ParameterError(f"{path.name} has no row for {whose}{first} nodes")
    below = [nodes for nodes in by_nodes if nodes < n and (first - nodes) % step == 0]
    if below:
        raise ParameterError(
            f"{path.name} has no row for {n} nodes, but one for {max(below)}: units are of {step}"
        )
    if table.is_relative and not numbers[0] > 0:
        raise ParameterError(f"{path.name}: the job's {first} nodes do nothing")
    if table.is_stalls:
        return _with_unit(path, name, numbers)
    return [one / numbers[0] for one in numbers] if table.is_relative else numbers


def _with_unit(path: Path, name: str, numbers: list[float]) -> list[str]:
    """Stalls as a scenario writes them, in the unit that their column's name ends in."""
    unit = name.rpartition("_")[2]
    if unit not in UNITS:
        raise ParameterError(
            f"{path.name}: the name of column `{one_line(name)}` says no unit of its times: let it "
            "end in _s, _min or _h, as restart_s"
        )
    return [f"{one!r} {unit}" for one in numbers]


def read_table(path: Path, named: str | None, of: str = NODES) -> tuple[str, dict[int, float]]:
    """A column of a CSV file, its name and its numbers by the column `of` nodes.

    Raises ParameterError for what is wrong.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ParameterError(f"{path.name} has more than {MOST_BYTES:,} bytes: is it a table?")
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            name = _column(path, list(reader.fieldnames or ()), named, of)
            by_nodes: dict[int, float] = {}
            for row in reader:
                nodes, value = _numbers(f"{path.name}:{reader.line_num}", row, of, name)
                if nodes in by_nodes:
                    raise ParameterError(f"{path.name}:{reader.line_num}: {nodes} nodes again")
                by_nodes[nodes] = value
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"{path.name} can't be read: {one_line(str(error), 200)}") from error
    return name, by_nodes


def _column(path: Path, names: list[str], named: str | None, of: str) -> str:
    known = ", ".join(map(one_line, names)) or "none"
    if of not in names:
        how = f"; say which it is: {{file: {path.name}, nodes: NAME}}" if len(names) > 1 else ""
        raise ParameterError(f"{path.name} has no column `{one_line(of)}`; it has: {known}{how}")
    others = [name for name in names if name != of]
    if named is None and len(others) == 1:
        return others[0]
    if named not in others:
        which = "say which `column`" if named is None else f"has no column `{one_line(named)}`"
        raise ParameterError(f"{path.name}: {which}; it has: {known}")
    return named


def _numbers(place: str, row: Mapping[str, Any], of: str, name: str) -> tuple[int, float]:
    """The nodes and the number of a row."""
    try:
        nodes, value = int(row[of]), float(row[name])
    except (TypeError, ValueError):
        text = f"{row.get(of)}, {row.get(name)}"
        raise ParameterError(
            f"{place}: `{one_line(text)}` is no number of nodes, or no number behind it"
        ) from None
    if nodes < 1 or not isfinite(value) or value < 0:
        raise ParameterError(f"{place}: {nodes} nodes, {value}: at least 1 node, nothing negative")
    return nodes, value
