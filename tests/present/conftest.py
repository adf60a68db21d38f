"""Small results, simulated once for all tests of pages."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest
from markupsafe import Markup

from cprsim.curves.choosing import shipped_path
from cprsim.records import Estimate
from cprsim.recovery.policy import RELOAD, ROLL_BACK
from cprsim.results.folder import ResultTarget
from cprsim.results.identity import Identity
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.folder import write_selection
from cprsim.selector.limit import Limit, LimitedQuantity
from cprsim.selector.option import strategy as option_of
from tests.making import call, paper_policy, small_scenario

SCENARIO = small_scenario("none, full, {strategy: cpr, target_pls: 0.1}", replications=60)
CURVE = "strategy,pls,loss,standard_error\npartial,0.3,0.003,0.0003\n"
REPRODUCTION = Path(__file__).parents[2] / "results" / "reproduction"
DRAWN = ("systems", "fig-overheads", "shadowsync")  # without a chart, stacked bars, lines
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
        patch.setattr("cprsim.plots.save.save_figures", lambda *_, **__: [])
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
        return Estimate(mean, 0.9 * mean, 1.1 * mean, 100)

    way = ROLL_BACK if strategy == "full" else RELOAD
    return Candidate(
        strategy=strategy,
        policy=paper_policy(strategy, way, interval_h, rule or "selected"),
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
        entry=option_of(strategy).entry_at(interval_h, 20.0),
    )


def made_selection(parent) -> Path:
    """The folder of a selection that nobody simulated."""
    full = candidate("full", 1.25, 0.12, 0.0)
    partial = candidate("partial", 5.0, 0.0225, 0.07)
    selection = Selection(
        useful_h=20.0,
        n_replications=100,
        limit=Limit(LimitedQuantity.PLS, 0.1),
        curve=None,
        full=full,
        best={"partial": partial, "cpr-ssu": None},
        formula=(candidate("partial", 8.0, 0.018, 0.1, keeps=False, rule="cpr"),),
        front={"partial": (candidate("partial", inf, 0.01, 0.3, keeps=False), partial)},
        recommended="partial",
        fell_back=False,
    )
    return kept_selection(parent, selection).path


def kept_selection(parent, selection) -> Selection:
    """A selection in a folder of its own."""
    identity = Identity("small-select", "name: small\n", {})
    about = {"command": ["cprsim", "select"], "seed": 1}
    target = ResultTarget(parent, identity, datetime.now(UTC), about)
    return write_selection(target, selection, lambda *_: None)


class Pages:
    """HTML files, each made when it is first asked for: drawing their figures takes seconds."""

    title = TITLE

    def __init__(self, results, folder):
        self.results, self.folder = results, folder

    @cached_property
    def one(self) -> Path:
        return self._page("one", self.results.first, "--title", TITLE)

    @cached_property
    def two(self) -> Path:
        return self._page("two", self.results.first, self.results.second)

    @cached_property
    def sketched(self) -> Path:
        """That of two runs with figures of which there is only the name, which has to be unique."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("cprsim.present.html.inline", sketch)
            return self._page("sketched", self.results.first, self.results.second)

    @cached_property
    def paper(self) -> Path:
        return self._page("paper", *(REPRODUCTION / name for name in DRAWN))

    @cached_property
    def sweep(self) -> Path:
        return self._page("sweep", self.results.sweep)

    @cached_property
    def selection(self) -> Path:
        return self._page("selection", made_selection(self.folder))

    @cached_property
    def curve(self) -> Path:
        return self._page("curve", shipped_path("criteo-kaggle-linear"))

    def _page(self, name, *arguments) -> Path:
        out = self.folder / f"{name}.html"
        done = call("report", *arguments, "--out", out)
        assert done.exit_code == 0, done.output
        return out


def sketch(figure, name, label) -> Markup:
    return Markup('<svg aria-label="{}"></svg>').format(label)


@pytest.fixture(scope="session")
def pages(results, tmp_path_factory) -> Pages:
    """Of one run, of two, of some of the paper's results as kept here, of the rest."""
    return Pages(results, tmp_path_factory.mktemp("pages"))


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """Pages without what takes longest: drawing their figures."""
    monkeypatch.setattr("cprsim.present.html.inline", lambda *_: Markup("<svg></svg>"))


@pytest.fixture
def cprsim():
    """Call the program in this process."""
    return call
