"""A population of jobs: how they differ, read from a file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from cprsim.errors import ParameterError, ScenarioError
from cprsim.records import Floats
from cprsim.streams import stream
from cprsim.units import SIZE, TIME, Dimension

AFTERWARDS = "afterwards: "
KEYS = {"useful": TIME, "shard_size": SIZE, "mtbf": TIME}
ASSUMED = re.compile(r"\bassumed\b")


@dataclass(frozen=True, slots=True)
class Vary:
    """How one key differs from job to job: lognormal cut at both ends, or log-uniform."""

    family: str
    low: float
    high: float
    median: float = 0.0
    sigma: float = 0.0

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Independent values (n,), in the unit inside."""
        u = rng.random(n)
        if self.family == "log-uniform":
            return np.exp(log(self.low) + u * log(self.high / self.low))
        ends = [log(end / self.median) / self.sigma for end in (self.low, self.high)]
        below, above = special.ndtr(ends)
        normal = special.ndtri(below + u * (above - below))
        values: Floats = self.median * np.exp(self.sigma * normal)
        return values


@dataclass(frozen=True, slots=True)
class Job:
    """One kind of job, as overrides of the scenario of a typical one."""

    useful_h: float
    shard_bytes: float
    mtbf_h: float
    n_emb_ps: int
    n_trainers: int

    def overrides(self) -> list[str]:
        """What to change in the scenario."""
        return [
            f"job.useful={self.useful_h!r} h",
            f"cluster.shard_size={self.shard_bytes!r} B",
            f"cluster.emb_ps={self.n_emb_ps}",
            f"cluster.trainers={self.n_trainers}",
            f"failures.mtbf={self.mtbf_h!r} h",
        ]


@dataclass(frozen=True, slots=True)
class Other:
    """Another assumption about the fleet, or several."""

    overrides: tuple[str, ...] = ()  # of the scenario
    population: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # changed entries


@dataclass(frozen=True)
class Population:
    """Jobs of a fleet, and the same fleet under other assumptions."""

    n_jobs: int
    window_h: float
    seed: int
    vary: Mapping[str, Vary]
    typical_nodes: int
    at_mtbf_h: float
    emb_ps_share: float
    others: Mapping[str, Other]  # by title

    def jobs(self, n: int) -> list[Job]:
        """Draw so many kinds of jobs, each with its own length, size and failure rate."""
        drawn = {
            key: vary.draw(stream(self.seed, 0, f"fleet/{key}"), n)
            for key, vary in self.vary.items()
        }
        nodes = np.rint(self.typical_nodes * self.at_mtbf_h / drawn["mtbf"]).astype(int)
        n_emb_ps = np.maximum(np.rint(self.emb_ps_share * nodes).astype(int), 1)
        return [
            Job(float(useful_h), float(shard), float(mtbf_h), int(emb), int(all_nodes - emb))
            for useful_h, shard, mtbf_h, emb, all_nodes in zip(
                drawn["useful"], drawn["shard_size"], drawn["mtbf"], n_emb_ps, nodes, strict=True
            )
        ]

    def changed(self, title: str) -> Population:
        """The population under one of the other assumptions."""
        vary, typical = dict(self.vary), self.typical_nodes
        for key, entries in self.others[title].population.items():
            if key == "nodes":
                typical = int(entries["typical"])
            else:
                read = {name: _value(name, value, KEYS[key]) for name, value in entries.items()}
                vary[key] = replace(vary[key], **read)
        return replace(self, vary=vary, typical_nodes=typical)


def read_population(path: Path) -> Population:
    """Read the file. Raises ParameterError where it can't be used."""
    try:
        read = tomllib.loads(path.read_text("utf-8"))
        nodes = read["nodes"]
        population = Population(
            n_jobs=int(read["n_jobs"]),
            window_h=TIME.parse(read["window"]),
            seed=int(read["seed"]),
            vary={key: _vary(read["vary"][key], unit) for key, unit in KEYS.items()},
            typical_nodes=int(nodes["typical"]),
            at_mtbf_h=TIME.parse(nodes["at_mtbf"]),
            emb_ps_share=float(nodes["emb_ps_share"]),
            others=dict(_others(read)),
        )
        for title in population.others:
            population.changed(title)
    except KeyError as error:
        raise ParameterError(f"{path}: the entry {error} is missing or has no meaning") from error
    except (OSError, ValueError, TypeError, ScenarioError) as error:
        raise ParameterError(f"{path}: {error}") from error
    return population


def _others(read: Mapping[str, Any]) -> Iterator[tuple[str, Other]]:
    """In the order in which they are shown: first what was fixed before the first run."""
    for title, overrides in read["others"].items():
        yield title, Other(overrides=tuple(overrides))
    for title, changes in read["others-of-the-population"].items():
        yield title, Other(population=changes)
    for title, both in read["afterwards"].items():
        overrides = tuple(both.get("overrides", ()))
        yield AFTERWARDS + title, Other(overrides, both.get("population", {}))


def _vary(read: Mapping[str, Any], unit: Dimension) -> Vary:
    vary = Vary(**{name: _value(name, value, unit) for name, value in read.items()})
    lognormal = vary.family == "lognormal" and vary.median > 0 and vary.sigma > 0
    if not (lognormal or vary.family == "log-uniform") or not 0 < vary.low < vary.high:
        raise ParameterError(
            f"{dict(read)} is neither lognormal (median, sigma, low, high) nor log-uniform "
            "(low, high)"
        )
    return vary


def _value(name: str, value: Any, unit: Dimension) -> Any:
    return value if name in ("family", "sigma") else unit.parse(value)


def assumed_in(*paths: Path) -> tuple[str, ...]:
    """The keys whose line says that it was assumed: the free inputs."""
    found = [
        f"{path.name}: {key}"
        for path in paths
        for line in path.read_text("utf-8").splitlines()
        if (key := _assumed(line))
    ]
    return tuple(found)


def _assumed(line: str) -> str:
    """The key before ``:`` or ``=`` of a line whose comment says `assumed`, else nothing."""
    said, _, comment = line.partition("#")
    before, sign, _ = said.replace("=", ":").partition(":")
    key = before.strip().removeprefix("-").strip()
    is_key = sign and key.replace(" ", "").replace("_", "").isalnum()
    return key if is_key and ASSUMED.search(comment) else ""
