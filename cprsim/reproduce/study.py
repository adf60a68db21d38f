"""A study: how its numbers are made, its targets, tables, prose and figure.

`Study` is the record; `Work` is what its numbers are made with: the effort, the inputs, and a
memory of the parts that are done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from cprsim.errors import ParameterError, ResultError
from cprsim.files import digest_of, write_whole, writes
from cprsim.plots.chart import Chart
from cprsim.reproduce.summary import Listing, N, Summary, Target
from cprsim.results.identity import file_digest, source_digest
from cprsim.scenario import LoadedScenario, load_scenario
from cprsim.version import __version__
from cprsim.workers import HERE, Workers, run_each

T = TypeVar("T")
Text = str | Callable[[N], str]  # known beforehand, or with the study's numbers in it
PARTS = "parts"


class Effort(StrEnum):
    """How much is computed."""

    QUICK = "quick"  # all results within 5 minutes on 2 cores
    FULL = "full"  # within 60
    LARGE = "large"  # beyond


@dataclass(frozen=True)
class Study(Generic[N]):
    """One result of a paper, or of these documents."""

    name: str  # as in ``cprsim reproduce NAME``
    shows: str  # in one line
    title: str
    question: Text[N]
    numbers: Callable[[Work], N]  # does the work; all that follows reads what it returns
    targets: Sequence[Target[N]] = ()
    listings: Callable[[N], Sequence[Listing]] = lambda numbers: ()
    notes: Sequence[Text[N]] = ()  # paragraphs; an empty one is left out
    chart: Callable[[N], Chart] | None = None
    inputs: tuple[str, ...] = ()  # files that it reads in the folder of the scenarios
    more_inputs: Callable[[], Mapping[str, Path]] = dict  # files known at run time only (logs)
    timed: bool = False  # holds times of this machine, which differ from run to run
    trains: bool = False  # on the user's clicks where there are some

    def make(self, work: Work) -> Summary:
        """Do the work, and say what came of it."""
        return self.summary(self.numbers(work))

    def summary(self, numbers: N) -> Summary:
        """What the study says of its numbers."""
        rows = (target.row(numbers) for target in self.targets)
        notes = (_said(note, numbers) for note in self.notes)
        return Summary(
            self.title,
            _said(self.question, numbers),
            tuple(row for row in rows if row is not None),
            tuple(self.listings(numbers)),
            tuple(note for note in notes if note),
            () if self.chart is None else (self.chart(numbers),),
        )


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a study's work: its name, what computes JSON, and the inputs that this reads."""

    name: str
    compute: Callable[[], Any]
    reads: tuple[str, ...] = ()  # none: all inputs of the study

    def run(self) -> Any:
        """Compute it."""
        return self.compute()


@dataclass(frozen=True)
class Work:
    """What a study works with: its effort, its inputs, and a memory of the parts that are done.

    A part is kept as soon as it is finished and found again by what decides it: the code, the
    effort, its name and the inputs that it reads. An interrupted run continues where it was, and a
    changed scenario makes again only the parts that read it.
    """

    study: Study[Any]
    effort: Effort
    scenarios: Path  # folder of the project's scenarios
    out: Path  # of finished results and parts
    workers: Workers = HERE
    clicks: Path | None = None  # a log in Criteo's format, for studies that train

    def clicks_overrides(self) -> list[str]:
        """What makes a scenario train on the user's clicks; nothing without any.

        Plain SGD, which does for generated clicks, learns a log of rare values too slowly.
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
        return load_scenario(self.input(name), list(overrides))

    def input(self, name: str) -> Path:
        """The path of one of its inputs."""
        return self.files()[name]

    def files(self) -> dict[str, Path]:
        """Its input files by name. Raises ParameterError where one is missing."""
        study = self.study
        files = {name: self.scenarios / name for name in study.inputs} | dict(study.more_inputs())
        for name, path in files.items():
            if not path.is_file():
                raise ParameterError(
                    f"'{study.name}' reads {path}, which is not there; run it in the project's "
                    f"folder, or name the folder of {name} by --scenarios"
                )
        return files if self.clicks is None else files | {"clicks": self.clicks}

    def each(self, parts: Sequence[Part]) -> list[Any]:
        """The outcomes of several parts, in their order; those that are new side by side.

        Raises ResultError where one can't be kept.
        """
        new = [part for part in parts if _read(self._path(part)) is None]
        for number, outcome in run_each(Part.run, new, self.workers, lambda n: new[n].name):
            part = new[number]
            _keep(self._path(part), {"study": self.study.name, "part": part.name, "is": outcome})
        return [self._found(self._path(part)) for part in parts]

    def per_seed(
        self, compute: Callable[[int], Any], n: int, first: int = 1, reads: Sequence[str] = ()
    ) -> list[Any]:
        """The outcomes of one part for each of n seeds."""
        seeds = range(first, first + n)
        return self.each(
            [Part(f"seed {seed}", partial(compute, seed), tuple(reads)) for seed in seeds]
        )

    def once(self, part: str, compute: Callable[[], Any], reads: Sequence[str] = ()) -> Any:
        """The outcome of a part: found if it was computed before, else computed and kept."""
        return self.each([Part(part, compute, tuple(reads))])[0]

    def folder(self, part: str, reads: Sequence[str] = ()) -> Path:
        """A folder of a part that keeps journals of its own; another one as soon as a part is."""
        return self.out / PARTS / self._digest(Part(part, dict, tuple(reads)))

    def n_finished(self) -> int:
        """How many parts of the study are kept, of this run and of those before."""
        kept = map(_read, (self.out / PARTS).glob("*.json"))
        return sum((one or {}).get("study") == self.study.name for one in kept)

    def _found(self, path: Path) -> Any:
        read = _read(path)
        if read is None:
            raise ResultError(f"{path} was taken away while it was needed")
        return read["is"]

    def _path(self, part: Part) -> Path:
        return self.out / PARTS / f"{self._digest(part)}.json"

    def _digest(self, part: Part) -> str:
        files = self.files()
        reads = [*part.reads, *(["clicks"] if self.clicks else [])] if part.reads else files
        inputs = sorted(file_digest(files[name]) for name in reads)
        code = [__version__, source_digest()]
        return digest_of([self.study.name, *code, str(self.effort), part.name, inputs])


def _said(text: Text[N], numbers: N) -> str:
    return text if isinstance(text, str) else text(numbers)


def _read(path: Path) -> dict[str, Any] | None:
    """A part that is whole, None where it is not there or damaged."""
    try:
        read = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) and "is" in read else None


def _keep(path: Path, found: Mapping[str, Any]) -> None:
    """Write a part whole or not at all, and onto the disk."""
    with writes(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(found, allow_nan=False, ensure_ascii=False))
