"""``cprsim fleet`` from the command line, its folder, and its page."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import cprsim
from cprsim.commands.fleet.folder import load_fleet
from cprsim.commands.fleet.histories import run_history
from cprsim.errors import ResultError
from tests.fleet.making import JOB, REST
from tests.making import call


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(JOB + REST, "utf-8")
    return path


@pytest.mark.long
def test_it_says_what_to_do_and_keeps_what_it_simulated(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer axis simulates its new options only, with the same results as all of them anew."""
    ran = []

    def counted(fleet, strategy, history):
        ran.append((fleet.section.spares, strategy, history))
        return run_history(fleet, strategy, history)

    monkeypatch.setattr("cprsim.commands.fleet.histories.run_history", counted)
    call("fleet", scenario, "--over", "spares=0,2")
    assert ran == [(0, 0, 0), (0, 1, 0), (2, 0, 0), (2, 1, 0)]
    assert call("fleet", scenario, "--over", "spares=0,2,16").exit_code == 0
    assert ran[4:] == [(16, 0, 0), (16, 1, 0)]
    over = {"spares": [0, 2, 16]}
    longer = cprsim.fleet(scenario, over, folder="results")
    anew = cprsim.fleet(scenario, over)
    assert len(ran) == 12
    assert longer.found_again
    assert longer.values["present"] == "full at spares 2"
    assert longer.values == anew.values
    for name, frame in longer.frames.items():
        pd.testing.assert_frame_equal(frame, anew.frames[name])
    folder = longer.folder
    result = load_fleet(folder)
    assert all(sum(one.cents.values()) == one.cost for one in result.options)
    assert sorted(path.name for path in folder.glob("*.png")) == ["curve.png", "fleet.png"]
    options, parts = longer.frames["options"], longer.frames["parts"]
    assert longer.values["best"] == options.set_index("option")["cost_per_month"].idxmin()
    assert options["fleet.spares"].tolist() == [0, 0, 2, 2, 16, 16]
    sums = parts.groupby("option", sort=False)["cost_per_month"].sum()
    assert sums.to_numpy() == pytest.approx(options["cost_per_month"].to_numpy())
    (folder / "fleet.json").write_text("{}", "utf-8")
    with pytest.raises(ResultError):
        load_fleet(folder)


TABLE = "fleet={table: jobs.csv, spares: 2, window: 200 h}"  # each job has its own values


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--over=spares=0,2", "--over=fleet.spares=2,3"), "--over: `fleet.spares` is there twice"),
        (("--over=spares=0,2", "--set=fleet=null", "--set=cluster.spares=2",
          "--set=unknown={cluster.spares: {low: 0, high: 4}}"), "--over: spares is in `unknown`"),
        (("--over=fleet.jobs=2,3",), "`fleet.jobs=2` changes the jobs"),
        (("--over=spares=0,2", "--over=job.useful=10 h,20 h", "--set", TABLE), "changes nothing"),
        (("--over=spares=0,2", "--over=failures.mtbf=3 h,6 h", "--set", TABLE), "changes nothing"),
        (("--over=spares=0,4", "--set=fleet.spares=null", "--set=cluster.repair=null"),
         "cluster.repair: is missing"),
    ],
)  # fmt: skip
def test_what_is_no_option_is_refused_and_nothing_is_written(
    scenario: Path, options: tuple[str, ...], complaint: str
) -> None:
    Path("jobs.csv").write_text("useful_h,mtbf_h,nodes\n10,6,6\n20,6,12\n", "utf-8")
    said = call("fleet", scenario, *options)
    assert said.exit_code == 2, said.output
    assert complaint in said.stderr
    assert not Path("results").exists()
