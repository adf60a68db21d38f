"""Points: which combinations there are, what they share, and what makes two the same."""

from pathlib import Path

import pytest

import cprsim
from cprsim.errors import ScenarioError
from tests.sweeps.conftest import Points


def intervals(point) -> dict[str, float]:
    return {policy.name: policy.interval_h for policy in point.experiment.policies}


def test_a_grid_has_every_combination_the_last_axis_fastest(points: Points) -> None:
    found = points("costs.load=1 min,2 min", "recovery.full.interval=1 h,2 h,4 h")
    assert [point.coordinates for point in found] == [(i, j) for i in (0, 1) for j in (0, 1, 2)]
    assert [intervals(point)["full"] for point in found] == [1, 2, 4, 1, 2, 4]
    loads = [point.experiment.costs.load.mean_h * 60 for point in found]
    assert loads == pytest.approx([1, 1, 1, 2, 2, 2])


def test_one_at_a_time_begins_with_the_scenario_as_it_is(points: Points) -> None:
    over = ("costs.load=1 min,2 min", "recovery.full.interval=1 h,2 h")
    progress = "failures.clock=progress"  # on others cpr's interval depends on loads
    found = points(*over, overrides=("sweep.mode=one-at-a-time", progress))
    assert [point.coordinates for point in found] == [
        (None, None), (0, None), (1, None), (None, 0), (None, 1)
    ]  # fmt: skip
    assert intervals(found[1]) == intervals(found[0])


def test_an_interval_without_a_name_is_that_of_every_strategy_that_saves(points: Points) -> None:
    (found,) = points("recovery.interval=2.5 h")
    assert intervals(found) == {"none": float("inf"), "full": 2.5, "partial": 2.5, "cpr": 2.5}


@pytest.mark.parametrize(
    ("overrides", "reference"), [((), "full"), (("recovery=[none, {strategy: partial}]",), "none")]
)
def test_others_are_compared_with_full_recovery(points: Points, overrides, reference) -> None:
    (found,) = points("costs.load=1 min", overrides=overrides)
    assert found.reference == reference


def write_curve(loss: float) -> str:
    path = Path(f"{loss}.csv")
    path.write_text(f"strategy,metric,pls,loss,standard_error\npartial,auc,0.1,{loss},0.0001\n")
    return path.name


def test_only_what_decides_the_numbers_makes_points_different(points: Points) -> None:
    (one,) = points("costs.load=60 s")
    same, *others = (
        points("costs.load=1 min", overrides=changes)[0].digest
        for changes in (
            ("name=other", "sweep.mode=grid"),
            ("simulation.seed=2",),
            ("job.useful=21 h",),
            ("recovery=[full]",),
            (f"accuracy.curve={write_curve(0.003)}",),
            (f"accuracy.curve={write_curve(0.006)}",),
            ("costs.load=2 min",),  # the axis has the last word
        )
    )
    assert same == others.pop() == one.digest
    assert len({one.digest, *others}) == 6


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ("costs.load=1 min,20000 h", r"^--over costs.load: `20000 h` is out of range"),
        ("costs.load=1,2", r"^--over costs.load: `1` is a bare number"),
        ("costs.lod=1 min", r"^--over costs.lod: unknown key; did you mean `load`\?"),
        ("recovery.swift.interval=1 h", r"^--over recovery.swift.interval: no entry `swift`"),
        ("recovery.none.interval=1 h", r"^--over recovery.none.interval: .* does not take it"),
        ("recovery.full.interval=1 h,2 ms", r"^--over recovery.full.interval: makes .* saves"),
        (None, r"says nothing to vary: give --over"),
    ],
)
def test_what_makes_no_scenario_is_said_before_anything_runs(points: Points, over, said) -> None:
    with pytest.raises(ScenarioError, match=said):
        points(*filter(None, [over]))
    with pytest.raises(ScenarioError, match=r"^--over recovery.interval: no strategy .* takes"):
        points("recovery.interval=1 h", overrides=("recovery=[none]",))


def test_points_share_failures_where_what_draws_them_is_the_same(points: Points) -> None:
    def n_sources(*over: str) -> int:
        return len({point.failures_digest for point in points(*over)})

    assert n_sources("costs.save=1 min,2 min", "recovery.interval=1 h,2 h") == 1
    assert n_sources("failures.mtbf=20 h,30 h", "recovery.interval=1 h,2 h") == 2
    assert n_sources("cluster.emb_ps=4,8") == 2
    assert n_sources("job.useful=20 h,30 h", "simulation.seed=1,2") == 4


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
recovery: [{strategy: full, interval: 10 h}, none]
simulation: {seed: 1, replications: 100}
"""


def test_the_cheapest_of_each_point_is_that_of_a_closed_form() -> None:
    # full: four saves, the restart, 300 min of lost work; none: 1,500 min and no load
    over = {"costs.save": "2 min,200 min,400 min", "costs.load": "3min:30min:lin2"}
    found = cprsim.sweep(ONE_FAILURE, over, workers=1)
    expected = []
    for save in (2.0, 200.0, 400.0):
        for load in (3.0, 30.0):
            full, none = 4 * save + 2.5 + load + 300, 1500 + 2.5
            expected.append([save, load, "full" if full < none else "none"])
    points = found.frames["points"].query("cheapest")
    columns = ["costs.save_min", "costs.load_min", "strategy"]
    assert points[columns].to_numpy().tolist() == expected
    assert "full at 4 of 6 points; none at 2 of 6 points" in str(found)


def test_the_other_shares_of_failures_keep_their_ratio(scenario: Path, points: Points) -> None:
    scenario.write_text(ONE_FAILURE, "utf-8")
    shares = points("scopes.process.share=0.25,0.75")[1].experiment.shares
    assert shares.shares == pytest.approx((0.75, 0.15, 0.1))


def test_a_sweep_says_what_a_run_of_its_points_does(scenario: Path) -> None:
    over, few = ["recovery.3.interval=3 min,2 h", "costs.load=1 min"], {"replications": 4}
    text = str(cprsim.sweep(scenario, over, ["prices={node_hour: 1 EUR}"], workers=1, **few))
    said = ("Cheapest, accuracy not counted", "any       1 min ", "cpr falls back to full recover")
    assert [words for words in said if words not in text] == []
    free, pair = "failures.mtbf=1e8 h", "recovery=[none, {strategy: full, interval: 2 h}]"
    text = str(cprsim.sweep(scenario, over[1:], [free, pair, "costs.save=0 s"], workers=1, **few))
    assert "full at 1 of 1" in text
