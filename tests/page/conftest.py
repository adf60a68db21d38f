"""Small results, simulated once for all tests of pages."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest
from markupsafe import Markup

from cprsim.curves.shipping import shipped_path
from cprsim.records import OnFailure, RecoveryPolicy
from cprsim.results.identity import Identity
from cprsim.results.metrics import Spread
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.folder import write_selection
from cprsim.selector.limit import Limit, Quantity
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


def candidate(strategy, interval_h, overhead, pls, *, keeps=True, rule=""):
    """Known to a tenth of each number."""

    def spread(mean):
        return Spread(mean, 0.9 * mean, 1.1 * mean, 100)

    way = OnFailure.ROLL_BACK if strategy == "full" else OnFailure.RELOAD
    return Candidate(
        strategy=strategy,
        policy=RecoveryPolicy(strategy, way, interval_h, rule or "selected"),
        n_saves=0 if interval_h == inf else int(20 / interval_h),
        finished_fraction=1.0,
        overhead=spread(overhead),
        pls=spread(pls),
        loss=spread(pls),
        held=1.1 * pls,
        keeps=keeps,
        benefit=spread(0.12 - overhead),
        beyond_fraction=0.0,
        rule=rule,
    )


def made_selection(parent) -> Path:
    """The folder of a selection that nobody simulated."""
    full = candidate("full", 1.25, 0.12, 0.0)
    partial = candidate("partial", 5.0, 0.0225, 0.07)
    selection = Selection(
        useful_h=20.0,
        n_replications=100,
        limit=Limit(Quantity.PLS, 0.1),
        curve=None,
        full=full,
        best={"partial": partial, "cpr-ssu": None},
        formula=(candidate("partial", 8.0, 0.018, 0.1, keeps=False, rule="cpr"),),
        front={"partial": (candidate("partial", inf, 0.01, 0.3, keeps=False), partial)},
        chosen=partial,
    )
    return write_selection(
        parent,
        Identity("small-select", "name: small\n", {}),
        selection,
        about={"command": ["cprsim", "select"], "seed": 1},
        started=datetime.now(UTC),
        draw=lambda folder: None,
    )


@pytest.fixture(scope="session")
def pages(results, tmp_path_factory):
    """HTML files: of one run, of two, of some of the paper's results as kept here, of the rest."""
    folder = tmp_path_factory.mktemp("pages")
    shown = {
        "one": [results.first, "--title", TITLE],
        "two": [results.first, results.second],
        "paper": [REPRODUCTION / name for name in DRAWN],
        "sweep": [results.sweep],
        "selection": [made_selection(folder)],
        "curve": [shipped_path("criteo-kaggle-linear")],
    }
    for name, arguments in shown.items():
        done = call("report", *arguments, "--out", folder / f"{name}.html")
        assert done.exit_code == 0, done.output
    return SimpleNamespace(**{name: folder / f"{name}.html" for name in shown}, title=TITLE)


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """Pages without what takes longest: drawing their figures."""
    monkeypatch.setattr("cprsim.page.rendering.inline", lambda *_: Markup("<svg></svg>"))


@pytest.fixture
def cprsim():
    """Call the program in this process."""
    return call
