"""Small results, simulated once for all tests of pages."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from markupsafe import Markup

from tests.making import call, small_scenario

SCENARIO = small_scenario("none, full, {strategy: cpr, target_pls: 0.1}", replications=60)
CURVE = "strategy,pls,loss,standard_error\npartial,0.3,0.003,0.0003\n"
REPRODUCTION = Path(__file__).parents[2] / "results" / "reproduction"
DRAWN = ("distribution", "fig-overheads", "shadowsync")  # without a chart, stacked bars, lines
TITLE = '<img src=x onerror=alert(1)> & "co"'


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Folders: two runs that met different failures, one replication, one with a curve, a sweep."""
    folder = tmp_path_factory.mktemp("page")
    scenario = folder / "small.yaml"
    scenario.write_text(SCENARIO, "utf-8")
    (folder / "mine.csv").write_text(CURVE, "utf-8")

    def run(*options) -> Path:
        before = set(folder.glob("results/*"))
        done = call("run", scenario, "--out", folder / "results", *options)
        assert done.exit_code == 0, done.output
        (new,) = set(folder.glob("results/*")) - before
        return new

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cprsim.plots.draw_result", lambda result, folder: [])
        return SimpleNamespace(
            first=run(),
            second=run("--seed", 2),
            alone=run("--replay", 3),
            priced=run("--set", "accuracy.curve=mine.csv"),
            sweep=sweep(scenario, folder / "sweeps"),
        )


def sweep(scenario, out) -> Path:
    """A sweep over four points."""
    over = ["--over", "failures.mtbf=10 h,20 h", "--over", "costs.save=1 min,5 min"]
    less = ["--replications", 20, "--workers", 1]
    done = call("sweep", scenario, *over, *less, "--out", out)
    assert done.exit_code == 0, done.output
    return next(path for path in out.iterdir() if (path / "manifest.json").is_file())


@pytest.fixture(scope="session")
def pages(results, tmp_path_factory):
    """HTML files: of one run, of two, of some of the paper's results as kept here, of a sweep."""
    folder = tmp_path_factory.mktemp("pages")
    names = ("one", "two", "paper", "sweep")
    one, two, paper, swept = (folder / f"{name}.html" for name in names)
    done = call("report", results.first, "--out", one, "--title", TITLE)
    assert done.exit_code == 0, done.output
    assert call("report", results.first, results.second, "--out", two).exit_code == 0
    assert call("report", *(REPRODUCTION / name for name in DRAWN), "--out", paper).exit_code == 0
    assert call("report", results.sweep, "--out", swept).exit_code == 0
    return SimpleNamespace(one=one, two=two, paper=paper, sweep=swept, title=TITLE)


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """Pages without what takes longest: drawing their figures."""
    monkeypatch.setattr("cprsim.page.rendering.inline", lambda *_: Markup("<svg></svg>"))


@pytest.fixture
def cprsim():
    """Call the program in this process."""
    return call
