"""The jobs of a fleet, drawn or read from a table, as kinds with a number of jobs each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import Place, ScenarioError, TraceError
from cprsim.failures.sources import stream
from cprsim.job.records import Floats
from cprsim.logs.files import trace_error
from cprsim.logs.reading import FIRST_ROW, named_columns, no_row_where, read_csv
from cprsim.scenario.failures import ANY, JobFailures
from cprsim.scenario.job import MOST_JOBS, MOST_KINDS, Fleet
from cprsim.scenario.prices import GB
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.yaml_text import Plain

OWN_SPARES = "cluster.spares"  # the key; a fleet has `fleet.spares` instead
N_ALONE = 1000  # histories of a job alone
TABLE_SOURCE = "a CSV file of yours with the jobs of the fleet"
JOB_COLUMNS = ("useful_h", "arrive_h", "nodes", "shard_gb", "mtbf_h", "jobs")
DIFFERING = ("useful_h", "shard_gb", "mtbf_h", "nodes")  # the others say when, and how many
VARIED = {"useful": "useful_h", "shard_size": "shard_bytes", "mtbf": "mtbf_h", "nodes": "nodes"}


@dataclass(frozen=True, slots=True)
class JobKind:
    """A number of equal jobs, and their differences from the scenario's (`VARIED`)."""

    n_jobs: int
    place: Place
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Population:
    """All jobs of a fleet."""

    kinds: tuple[JobKind, ...]
    arrive_h: Floats | None = None  # of each job, kind after kind; None: as `Fleet.arrivals` says


def fleet_of(loaded: LoadedScenario) -> Fleet:
    """The section `fleet`. Raises ScenarioError if it is missing."""
    fleet = loaded.scenario.fleet
    if fleet is None:
        message = "is missing: it says how many jobs there are, for example fleet: {jobs: 1000}"
        raise ScenarioError.at(loaded.place(""), message, key="fleet")
    return fleet


def of_one(loaded: LoadedScenario) -> dict[str, Any]:
    """Changes that make a scenario a fleet of its job alone, whose month is 730.5 h of work.

    Its spares are those of the fleet, also where their number is unknown.
    """
    scenario = loaded.scenario
    n, spares = scenario.simulation.replications or N_ALONE, scenario.cluster.spares
    section = {"jobs": 1, "window": f"{scenario.job.useful_h!r} h", "histories": min(n, N_ALONE)}
    changes: dict[str, Any] = {"fleet": section | ({} if spares is None else {"spares": spares})}
    unknown: Any = loaded.data.get("unknown") or {}
    if OWN_SPARES in unknown:
        of_fleet = {"fleet.spares": unknown[OWN_SPARES]}
        changes["unknown"] = {key: unknown[key] for key in unknown if key != OWN_SPARES} | of_fleet
    return changes


def is_alone(fleet: Fleet) -> bool:
    """Whether it is one job that shares nothing: its spares stand as long as it runs."""
    return fleet.jobs == 1 and fleet.nodes is None and fleet.storage_bytes_per_h is None


def population_of(loaded: LoadedScenario) -> Population:
    """The jobs of a scenario's fleet. Raises ScenarioError where they can't be had."""
    fleet = fleet_of(loaded)
    if fleet.table is None:
        return Population(drawn_kinds(loaded, fleet.n_kinds))
    return _read(table_of(loaded, fleet.table))


def table_of(loaded: LoadedScenario, table: str) -> Path:
    """The file of a fleet's jobs. Raises ScenarioError where it is not there."""
    return loaded.input_file(table, "fleet.table", TABLE_SOURCE)


def drawn_kinds(loaded: LoadedScenario, n: int) -> tuple[JobKind, ...]:
    """Draw n kinds of jobs, each with its own length, size and failure rate."""
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
    try:
        table = _numbers(path)
    except TraceError as error:
        raise ScenarioError(error.problems) from None
    n_jobs = table["jobs"].astype(int) if "jobs" in table else pd.Series(1, table.index)
    of_kind = [name for name in DIFFERING if name in table]
    alike = table.groupby(of_kind, sort=False)
    similar = "round their values, so that similar jobs are alike"
    for wrong, message in (
        (len(alike) > MOST_KINDS, f"has {len(alike):,} different jobs; at most {MOST_KINDS:,} are "
                                  f"possible: {similar}"),
        (n_jobs.sum() > MOST_JOBS, f"has {n_jobs.sum():,} jobs; at most {MOST_JOBS:,}"),
    ):  # fmt: skip
        if wrong:
            raise ScenarioError.at(Place(path), message)
    kinds = []
    for _, lines in alike:
        values = {name: float(lines[name].iloc[0]) for name in of_kind}
        if "shard_gb" in values:
            values["shard_bytes"] = values.pop("shard_gb") * GB
        place = Place(path, int(lines.index[0]) + FIRST_ROW)
        kinds.append(JobKind(int(n_jobs[lines.index].sum()), place, values))
    if "arrive_h" not in table:
        return Population(tuple(kinds))
    in_order = alike.ngroup().sort_values(kind="stable").index
    arrive_h = table.arrive_h[in_order].to_numpy(dtype=float)
    return Population(tuple(kinds), np.repeat(arrive_h, n_jobs[in_order]))


def _numbers(path: Path) -> pd.DataFrame:
    """The columns of a table of jobs. Raises TraceError at the first line that is wrong."""
    table = read_csv(path)
    for name in map(str, table.columns):
        if name not in JOB_COLUMNS:
            raise trace_error(
                path, 1, f"is no column of jobs; there are {', '.join(JOB_COLUMNS)}", name
            )
    table = named_columns(table, {}, path, JOB_COLUMNS, JOB_COLUMNS[1:])
    numbers: pd.DataFrame = table.apply(pd.to_numeric, errors="coerce")
    for name in map(str, numbers):
        least, counts = (0.0 if name == "arrive_h" else 1e-6), name in ("nodes", "jobs")
        bad = ~numbers[name].between(least, 1e12) | (counts & (numbers[name] % 1 != 0))
        problem = f"{{value}} is not a {'whole ' * counts}number of at least {least:g}"
        no_row_where(bad.to_numpy(), table, path, name, problem)
    return numbers


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
    *all_but_last, last = [*stateful, "trainers"] if cluster.trainers else stateful
    shares |= {key: stateful[key] for key in all_but_last}
    left = n_nodes
    for key, n in shares.items():
        share = max(round(n * n_nodes / cluster.n_nodes_of[ANY]), 1)
        left -= share
        yield f"cluster.{key}", share
    yield f"cluster.{last}", max(left, 0)
