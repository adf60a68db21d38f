"""Results that are found again, go on where they were cut off, and depend on their inputs alone.

And what the repository keeps of the last full run, with the document that is made from it.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import cprsim
from cprsim.commands.reproduce.estimates import StudyEstimate, series
from cprsim.commands.reproduce.study import (
    STUDIES,
    Study,
    Summary,
    Work,
    read_reproduced,
    record,
    reproduce,
)
from cprsim.commands.reproduce.verdicts import Target
from cprsim.errors import ParameterError, ResultError
from cprsim.files import encode
from cprsim.pages.chart import Band, Chart, Panel
from cprsim.results.folder import read_manifest

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "results" / "reproduction"
FOLDERS = sorted(path for path in KEPT.iterdir() if path.is_dir())

STACK = series("lost", "ab", [StudyEstimate(1.0, 1.5, 2.5), StudyEstimate(2.0, 3.5, 4.5)],
               kind="stack")  # fmt: skip
STEPS = series("steps", (1.0, 2.0), (1.0, 2.0), (0.9, 1.8), (1.1, 2.2), kind="steps")
PAPER = series("paper (recalled)", "ab", (2.1, 4.1), kind="paper")
BANDS = Band("paper (published)", 1.0, 1.5), Band("paper (secondary)", 1.2, 1.2, "x")
CHART = Chart("title", "what it is", (
    Panel("panel", "", "hours", (STACK, PAPER)),
    Panel("panel", "nodes", "hours", (STEPS,), BANDS, x_log=True, y_log=True),
))  # fmt: skip


@pytest.fixture
def computed() -> list[str]:
    """Names of the parts that were computed, in order."""
    return []


@pytest.fixture
def work(computed: list[str], tmp_path: Path) -> Work:
    """Of a study with two parts, each of which reads an input of its own."""

    def part(work: Work, name: str) -> float:
        computed.append(name)
        if name == "two" and (work.scenarios / "stop").exists():
            raise KeyboardInterrupt
        return float(work.files()[name].read_text("utf-8"))

    def make(work: Work) -> Summary:
        names = ("one", "two")
        found = [work.compute({name: partial(part, work, name)})[name] for name in names]
        total = StudyEstimate(sum(found))
        table = {"parts": [dict(zip(names, map(str, found), strict=True))]}
        ours = {"sum": total, "n": StudyEstimate(2.0)}
        return work.study.summary(ours, table, *CHART.panels, n=len(found), more="")

    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for name, text in (("one", "1"), ("two", "2")):
        (inputs / name).write_text(text)
    notes = ("A note.", "{n} parts.", "{more}")
    claims = {"sum": Target.of("sum", "", "3 h", "recalled")}
    study = Study(
        "sums", make, "sums", "Title", "Of {n}?", notes, CHART.title, CHART.subtitle, claims,
        inputs=("one", "two"),
    )  # fmt: skip
    return Work(study, "full", inputs, tmp_path / "out")


def test_a_finished_result_is_found_again_byte_by_byte(
    work: Work, computed: list[str], tmp_path: Path
) -> None:
    first, again = reproduce(work), reproduce(work)
    assert first.path == again.path
    assert computed == ["one", "two"]
    elsewhere = reproduce(replace(work, out=tmp_path / "b"))
    for name in ("summary.json", "comparisons.csv", "figure.png"):
        assert (first.path / name).read_bytes() == (elsewhere.path / name).read_bytes()
    assert encode(first) == encode(again) == encode(elsewhere)
    assert first.question == "Of 2?"
    assert first.notes == ("A note.", "2 parts.")
    assert first.charts == (CHART,)
    page = cprsim.read(first.path).report(tmp_path / "page.md").read_text("utf-8").splitlines()
    assert {"| lost | a | 1.00 | – |", "| all parts | a | 1.00 | 1.50 to 2.50 |"} <= {*page}
    for _ in range(2):
        record(first, tmp_path / "kept")
    assert encode(read_reproduced(tmp_path / "kept" / "sums")) == encode(first)
    (first.path / "summary.json").write_text("{}")
    with pytest.raises(ResultError, match="differs from its digest"):
        read_reproduced(first.path)


def test_a_changed_input_or_note_is_another_result(work: Work) -> None:
    first = reproduce(work)
    noted = reproduce(replace(work, study=replace(work.study, notes=("Another note.",))))
    (work.scenarios / "two").write_text("5")
    second = reproduce(work)
    assert len({first.path, noted.path, second.path}) == 3
    assert second.rows[0].ours == "6.00 h"
    (work.scenarios / "two").unlink()
    with pytest.raises(ParameterError, match=r"reads .*two, which is not there"):
        reproduce(work)


def test_a_run_that_was_cut_off_goes_on_unless_a_part_is_damaged_or_of_other_code(
    work: Work, computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, (one, two) = work.study.make, ("one", "two")
    (work.scenarios / "stop").touch()
    with pytest.raises(KeyboardInterrupt):
        reproduce(work)
    assert not list(work.out.glob("sums-*"))
    (work.scenarios / "stop").unlink()
    reproduce(work)
    assert computed == [one, two, two]
    for part in work.out.glob("points/*/*.json"):
        part.write_text(part.read_text()[:-5])
    assert repr(make(work)) == repr(make(work))
    assert computed[3:] == [one, two]
    make(replace(work, effort="quick"))
    monkeypatch.setattr("cprsim.commands.reproduce.study.source_digest", lambda: "changed")
    make(work)
    assert computed[5:] == [one, two] * 2


# --------------------------------------------------------------------------- what is kept


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_what_is_kept_is_whole_of_a_full_run_and_of_the_claims_of_the_catalogue(
    folder: Path,
) -> None:
    """Each claim once, as it was judged: the same paper's word, mark, unit and inputs."""
    manifest, made, study = read_manifest(folder), read_reproduced(folder), STUDIES[folder.name]
    assert (manifest["name"], manifest["effort"]) == (folder.name, "full")
    assert len([*folder.glob("figure*.png")]) == len(made.charts)
    assert made.title == study.title
    targets = {target.quantity: target for target in study.claims.values()}
    assert len(targets) == len(study.claims)
    assert targets.keys() <= {row.quantity for row in made.rows}
    for row in made.rows:
        target = targets.get(row.quantity, Target(row.quantity))
        claimed = (target.text, target.mark, target.unit, target.free)
        assert claimed == (row.paper, row.mark, row.unit, row.free), row.quantity
        if row.mark in ("recalled", "derived"):  # no such number is called reproduced
            assert "reproduced" not in str(row.verdict)
        if row.free:
            assert "free input" in str(row.verdict) or row.verdict.finding == "open"


@pytest.mark.parametrize("name", ["fig-overheads", "production"])  # of seconds
def test_a_new_run_gives_what_is_kept_and_is_read_again(name: str, tmp_path: Path) -> None:
    answer = cprsim.reproduce(name, workers=1, folder=tmp_path)
    new, kept = (one.frames["claims"] for one in (answer, cprsim.read(KEPT / name)))
    numbers = ["value", "value_low", "value_high"]
    pd.testing.assert_frame_equal(new[numbers], kept[numbers], rtol=1e-6)
    same = new.columns.difference(numbers)
    pd.testing.assert_frame_equal(new[same], kept[same])
    assert cprsim.read(answer.folder).to_json() == answer.to_json()


def test_every_result_is_kept_and_none_else_and_the_document_names_each_miss() -> None:
    assert {path.name for path in FOLDERS} == STUDIES.keys()
    assert list(cprsim.reproduce(listed=True).frames["studies"]["name"]) == list(STUDIES)
    document = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    claims = pd.concat([cprsim.read(folder).frames["claims"] for folder in FOLDERS])
    missed = claims[claims["finding"].str.startswith(("not ", "open"))]
    cells = missed[["result", "quantity", "paper", "provenance", "ours", "finding"]]
    rows = [f"| {' | '.join(row)} |" for row in cells.itertuples(index=False)]
    table = document.partition("cog.outl(misses())")[2].partition("[[[end]]]")[0]
    named = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert sorted(named) == sorted(rows)
