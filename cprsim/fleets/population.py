"""Which jobs a fleet has: drawn, or read from a table; as kinds with so many jobs each."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cprsim.errors import Place, ScenarioError
from cprsim.records import Floats
from cprsim.scenario import LoadedScenario
from cprsim.scenario.failures import ANY, JobFailures
from cprsim.scenario.fleet import MOST_JOBS, MOST_KINDS, Fleet
from cprsim.scenario.yaml_text import Plain
from cprsim.streams import stream

SOURCE = "a CSV file of yours with the jobs of the fleet"
GB = 1e9
COLUMNS = ("useful_h", "arrive_h", "nodes", "shard_gb", "mtbf_h", "jobs")
OF_KIND = ("useful_h", "shard_gb", "mtbf_h", "nodes")  # the others say when, and how many
VARIED = {"useful": "useful_h", "shard_size": "shard_bytes", "mtbf": "mtbf_h", "nodes": "nodes"}


@dataclass(frozen=True, slots=True)
class JobKind:
    """Jobs that are all alike: how many, and what differs from the scenario's (`VARIED`)."""

    n_jobs: int
    place: Place
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Population:
    """All jobs of a fleet."""

    kinds: tuple[JobKind, ...]
    arrive_h: Floats | None = None  # of each job, kind after kind; None: as `Fleet.arrivals` says


def fleet_of(loaded: LoadedScenario) -> Fleet:
    """The section `fleet`. Raises ScenarioError where there is none."""
    fleet = loaded.scenario.fleet
    if fleet is None:
        message = "is missing: it says how many jobs there are, for example fleet: {jobs: 1000}"
        raise ScenarioError.at(loaded.place(""), message, key="fleet")
    return fleet


def population_of(loaded: LoadedScenario) -> Population:
    """The jobs of a scenario's fleet. Raises ScenarioError where they can't be had."""
    fleet = fleet_of(loaded)
    if fleet.table is None:
        return Population(drawn_kinds(loaded, fleet.n_kinds))
    return _read(table_of(loaded, fleet.table))


def table_of(loaded: LoadedScenario, table: str) -> Path:
    """The file of a fleet's jobs. Raises ScenarioError where it is not there."""
    return loaded.input_file(table, "fleet.table", SOURCE)


def drawn_kinds(loaded: LoadedScenario, n: int) -> tuple[JobKind, ...]:
    """So many kinds of jobs, each with its own length, size and failure rate."""
    fleet, scenario, place = fleet_of(loaded), loaded.scenario, loaded.place("fleet.vary")
    assert fleet.jobs is not None, "the schema sees to it"
    drawn = {
        name: vary.draw(stream(scenario.simulation.seed, 0, f"fleet/{key}"), n)
        for key, name in VARIED.items()
        if (vary := getattr(fleet.vary, key)) is not None
    }
    failures, n_nodes = scenario.failures, scenario.n_nodes_of[ANY]
    if "nodes" in drawn:
        drawn["nodes"] = drawn["nodes"].round()
    if not isinstance(failures, JobFailures):
        if "mtbf_h" in drawn:
            message = "goes with failures of kind `job`, whose MTBF is that of a whole job"
            raise ScenarioError.at(place, message, key="fleet.vary.mtbf")
    elif "mtbf_h" in drawn:  # which falls as one over the nodes
        drawn.setdefault("nodes", (n_nodes * failures.mtbf_h / drawn["mtbf_h"]).round())
    elif "nodes" in drawn:
        drawn["mtbf_h"] = failures.mtbf_h * n_nodes / drawn["nodes"]
    return tuple(
        JobKind(
            fleet.jobs // n + (number < fleet.jobs % n),
            place,
            {name: float(values[number]) for name, values in drawn.items()},
        )
        for number in range(n)
    )


# ------------------------------------------------------------------------------ the table


def _read(path: Path) -> Population:
    """The jobs of a table, lines that are alike as one kind."""
    alike: dict[tuple[float | None, ...], list[tuple[Place, dict[str, float]]]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for place, line in _lines(path, csv.reader(file)):
                key = tuple(line.get(name) for name in OF_KIND)
                alike.setdefault(key, []).append((place, line))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError.at(Place(path), f"can't be read as a CSV file: {error}") from None
    lines = [line for some in alike.values() for _, line in some]
    n_jobs = [round(line.get("jobs", 1.0)) for line in lines]
    similar = "round their values, so that similar jobs are alike"
    for wrong, message in (
        (not alike, "has no job: a line per job below the heading"),
        (len(alike) > MOST_KINDS, f"has {len(alike):,} different jobs; at most {MOST_KINDS:,} are "
                                  f"possible: {similar}"),
        (sum(n_jobs) > MOST_JOBS, f"has {sum(n_jobs):,} jobs; at most {MOST_JOBS:,}"),
    ):  # fmt: skip
        if wrong:
            raise ScenarioError.at(Place(path), message)
    kinds = []
    for (place, first), *others in alike.values():
        n = sum(round(line.get("jobs", 1.0)) for line in (first, *(line for _, line in others)))
        values = {name: first[name] for name in OF_KIND if name in first}
        if "shard_gb" in values:
            values["shard_bytes"] = values.pop("shard_gb") * GB
        kinds.append(JobKind(n, place, values))
    arrive_h = None
    if "arrive_h" in lines[0]:
        arrive_h = np.repeat([line["arrive_h"] for line in lines], n_jobs)
    return Population(tuple(kinds), arrive_h)


def _lines(path: Path, rows: Iterator[list[str]]) -> Iterator[tuple[Place, dict[str, float]]]:
    heading = [name.strip() for name in next(rows, [])]
    for name in heading:
        if name not in COLUMNS:
            message = f"has a column {name[:40]!r}; there are {', '.join(COLUMNS)}"
            raise ScenarioError.at(Place(path, 1), message)
        if heading.count(name) > 1:
            raise ScenarioError.at(Place(path, 1), f"has the column {name} twice")
    if "useful_h" not in heading:
        raise ScenarioError.at(Place(path, 1), "has no column useful_h")
    for number, row in enumerate(rows, start=2):
        if not any(cell.strip() for cell in row):
            continue
        place = Place(path, number)
        if len(row) != len(heading):
            message = f"has {len(row)} values where the heading has {len(heading)}"
            raise ScenarioError.at(place, message)
        pairs = zip(heading, row, strict=True)
        yield place, {name: _number(place, name, text) for name, text in pairs}


def _number(place: Place, name: str, text: str) -> float:
    least, counts = (0.0 if name == "arrive_h" else 1e-6), name in ("nodes", "jobs")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= 1e12 or (counts and value != round(value)):
        kind = "a whole number" if counts else "a number"
        said = f"{text.strip()[:40]!r} in column {name} is not {kind} of at least {least:g}"
        raise ScenarioError.at(place, said)
    return value


# ------------------------------------------------------------------------------ as scenarios


def scenario_of(loaded: LoadedScenario, kind: JobKind, number: int) -> LoadedScenario:
    """The scenario of one kind of job: what `cprsim run` would simulate.

    Raises ScenarioError, at the kind's place, where its values make no scenario.
    """
    scenario, values = loaded.scenario, kind.values
    changes: dict[str, Plain] = {"simulation.seed": scenario.simulation.seed + number}
    if "useful_h" in values:
        changes["job.useful"] = f"{values['useful_h']!r} h"
    if "shard_bytes" in values:
        key = "cluster.state" if scenario.cluster.workers else "cluster.shard_size"
        changes[key] = f"{values['shard_bytes']!r} B"
    if "mtbf_h" in values:
        changes |= {"failures.mtbf": f"{values['mtbf_h']!r} h", "failures.nodes": None}
    if "nodes" in values:
        changes |= dict(_roles(loaded, round(values["nodes"])))
    changes["fleet"] = None
    return loaded.varied(changes, lambda _: kind.place)


def _roles(loaded: LoadedScenario, n_nodes: int) -> Iterator[tuple[str, Plain]]:
    """Nodes of each role, in the shares that the scenario's job has; one has the rest."""
    cluster = loaded.scenario.cluster
    if cluster.workers:
        yield "cluster.workers", n_nodes
        return
    shares = {f"others.{name}": n for name, n in cluster.others.items()}
    stateful = {f"roles.{name}.nodes": role.nodes for name, role in cluster.roles.items()}
    stateful = stateful or {"emb_ps": cluster.emb_ps}
    *others, last = [*stateful, "trainers"] if cluster.trainers else stateful
    shares |= {key: stateful[key] for key in others}
    left = n_nodes
    for key, n in shares.items():
        share = max(round(n * n_nodes / cluster.n_nodes_of[ANY]), 1)
        left -= share
        yield f"cluster.{key}", share
    yield f"cluster.{last}", max(left, 0)
