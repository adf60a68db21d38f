"""What one adds in one place is found everywhere: a metric, a study, a reader, a source, a command.

A recovery system of one's own is added in `tests/recovery/systems/test_own.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from matplotlib.figure import Figure
from typer.testing import CliRunner

from cprsim.cli.app import app
from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import simulate
from cprsim.failures.outages import Outages
from cprsim.failures.sources import no_hours, trace_of
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.formats import FORMATS
from cprsim.failures.traces.formats import tidy as tidy_format
from cprsim.plots import run as figures_of_a_run
from cprsim.present import run
from cprsim.present.document import Picture, Section
from cprsim.records import Clock, Cluster, ExpectedFailures, FailureTrace
from cprsim.reproduce import STUDIES, Study
from cprsim.reproduce.estimates import StudyEstimate
from cprsim.reproduce.summary import Target
from cprsim.results import Result, metrics
from cprsim.results.manifest import read_manifest
from cprsim.results.words import significant
from cprsim.scenario import load_scenario
from tests.making import SCENARIOS, call

QUICKSTART = SCENARIOS / "quickstart.yaml"
FEW = ("--replications", "30")


def test_a_metric_is_in_the_folder_and_in_all_that_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        metrics.BESIDE,
        "failures_per_day",
        lambda rows, _: 24 * rows["n_failures"] / rows["wall_h"],
    )
    ran = call("run", QUICKSTART, *FEW, "--out", tmp_path, "--json")
    assert ran.exit_code == 0, ran.output
    printed = json.loads(ran.stdout)
    (folder,) = tmp_path.iterdir()
    summary = pd.read_csv(folder / "summary.csv").set_index(["strategy", "quantity"])
    for strategy in printed["strategies"]:
        per_day = strategy["failures_per_day"]
        assert 0.2 < per_day < 2.0  # an MTBF of about a day
        in_folder = summary.loc[(strategy["name"], "failures_per_day"), "mean"]
        assert in_folder == pytest.approx(per_day)
        assert strategy["intervals"]["failures_per_day"]["low"] < per_day
    shown = call("run", QUICKSTART, *FEW, "--out", tmp_path).stdout
    page, text = tmp_path / "page.html", tmp_path / "page.md"
    for path in (page, text):
        assert call("report", folder, "--out", path).exit_code == 0
    full = next(one for one in printed["strategies"] if one["name"] == "full")
    for renderer in (shown, page.read_text("utf-8"), text.read_text("utf-8")):
        assert "failures per day" in " ".join(renderer.split())
        assert significant(full["failures_per_day"]) in renderer
    compared = call("compare", folder, folder, "--json")
    assert "failures_per_day" in compared.stdout


def test_a_figure_is_in_the_folder_and_in_both_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/architecture.md has it: named in `plots/run.py`, its place in `present/run.py`."""

    def ettr_figure(result: Result, *, narrow: bool = False) -> Figure:
        figure = Figure(figsize=(3, 2))
        ettr = [of["ettr"].mean for of in result.spreads().values()]
        figure.add_subplot().bar(range(len(ettr)), ettr)
        return figure

    def placed(result: Result) -> Section:
        picture = Picture("ETTR by strategy", "A bar each", lambda: ettr_figure(result))
        return Section("A figure more", [picture])

    monkeypatch.setitem(figures_of_a_run.OF_WHOLE_RUNS, "ettr", ettr_figure)
    monkeypatch.setattr(run, "timeline_section", placed)
    out = tmp_path / "results"
    assert call("run", QUICKSTART, *FEW, "--out", out).exit_code == 0
    (folder,) = out.iterdir()
    assert {"ettr.png", "ettr.svg"} <= set(read_manifest(folder)["files"])
    page, text = tmp_path / "page.html", tmp_path / "page.md"
    for path in (page, text):
        assert call("report", folder, "--out", path).exit_code == 0
        assert "ETTR by strategy" in path.read_text("utf-8")
    assert page.read_text("utf-8").count("<svg") > 1
    assert len(list((tmp_path / "page_files").glob("*.png"))) >= 2


def test_a_study_is_listed_made_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study[float](
        name="answer",
        shows="one number",
        module="cprsim.reproduce.closure",  # any of the package
        title="The answer",
        question="What is it?",
        numbers=lambda _: 42.0,
        targets=(Target("the answer", None, lambda number: StudyEstimate(number, 41.0, 43.0)),),
        notes=("It was known.",),
    )
    monkeypatch.setitem(STUDIES, study.name, study)
    assert "answer" in call("reproduce", "--list").output
    made = call("reproduce", "answer", "--quick", "--out", tmp_path)
    assert made.exit_code == 0, made.output
    assert "42" in made.stdout
    page, text = tmp_path / "page.html", tmp_path / "page.md"
    (folder,) = (path for path in tmp_path.rglob("summary.json") if path.is_file())
    assert call("report", folder.parent, "--out", page).exit_code == 0
    assert call("report", folder.parent, "--format", "md", "--out", text).exit_code == 0
    for path in (page, text):
        shown = path.read_text("utf-8")
        assert "The answer" in shown
        assert "42" in shown
        assert "It was known." in shown


@pytest.mark.long
def test_a_reader_is_recognised_and_fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path, asked: LogOptions) -> Outages:
        rows = [line.split() for line in path.read_text("utf-8").splitlines()[1:]]
        table = tmp_path / "as_table.csv"
        table.write_text("node,start,end\n" + "\n".join(",".join(row) for row in rows), "utf-8")
        return tidy_format.FORMAT.read(table, replace(asked, time_unit="h"))

    def looks_like(head: Head) -> str:
        return "its first line" if head.first_line == "# deaths" else ""

    form = LogFormat("deaths", frozenset(), looks_like, read, 1)
    monkeypatch.setitem(FORMATS, form.name, form)
    monkeypatch.setattr(
        "cprsim.failures.traces.formats.FORMATS", {form.name: form, **FORMATS}, raising=True
    )
    rng = np.random.default_rng(1)
    log = tmp_path / "log"
    lines = []
    for node in range(4):
        begins = np.cumsum(rng.exponential(50.0, 12) + 1.0)
        lines += [f"n{node} {at:.3f} {at + 0.5:.3f}" for at in begins]
    log.write_text("# deaths\n" + "\n".join(lines) + "\n", "utf-8")
    fitted = call("fit", log, "--json")
    assert fitted.exit_code == 0, fitted.output
    assert json.loads(fitted.stdout)["exposure"]["failures"] == len(lines)
    assert "deaths" in call("fit", log, "--format", "no").output


@dataclass(frozen=True)
class EveryTenHours:
    """Node 0 fails each ten hours of the wall clock."""

    clock: Clock = Clock.WALL

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        return ExpectedFailures(10.0, 10.0, 1.0)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        return 100

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        n, from_h = n_replications if kept is None else len(kept), 0.0
        for until_h in borders_h:
            at_h = np.arange(10.0, until_h, 10.0)
            at_h = at_h[at_h >= from_h]
            rows = np.repeat(np.arange(n), len(at_h))
            slots = np.zeros(len(rows), dtype=np.int64)
            yield trace_of(until_h, n, rows, np.tile(at_h, n), slots, no_hours(len(rows)))
            from_h = until_h


def test_both_engines_run_a_source_of_failures() -> None:
    experiment = assemble(load_scenario(QUICKSTART, ["simulation.replications=3"]))
    experiment = replace(experiment, failures=EveryTenHours())
    for engine in ("auto", "simpy"):
        outcome = simulate(replace(experiment, engine=engine))
        for one in outcome.strategies:
            wall_h = one.costs.wall_h
            assert one.costs.n_failures.tolist() == [int((hours - 1e-9) // 10) for hours in wall_h]


def test_a_command_is_helped_with_and_refuses_as_the_others_do() -> None:
    def nothing(number: int) -> None:
        """Do nothing with a number."""

    added = typer.Typer()
    added.registered_commands = [*app.registered_commands]
    added.command("nothing")(nothing)
    assert "Do nothing with a number." in CliRunner().invoke(added, ["--help"]).output
    assert CliRunner().invoke(added, ["nothing", "one"]).exit_code == 2
