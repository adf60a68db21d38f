"""Results that are found again, go on where they were cut off, and depend on their inputs alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import cprsim
from cprsim.errors import ParameterError, ResultError
from cprsim.files import encode
from cprsim.plots.chart import Band, Chart, Panel, Series
from cprsim.studies import STUDIES
from cprsim.studies.estimates import StudyEstimate
from cprsim.studies.runner import read_reproduced, reproduce
from cprsim.studies.study import Effort, Study, Summary, Work
from cprsim.studies.verdicts import RECALLED, about, alone, compare
from tests.making import call

CHART = Chart(
    "title",
    "what it is",
    (
        Panel(
            "panel", "", "hours",
            (
                Series("save", ("a", "b"), (1.0, 2.0), kind="stack"),
                Series("lost", ("a", "b"), (1.0, 2.0), (1.5, 3.5), (2.5, 4.5), "stack"),
                Series("paper (recalled)", ("a", "b"), (2.1, 4.1), kind="paper"),
            ),
        ),
        Panel(
            "panel", "nodes", "hours",
            (
                Series("ours", (1.0, 2.0), (1.0, 2.0), (0.9, 1.8), (1.1, 2.2)),
                Series("steps", (1.0, 2.0), (1.0, 2.0), (0.9, 1.8), (1.1, 2.2), "steps"),
            ),
            (Band("paper (published)", 1.0, 1.5), Band("paper (secondary)", 1.2, 1.2, "x")),
            x_log=True, y_log=True,
        ),
    ),
)  # fmt: skip


@pytest.fixture
def computed() -> list[str]:
    """Names of the parts that were computed, in order."""
    return []


@pytest.fixture
def study(computed: list[str]) -> Study:
    """Two parts, each of which reads an input of its own."""

    def part(work: Work, name: str) -> Callable[[], float]:
        def compute() -> float:
            computed.append(name)
            if name == "two" and (work.scenarios / "stop").exists():
                raise KeyboardInterrupt
            return float(work.files()[name].read_text("utf-8"))

        return compute

    def make(work: Work) -> Summary:
        names = ("one", "two")
        found = [work.each({name: part(work, name)})[name] for name in names]
        total = StudyEstimate(sum(found))
        return Summary.of(
            "Title",
            "Question?",
            [compare("sum", about(3.0, "h", RECALLED), total), alone("n", StudyEstimate(2.0))],
            {"parts": [dict(zip(names, map(str, found), strict=True))]},
            ("A note.", f"{len(found)} parts.", ""),
            CHART,
        )

    return Study("sums", "sums", make, inputs=("one", "two"))


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "one").write_text("1")
    (folder / "two").write_text("2")
    return folder


def test_a_finished_result_is_found_again_byte_by_byte(
    study: Study, inputs: Path, tmp_path: Path, computed: list[str]
) -> None:
    first = reproduce(Work(study, Effort.FULL, inputs, tmp_path / "a"))
    again = reproduce(Work(study, Effort.FULL, inputs, tmp_path / "a"))
    assert first.path == again.path
    assert computed == ["one", "two"]
    elsewhere = reproduce(Work(study, Effort.FULL, inputs, tmp_path / "b"))
    for name in ("summary.json", "comparisons.csv", "figure.png"):
        assert (first.path / name).read_bytes() == (elsewhere.path / name).read_bytes()
    assert encode(first.summary) == encode(again.summary) == encode(elsewhere.summary)


def test_a_changed_input_is_another_result(study: Study, inputs: Path, tmp_path: Path) -> None:
    first = reproduce(Work(study, Effort.FULL, inputs, tmp_path))
    (inputs / "two").write_text("5")
    second = reproduce(Work(study, Effort.FULL, inputs, tmp_path))
    assert first.path != second.path
    assert second.summary.rows[0].ours == "6.00 h"


def test_a_run_that_was_cut_off_goes_on_where_it_was(
    study: Study, inputs: Path, tmp_path: Path, computed: list[str]
) -> None:
    (inputs / "stop").touch()
    with pytest.raises(KeyboardInterrupt):
        reproduce(Work(study, Effort.FULL, inputs, tmp_path))
    assert not list(tmp_path.glob("sums-*"))
    (inputs / "stop").unlink()
    reproduce(Work(study, Effort.FULL, inputs, tmp_path))
    assert computed == ["one", "two", "two"]


def test_a_part_that_is_damaged_or_of_other_code_is_made_again(
    study: Study,
    inputs: Path,
    tmp_path: Path,
    computed: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Work(study, Effort.FULL, inputs, tmp_path)
    assert repr(study.make(work)) == repr(study.make(work))
    for part in tmp_path.glob("parts/*.json"):
        part.write_text(part.read_text()[:-5])
    study.make(work)
    assert computed == ["one", "two", "one", "two"]
    study.make(replace(work, effort=Effort.QUICK))
    monkeypatch.setattr("cprsim.studies.study.source_digest", lambda: "changed")
    study.make(work)
    assert len(computed) == 8


def test_what_is_read_back_is_what_was_written(study: Study, inputs: Path, tmp_path: Path) -> None:
    made = reproduce(Work(study, Effort.FULL, inputs, tmp_path))
    summary = study.make(Work(study, Effort.FULL, inputs, tmp_path / "b"))
    assert made.summary.charts == (CHART,)
    assert repr(made.summary) == repr(summary)  # by their words: NaN differs from itself
    (made.path / "summary.json").write_text("{}")
    with pytest.raises(ResultError, match="differs from its digest"):
        read_reproduced(made.path)


def test_a_missing_input_is_named(study: Study, inputs: Path, tmp_path: Path) -> None:
    (inputs / "two").unlink()
    with pytest.raises(ParameterError, match=r"reads .*two, which is not there"):
        reproduce(Work(study, Effort.FULL, inputs, tmp_path))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nonsense"], "'nonsense' is none of "),
        (["--keep", "--effort", "quick"], "--keep keeps full runs on generated clicks"),
        (["--clicks", "nowhere.tsv"], "nowhere.tsv is no file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(options: list[str], said: str, tmp_path: Path) -> None:
    done = call("reproduce", *options, "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_answer_has_every_claim_and_is_read_again(tmp_path: Path) -> None:
    answer = cprsim.reproduce("fig-overheads", workers=1, folder=tmp_path)
    claims = answer.frames["claims"]
    judged = claims[claims["paper"] != ""]
    assert len(judged) == 10
    assert set(judged["finding"]) == {"consistent"}
    assert len(answer.frames["charts"]) > len(claims)
    assert answer.folder is not None
    assert cprsim.read(answer.folder).to_json() == answer.to_json()
    assert list(cprsim.reproduce(listed=True).frames["studies"]["name"]) == list(STUDIES)
