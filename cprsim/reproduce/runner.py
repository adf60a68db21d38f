"""Make a result again, or find it: one folder each, whole or not there, like every result.

<out>/<name>-<digest>/   summary.json, comparisons.csv, figures, its inputs, manifest.json
<out>/parts/             finished parts of results that are being made
results/reproduction/    in the repository: the folders of the last full run, by name
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

import cprsim
from cprsim.codec import digest_of
from cprsim.reproduce.study import Effort, Study, Work, all_code, numbers_code
from cprsim.reproduce.summary import Summary
from cprsim.results.folder import finished_or_make, read_record, write_csv, write_record
from cprsim.results.identity import N_DIGITS, file_digest
from cprsim.results.manifest import MANIFEST, read_manifest, write_manifest
from cprsim.results.publish import publishing
from cprsim.workers import HERE, Workers

SUMMARY, COMPARISONS, PARTS = "summary.json", "comparisons.csv", "parts"
COLUMNS = ("quantity", "paper", "provenance", "ours", "verdict")


@dataclass(frozen=True, slots=True)
class StudyIdentity:
    """Everything that decides the bytes of a study's folder."""

    name: str
    effort: Effort
    inputs: Mapping[str, str]  # name of each input file -> digest
    code: str  # digest of the source that makes, judges and draws it
    replay: None = None

    @property
    def digest(self) -> str:
        """Hexadecimal digest of all that decides the folder."""
        parts = [self.name, str(self.effort), sorted(self.inputs.items()), self.code]
        return digest_of([cprsim.__version__, *parts])

    @property
    def folder_name(self) -> str:
        return f"{self.name}-{self.digest[:N_DIGITS]}"


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A finished study: its folder and what it says."""

    name: str
    path: Path
    summary: Summary
    found: bool = True  # it was there already

    @property
    def figures(self) -> tuple[Path, ...]:
        """Its figures, in order."""
        return tuple(sorted(self.path.glob("figure*.png")))


@dataclass(frozen=True, slots=True)
class Request:
    """How studies are to be made.

    Parameters
    ----------
    scenarios : folder of the project's scenarios
    out : where finished results and parts go
    clicks : a log in Criteo's format that studies which train use instead of generated clicks
    """

    effort: Effort
    scenarios: Path
    out: Path
    workers: Workers = HERE
    clicks: Path | None = None

    def inputs(self, study: Study[Any]) -> dict[str, Path]:
        """The files that a study reads. Raises ParameterError where one is missing."""
        files = study.files(self.scenarios)
        if study.trains and self.clicks is not None:
            files["clicks"] = self.clicks
        return files

    @property
    def parts(self) -> Path:
        """Where finished parts of results that are being made are kept."""
        return self.out / PARTS

    def work(self, study: Study[Any]) -> Work:
        """What the study works with."""
        clicks = self.clicks if study.trains else None
        code = numbers_code(study)
        return Work(study, self.effort, self.scenarios, self.parts, code, self.workers, clicks)


def reproduce(study: Study[Any], request: Request) -> Reproduced:
    """Find the finished folder of a study, or make it.

    Raises
    ------
    ParameterError : an input is not there
    ResultError : the folder can't be written; finished parts are kept
    """
    files = request.inputs(study)
    digests = {name: file_digest(path) for name, path in files.items()}
    identity = StudyIdentity(study.name, request.effort, digests, all_code(study))
    final = request.out / identity.folder_name

    def make() -> Reproduced:
        started = datetime.now(UTC)
        summary = study.make(request.work(study))
        about = {
            "command": ["cprsim", *sys.argv[1:]],
            "effort": str(request.effort),
            "timed": study.timed,
            "clicks": None if request.clicks is None or not study.trains else request.clicks.name,
        }
        with publishing(final) as folder:
            _write(folder, summary)
            for path in files.values():
                if path.parent == request.scenarios:  # ours; a user's log may be large
                    shutil.copyfile(path, folder / path.name)
            write_manifest(folder, identity, about, started)
        return read_reproduced(final)

    made, was_there = finished_or_make(final, read_reproduced, make)
    return replace(made, found=was_there)


def _write(folder: Path, summary: Summary) -> None:
    write_record(folder / SUMMARY, summary, indent=1)
    rows = [(row.quantity, row.paper, row.mark, row.ours, str(row.verdict)) for row in summary.rows]
    write_csv(pd.DataFrame(rows, columns=COLUMNS), folder / COMPARISONS)
    _draw(folder, summary)


def _draw(folder: Path, summary: Summary) -> None:
    from cprsim.plots.draw_chart import chart_figure
    from cprsim.plots.save import save_figure

    for number, chart in enumerate(summary.charts):
        name = "figure" if not number else f"figure-{number + 1}"
        save_figure(chart_figure(chart), folder / name, formats=("png",))


def read_reproduced(folder: Path) -> Reproduced:
    """A finished folder.

    Raises
    ------
    ResultError : it is unfinished or damaged
    """
    manifest = read_manifest(folder)
    summary = read_record(Summary, folder / SUMMARY, "a reproduced result")
    return Reproduced(str(manifest["name"]), folder, summary)


def record(made: Reproduced, kept: Path) -> Path:
    """Keep a finished folder under its plain name, in the place of the one before.

    Parameters
    ----------
    kept : ``results/reproduction`` of the repository
    """
    final = kept / made.name
    if (final / MANIFEST).is_file() and read_digest(final) == read_digest(made.path):
        return final
    if final.exists():
        shutil.rmtree(final)
    with publishing(final) as folder:
        shutil.copytree(made.path, folder, dirs_exist_ok=True)
    return final


def read_digest(folder: Path) -> str:
    """What decided a finished folder."""
    return str(read_manifest(folder)["digest"])
