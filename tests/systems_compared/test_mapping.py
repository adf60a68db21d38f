"""Maps: known answers, shares of failures, resuming, and what makes no map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cprsim.plots.systems_map import edges, systems_map_figure
from cprsim.present.kinds import KINDS, kind_of
from cprsim.present.systems_map import answer, document_of_map
from cprsim.scenario import load_scenario
from cprsim.sweeps.points import varied_at
from cprsim.systems_compared import mapping
from cprsim.systems_compared.map_folder import MapAxis, load_map
from tests.making import call

ONE_FAILURE = """\
name: one
job: {useful: 40 h}
cluster: {workers: 8}
failures: {kind: injected, at: [1500 min], role: worker}
scopes:
  - {name: process, share: 0.5, reach: process}
  - {name: node, share: 0.3, reach: node}
  - {name: all, share: 0.2, reach: all}
costs: {save: 2 min, load: 3 min, detect: 30 s, reschedule: 2 min}
recovery: [{strategy: full, interval: 10 h}, {strategy: full, name: same, interval: 10 h}, none]
simulation: {seed: 1, replications: 100}
"""
SAVES = ("--map", "costs.save=2 min,200 min,400 min")
LOADS = ("--map", "costs.load=3min:30min:lin2")
ONLY = ("--fixed", "--workers", 1, "--replications", 100, "--only", "full", "--only", "none")


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(ONE_FAILURE, "utf-8")

    def run(*options: object) -> Any:
        return call("compare-systems", path, "--out", tmp_path / "results", *options)

    return run


def cheapest(result: Any) -> list[tuple[float, float, str]]:
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["cheapest"]
    return [(row["costs.save [min]"], row["costs.load [min]"], row["best"]) for row in rows]


def test_the_cheapest_at_each_point_is_that_of_a_closed_form(program, tmp_path) -> None:
    # full: four saves, the restart, 300 min of lost work; none: 1,500 min and no load
    expected = []
    for save in (2.0, 200.0, 400.0):
        for load in (3.0, 30.0):
            full, none = 4 * save + 2.5 + load + 300, 1500 + 2.5
            expected.append((save, load, "full" if full < none else "none"))
    assert {best for *_, best in expected} == {"full", "none"}
    result = program(*SAVES, *LOADS, *ONLY, "--json")
    assert cheapest(result) == expected
    (point,) = [one for one in json.loads(result.stdout)["points"] if one["at"] == [200.0, 30.0]]
    more = {one["name"]: one["more_than_best"] for one in point["systems"]}
    assert more["full"] is None
    assert more["none"]["mean"] == pytest.approx((1502.5 - (800 + 32.5 + 300)) / 2400)
    told = program(*SAVES, *LOADS, *ONLY).stdout
    assert "found again" in told
    assert "A  full: cheapest at 4 points." in told
    assert "   30  A A B" in told
    (folder,) = [path for path in (tmp_path / "results").iterdir() if path.name != "points"]
    _reads(folder, tmp_path)


def _reads(folder: Path, tmp_path: Path) -> None:
    """The page and the figure of a map."""
    assert kind_of(folder) is KINDS["map of systems"]
    made = load_map(folder)
    assert answer(made)[0].startswith("full: cheapest at 4 points")
    table = document_of_map(made).sections[1].blocks[0]
    assert next(row[:3] for row in table.rows) == ["2", "3", "full"]  # type: ignore[union-attr]
    (axes,) = systems_map_figure(made).axes
    assert len(axes.patches) == 6
    assert not any(patch.get_hatch() for patch in axes.patches)
    drawn = call("plot", folder, "--out", tmp_path / "drawn", "--format", "svg")
    assert drawn.exit_code == 0, drawn.output
    assert [path.suffix for path in (tmp_path / "drawn").iterdir()] == [".svg"]


def test_two_that_do_the_same_can_not_be_told_apart(program, tmp_path) -> None:
    two = ("--map", "costs.save=2 min,4 min", *LOADS)
    result = program(*two, *ONLY, "--only", "same", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {(row["best"], *row["cant_be_told"]) for row in found["cheapest"]} == {("full", "same")}
    (axes,) = systems_map_figure(load_map(Path(found["results"]))).axes
    assert all(patch.get_hatch() for patch in axes.patches)


def test_a_longer_axis_computes_its_new_points_alone(program, monkeypatch) -> None:
    computed = []
    body_of = mapping.body_of
    monkeypatch.setattr(mapping, "body_of", lambda one: computed.append(one) or body_of(one))
    assert program("--map", "costs.save=2 min,200 min", *LOADS, *ONLY).exit_code == 0
    assert len(computed) == 4
    assert program(*SAVES, *LOADS, *ONLY).exit_code == 0
    assert len(computed) == 6


def test_a_map_of_other_systems_takes_no_points_of_this_one(program) -> None:
    assert program(*SAVES, *LOADS, *ONLY).exit_code == 0
    other = (*ONLY[:-2], "--only", "same")
    found = json.loads(program(*SAVES, *LOADS, *other, "--json").stdout)
    assert {one["name"] for point in found["points"] for one in point["systems"]} == {
        "full",
        "same",
    }


def test_the_other_shares_keep_their_ratio(tmp_path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(ONE_FAILURE, "utf-8")
    over = ["scopes.process.share=0.25,0.75", "cluster.spares=1:9:lin3"]
    loaded = load_scenario(path, ["cluster.repair=1 h"], over, "--map")
    axes = mapping.axes_of(loaded)
    varied = varied_at(loaded, axes, (1, 2), mapping._changes)
    assert [one.share for one in varied.scenario.scopes] == pytest.approx([0.75, 0.15, 0.1])
    assert varied.scenario.cluster.spares == 9


def test_cells_meet_halfway_between_their_values_on_the_axis() -> None:
    assert edges(MapAxis("k", "k", (1.0, 3.0, 9.0), False)) == pytest.approx([0, 2, 6, 12])
    assert edges(MapAxis("k", "k", (1.0, 100.0), True)) == pytest.approx([0.1, 10, 1000])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (SAVES, "a map has two axes, not 1"),
        ((*SAVES, "--map", "failures.role=worker,any"), "over numbers, not over words"),
        ((*SAVES, "--map", "costs.save=1 min,2 min"), "is there twice"),
        ((*SAVES, "--map", "costs.lod=1 min,2 min"), "did you mean `load`"),
        ((*SAVES, "--map", "costs.load"), "--map costs.save=30s:10min:log12"),
        ((*SAVES, "--map", "scopes.process.share=0.5,1.0"), "scopes.1.share"),
        ((*SAVES, *LOADS, "--only", "ful"), "there is no `ful`; there are: full"),
        ((*SAVES, *LOADS, "--only", "moc"), "`moc` can't run this job"),
    ],
)
def test_what_makes_no_map_is_one_clear_error(program, tmp_path, options, problem) -> None:
    result = program(*options)
    assert result.exit_code == 2
    assert problem in result.output
    assert not (tmp_path / "results").exists()
