"""Make a result again, or find it: one folder each, whole or not there, like every result.

<out>/<name>-<digest>/   summary.json, comparisons.csv, figures, its inputs, manifest.json
<out>/parts/             finished parts of results that are being made
results/reproduction/    in the repository: the folders of the last full run, by name
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from cprsim import watch
from cprsim.results.folder import (
    MANIFEST,
    finished_or_make,
    publishing,
    read_manifest,
    read_record,
    write_csv,
    write_manifest,
    write_record,
)
from cprsim.results.identity import Identity, file_digest
from cprsim.studies.study import Summary, Work

SUMMARY, COMPARISONS = "summary.json", "comparisons.csv"
COLUMNS = ("quantity", "paper", "provenance", "ours", "verdict")


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A finished study: its folder and what it says."""

    name: str
    path: Path
    summary: Summary

    @property
    def figures(self) -> tuple[Path, ...]:
        """Its figures, in order."""
        return tuple(sorted(self.path.glob("figure*.png")))


def reproduce(work: Work) -> Reproduced:
    """Find the finished folder of a study, or make it.

    Raises ParameterError: an input is not there; ResultError: the folder can't be written; finished
    parts are kept.
    """
    study, files = work.study, work.files()
    digests = {name: file_digest(path) for name, path in files.items()}
    identity = Identity(study.name, str(work.effort), digests)
    final = work.out / identity.folder_name

    def make() -> Reproduced:
        started = datetime.now(UTC)
        summary = study.make(work)
        about = {
            "command": watch.command(),
            "effort": str(work.effort),
            "clicks": None if work.clicks is None else work.clicks.name,
        }
        with publishing(final) as folder:
            _write(folder, summary)
            for path in files.values():
                if path.parent == work.scenarios:  # ours; a user's log may be large
                    shutil.copyfile(path, folder / path.name)
            write_manifest(folder, identity, about, started)
        return read_reproduced(final)

    return finished_or_make(final, read_reproduced, make)[0]


def _write(folder: Path, summary: Summary) -> None:
    from cprsim.plots.draw_chart import chart_figure
    from cprsim.plots.save import save_figure

    write_record(folder / SUMMARY, summary, indent=1)
    rows = [(row.quantity, row.paper, row.mark, row.ours, str(row.verdict)) for row in summary.rows]
    write_csv(pd.DataFrame(rows, columns=COLUMNS), folder / COMPARISONS)
    for number, chart in enumerate(summary.charts):
        name = "figure" if not number else f"figure-{number + 1}"
        save_figure(chart_figure(chart), folder / name, formats=("png",))


def read_reproduced(folder: Path) -> Reproduced:
    """A finished folder. Raises ResultError where it is unfinished or damaged."""
    manifest = read_manifest(folder)
    summary = read_record(Summary, folder / SUMMARY, "a reproduced result")
    return Reproduced(str(manifest["name"]), folder, summary)


def record(made: Reproduced, kept: Path) -> Path:
    """Keep a finished folder in `kept` under its plain name, in the place of the one before."""
    final = kept / made.name
    is_kept = (final / MANIFEST).is_file()
    if is_kept and read_manifest(final)["digest"] == read_manifest(made.path)["digest"]:
        return final
    if final.exists():
        shutil.rmtree(final)
    with publishing(final) as folder:
        shutil.copytree(made.path, folder, dirs_exist_ok=True)
    return final
