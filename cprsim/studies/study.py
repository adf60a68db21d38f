"""A study: a function that makes a summary of a paper's claims; and what it works with.

`Work` gives it the effort, the inputs, and a store of the parts that are finished.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from operator import call
from pathlib import Path
from typing import Any, TypeVar

from cprsim.errors import ParameterError
from cprsim.files import digest_of, write_whole, writes
from cprsim.plots.chart import Chart
from cprsim.results.identity import file_digest, source_digest
from cprsim.scenario.reading import LoadedScenario, load_scenario
from cprsim.studies.verdicts import Claim
from cprsim.version import __version__
from cprsim.workers import HERE, Workers, run_each

T = TypeVar("T")
Name = TypeVar("Name", bound=Hashable)
PARTS = "parts"
DATA = "CPRSIM_DATA"


@dataclass(frozen=True, slots=True)
class Listing:
    """A table beside the comparisons."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a study says: its question, its comparisons, and what they mean.

    All that is kept of a study besides its figures, as JSON.
    """

    title: str
    question: str
    rows: tuple[Claim, ...]
    listings: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()

    @classmethod
    def of(
        cls,
        title: str,
        question: str,
        claims: Iterable[Claim],
        tables: Mapping[str, Iterable[Mapping[str, str]]],
        notes: Iterable[str],
        *charts: Chart,
    ) -> Summary:
        """A summary; tables by title, a row's cells by heading; empty notes are left out."""
        each = {title: list(rows) for title, rows in tables.items()}
        listings = (
            Listing(title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows))
            for title, rows in each.items()
        )
        return cls(
            title, question, tuple(claims), tuple(listings), tuple(filter(None, notes)), charts
        )


@dataclass(frozen=True)
class Study:
    """One result of a paper, or of these documents."""

    name: str  # as in ``cprsim reproduce NAME``
    shows: str  # in one line
    make: Callable[[Work], Summary]
    inputs: tuple[str, ...] = ()  # files that it reads in the folder of the scenarios
    data: Mapping[str, str | Path] = field(default_factory=dict)  # others, below CPRSIM_DATA
    trains: bool = False  # on the user's clicks where there are some

    def found(self) -> dict[str, Path]:
        """Its data by name; empty unless all are there."""
        folder = Path(os.environ.get(DATA, ""))
        paths = {name: folder / file for name, file in self.data.items()}
        return paths if all(path.is_file() for path in paths.values()) else {}


class Effort(StrEnum):
    """How much is computed."""

    QUICK = "quick"  # all results within 5 minutes on 2 cores
    FULL = "full"  # within 60
    LARGE = "large"  # beyond


@dataclass(frozen=True)
class Work:
    """What a study works with: its effort, its inputs, and a store of the parts that are finished.

    A part is stored as soon as it is finished and found again by what decides it: the code, the
    effort, its name and the study's inputs. An interrupted run continues where it was.
    """

    study: Study
    effort: Effort
    scenarios: Path  # folder of the project's scenarios
    out: Path  # of finished results and parts
    workers: Workers = HERE
    clicks: Path | None = None  # a log in Criteo's format, for studies that train

    def clicks_overrides(self) -> list[str]:
        """What makes a scenario train on the user's clicks; nothing without any.

        Plain SGD, which suffices for generated clicks, learns a log of rare values too slowly.
        """
        if self.clicks is None:
            return []
        clicks = f"kernel.clicks={{file: {json.dumps(str(self.clicks.absolute()))}}}"
        return [clicks, "kernel.optimizer=adagrad", "kernel.rate=0.02"]

    def pick(self, quick: T, full: T, large: T) -> T:
        """What fits the effort."""
        return {Effort.QUICK: quick, Effort.FULL: full, Effort.LARGE: large}[self.effort]

    def scenario(self, name: str, overrides: Sequence[str] = ()) -> LoadedScenario:
        """One of its scenarios. Raises ScenarioError where it can't be read."""
        return load_scenario(self.files()[name], list(overrides))

    def files(self) -> dict[str, Path]:
        """Its input files by name. Raises ParameterError where one is missing."""
        study = self.study
        files = {name: self.scenarios / name for name in study.inputs}
        for path in files.values():
            if not path.is_file():
                raise ParameterError(f"'{study.name}' reads {path}, which is not there")
        return files | study.found() | ({} if self.clicks is None else {"clicks": self.clicks})

    def each(self, parts: Mapping[Name, Callable[[], Any]]) -> dict[Name, Any]:
        """What the parts compute (JSON), by their names; those that are new run in parallel.

        Raises ResultError where one can't be stored.
        """
        stored = dict(zip(parts, self.paths(parts), strict=True))
        new = [name for name, path in stored.items() if _read(path) is None]
        todo = [parts[name] for name in new]
        for number, outcome in run_each(call, todo, self.workers, lambda n: str(new[n])):
            path = stored[new[number]].with_suffix(".json")
            with writes(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, json.dumps(outcome, allow_nan=False, ensure_ascii=False))
        return {name: _read(path) for name, path in stored.items()}

    def per_seed(self, compute: Callable[[int], Any], n: int, first: int = 1) -> list[Any]:
        """The outcomes of one part for each of n seeds."""
        seeds = range(first, first + n)
        return [*self.each({f"seed {seed}": partial(compute, seed) for seed in seeds}).values()]

    def paths(self, parts: Iterable[Any]) -> list[Path]:
        """Where parts are stored."""
        inputs = sorted(map(file_digest, self.files().values()))
        decided_by = [self.study.name, __version__, source_digest(), str(self.effort), inputs]
        return [self.out / PARTS / digest_of([*decided_by, str(part)]) for part in parts]


def _read(path: Path) -> Any:
    """The outcome of a part; None where it is not there or damaged."""
    try:
        return json.loads(path.with_suffix(".json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
