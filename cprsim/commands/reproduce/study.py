"""A study: a function that makes a summary of a paper's claims; made again, or found.

<out>/<name>-<digest>/   summary.json, comparisons.csv, figures, its inputs, manifest.json
<out>/points/            finished parts of results that are being made, as those of sweeps
results/reproduction/    in the repository: the folders of the last full run, by name
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from cprsim.commands.reproduce.verdicts import Claim, Ours, Target
from cprsim.errors import ParameterError, watch
from cprsim.files import NOT_STORED, digest_of
from cprsim.pages.chart import Chart, Panel, chart_figure
from cprsim.pages.figures import save_figure
from cprsim.results.folder import (
    get_or_create,
    publishing,
    read_manifest,
    read_record,
    write_csv,
    write_manifest,
    write_record,
)
from cprsim.results.identity import Identity, file_digest, source_digest
from cprsim.results.store import PointStore, Task
from cprsim.scenario.reading import LoadedScenario, load_scenario
from cprsim.scenario.yaml_text import read_yaml
from cprsim.version import PACKAGE, __version__
from cprsim.workers import HERE, Workers

T = TypeVar("T")
Name = TypeVar("Name", bound=Hashable)
DATA = "CPRSIM_DATA"
EFFORTS = ("quick", "full", "large")  # all results within 5 minutes on 2 cores, an hour, beyond
CATALOGUE = Path(__file__).with_name("studies.yaml")
SUMMARY, COMPARISONS = "summary.json", "comparisons.csv"
STUDY_COLUMNS = ("quantity", "paper", "provenance", "ours", "verdict")


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of a study: question, comparisons, tables, notes and figures; stored as JSON."""

    title: str
    question: str
    rows: tuple[Claim, ...]
    listings: tuple[Mapping[str, Any], ...] = ()  # further tables: title, headings, rows
    notes: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    records: Mapping[str, Any] = field(default_factory=dict)  # further files (JSON), by name
    name: str = field(default="", metadata=NOT_STORED)  # of the study
    path: Path = field(default=Path(), metadata=NOT_STORED)  # of its finished folder


@dataclass(frozen=True)
class Study:
    """One result of a paper, as `studies.yaml` describes it."""

    name: str  # as in ``cprsim reproduce NAME``
    make: Callable[[Work], Summary]
    shows: str  # in one line
    title: str
    question: str
    notes: Sequence[str] = ()  # what the numbers mean; in braces what `make` gives
    chart: str = ""  # title of the figure, if there is one
    chart_shows: str = ""
    claims: Mapping[str, Target] = field(default_factory=dict)  # of its quantities, by name
    inputs: Sequence[str] = ()  # files that it reads in the folder of the scenarios
    data: Mapping[str, str] = field(default_factory=dict)  # others, in the package or CPRSIM_DATA
    cases: Mapping[str, Sequence[str]] = field(default_factory=dict)  # overrides of a scenario
    trains: bool = False  # on the user's clicks where there are some
    paper: str = ""  # the figure or table that it makes again, by what that shows

    @classmethod
    def described(
        cls, name: str, file: str, claims: Mapping[str, Any], rests_on: Any = "", **texts: Any
    ) -> Study:
        """With the function of its name in a file of this folder, imported when it is called."""

        def make(work: Work) -> Summary:
            module = import_module(f"{__package__}.{file}")
            summary: Summary = getattr(module, name.replace("-", "_"))(work)
            return summary

        rows = {key: {"rests_on": rests_on, **row} for key, row in claims.items()}
        targets = {key: Target.of(key, **row) for key, row in rows.items()}
        return cls(name, make, claims=targets, **texts)

    @property
    def known_as(self) -> str:
        """The marks of the paper's numbers."""
        marks = {target.mark for target in self.claims.values()}
        return ", ".join(sorted(marks - {""}))

    def data_files(self) -> dict[str, Path]:
        """Its data files by name; empty unless all exist."""
        folders = (PACKAGE, Path(os.environ.get(DATA, "")))
        paths = {
            name: folder / file
            for name, file in self.data.items()
            for folder in folders
            if (folder / file).is_file()
        }
        return paths if len(paths) == len(self.data) else {}

    def summary(
        self,
        estimates: Mapping[str, Ours],
        tables: Mapping[str, Iterable[Mapping[str, str]]],
        *panels: Panel,
        records: Mapping[str, Any] | None = None,
        **words: Any,
    ) -> Summary:
        """Its quantities, judged; tables by title, a row's cells by heading; and its notes.

        A name without a target has nothing to compare with; empty notes are left out.
        """
        claims = (
            self.claims.get(name, Target(name)).claim(estimate)
            for name, estimate in estimates.items()
        )
        listings = (
            {"title": title, "headings": [*rows[0]], "rows": [[*row.values()] for row in rows]}
            for title, rows in ((title, [*rows]) for title, rows in tables.items())
        )
        texts = (self.question, self.chart_shows, *self.notes)
        question, shows, *notes = (text.format(**words) for text in texts)
        filled = tuple(filter(None, notes))
        charts = (Chart(self.chart, shows, panels),) if panels else ()
        return Summary(
            self.title, question, tuple(claims), tuple(listings), filled, charts, records or {}
        )


@dataclass(frozen=True)
class Work:
    """The set-up of a study: its effort, its inputs, and a store of finished parts.

    A part is stored as soon as it is finished, under a digest of the code, the effort, its name and
    the study's inputs. An interrupted run continues where it was.
    """

    study: Study
    effort: str  # of `EFFORTS`
    scenarios: Path  # folder of the project's scenarios
    out: Path  # of finished results and parts
    workers: Workers = HERE
    clicks: Path | None = None  # a log in Criteo's format, for studies that train

    def clicks_overrides(self) -> list[str]:
        """Overrides that make a scenario train on the user's clicks; none without a click log.

        Plain SGD, which suffices for generated clicks, learns a log of rare values too slowly.
        """
        if self.clicks is None:
            return []
        clicks = f"kernel.clicks={{file: {json.dumps(str(self.clicks.absolute()))}}}"
        return [clicks, "kernel.optimizer=adagrad", "kernel.rate=0.02"]

    def pick(self, quick: T, full: T, large: T) -> T:
        """The value for the effort of this study."""
        return dict(zip(EFFORTS, (quick, full, large), strict=True))[self.effort]

    def scenario(self, name: str, overrides: Sequence[str] = ()) -> LoadedScenario:
        """One of its scenarios. Raises ScenarioError where it can't be read."""
        return load_scenario(self.files()[name], list(overrides))

    def files(self) -> dict[str, Path]:
        """Its input files by name. Raises ParameterError where one is missing."""
        files = {name: self.scenarios / name for name in self.study.inputs}
        for path in files.values():
            if not path.is_file():
                raise ParameterError(f"'{self.study.name}' reads {path}, which is not there")
        clicks = {} if self.clicks is None else {"clicks": self.clicks}
        return files | self.study.data_files() | clicks

    def compute(self, parts: Mapping[Name, Callable[[], Any]]) -> dict[Name, Any]:
        """Results of the parts (JSON), by their names; new parts run in parallel."""
        tasks = [Task(str(name), [self.digest(name)], part) for name, part in parts.items()]
        with watch.progress(f"parts of {self.study.name}") as on_progress:
            bodies = PointStore(self.out).compute_missing(
                tasks, _computed, list, self.workers, on_progress
            )
        return {name: body["found"] for name, body in zip(parts, bodies, strict=True)}

    def per_seed(self, compute: Callable[[int], Any], n: int, first: int = 1) -> list[Any]:
        """The outcomes of one part for each of n seeds."""
        seeds = range(first, first + n)
        return [*self.compute({f"seed {seed}": partial(compute, seed) for seed in seeds}).values()]

    def digest(self, part: Hashable) -> str:
        """Digest of the code and the inputs of a part."""
        inputs = sorted(map(file_digest, self.files().values()))
        study = [self.study.name, self.study.cases]
        return digest_of([*study, __version__, source_digest(), self.effort, inputs, str(part)])


def _computed(compute: Callable[[], Any]) -> list[dict[str, Any]]:
    return [{"found": compute()}]


_catalogue: Any = read_yaml(CATALOGUE.read_text("utf-8"), CATALOGUE)[0]
STUDIES: dict[str, Study] = {name: Study.described(name, **of) for name, of in _catalogue.items()}
"""What can be reproduced, by name, in the order in which it is shown."""


# --------------------------------------------------------------------------- results folders


def reproduce(work: Work) -> Summary:
    """Find the finished folder of a study, or make it.

    Raises ParameterError: an input is not there; ResultError: the folder can't be written; finished
    parts are kept.
    """
    study, files = work.study, work.files()
    digests = {name: file_digest(path) for name, path in files.items()}
    texts = study.title, study.question, study.chart, study.chart_shows, repr(study.claims)
    digests[CATALOGUE.name] = digest_of([*texts, *study.notes])
    identity = Identity(study.name, work.effort, digests)
    final = work.out / identity.folder_name

    def make() -> Summary:
        started, summary = datetime.now(UTC), study.make(work)
        clicks = None if work.clicks is None else work.clicks.name
        about = {"command": watch.command, "effort": work.effort, "clicks": clicks}
        with publishing(final) as folder:
            write_record(folder / SUMMARY, summary, indent=1)
            rows = pd.DataFrame([row.cells for row in summary.rows], columns=STUDY_COLUMNS)
            write_csv(rows, folder / COMPARISONS)
            for name, body in summary.records.items():
                (folder / f"{name}.json").write_text(json.dumps(body, indent=1) + "\n", "utf-8")
            for chart in summary.charts:  # there is one at most
                save_figure(chart_figure(chart), folder / "figure", formats=("png",))
            for path in files.values():
                if path.is_relative_to(work.scenarios):  # ours; a user's log may be large
                    shutil.copyfile(path, folder / path.name)
            write_manifest(folder, identity, about, started)
        return read_reproduced(final)

    return get_or_create(final, read_reproduced, make)[0]


def read_reproduced(folder: Path) -> Summary:
    """A finished folder. Raises ResultError where it is unfinished or damaged."""
    found = {"name": str(read_manifest(folder)["name"]), "path": folder}
    return read_record(Summary, folder / SUMMARY, "a reproduced result", **found)


def record(summary: Summary, destination: Path) -> None:
    """Keep a finished folder in `destination` under its name, in place of the one before."""
    shutil.rmtree(destination / summary.name, ignore_errors=True)
    with publishing(destination / summary.name) as folder:
        shutil.copytree(summary.path, folder, dirs_exist_ok=True)
