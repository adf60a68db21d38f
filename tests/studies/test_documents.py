"""What the repository keeps of the last full run, and the document that is made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cprsim.present.reproduce import page
from cprsim.results.folder import damage, read_manifest
from cprsim.studies import STUDIES
from cprsim.studies.runner import read_reproduced
from cprsim.studies.study import Effort, Work

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "results" / "reproduction"
FOLDERS = sorted(path for path in KEPT.iterdir() if path.is_dir())
SECONDS = ("fig-overheads", "production")  # quick enough to be run once more here


def test_every_result_is_kept_and_none_else() -> None:
    assert {path.name for path in FOLDERS} == STUDIES.keys()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_what_is_kept_is_whole_and_of_a_full_run(folder: Path) -> None:
    assert damage(folder) is None
    manifest = read_manifest(folder)
    assert (manifest["name"], manifest["effort"]) == (folder.name, "full")
    made = read_reproduced(folder)
    assert len(made.figures) == len(made.summary.charts)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_no_recalled_number_is_called_reproduced(folder: Path) -> None:
    for row in read_reproduced(folder).summary.rows:
        if row.mark in ("recalled", "derived"):
            assert "reproduced" not in str(row.verdict)
        if row.free:
            assert "free input" in str(row.verdict) or row.verdict.finding == "open"


@pytest.mark.parametrize("name", SECONDS)
def test_a_new_run_gives_the_numbers_that_are_kept(name: str, tmp_path: Path) -> None:
    study = STUDIES[name]
    work = Work(study, Effort.FULL, ROOT / "scenarios", tmp_path)
    new, kept = study.make(work), read_reproduced(KEPT / name).summary
    assert [row.quantity for row in new.rows] == [row.quantity for row in kept.rows]
    for ours, theirs in zip(new.rows, kept.rows, strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-6, nan_ok=True), ours.quantity
        assert ours.verdict == theirs.verdict


def test_the_document_says_what_is_kept() -> None:
    document = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    assert page(KEPT, list(STUDIES), beside=ROOT / "docs") in document
