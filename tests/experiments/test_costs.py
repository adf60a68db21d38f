"""What saves and loads cost: own costs of strategies, bytes of sub-saves, shards of other sizes."""

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cprsim.accuracy.curve import Response, StalenessCurve
from cprsim.commands.select.evaluation import evaluator_of
from cprsim.job.distributions import Constant
from cprsim.job.losses import Metric
from cprsim.job.records import SubSaves
from cprsim.results.limit import Limit
from cprsim.results.metrics import replication_rows
from cprsim.results.pipeline import StrategyOutcome, blocks_of, simulate
from cprsim.scenario.assemble import Experiment
from tests.making import Make, maker, small_scenario


def rows(experiment: Experiment) -> StrategyOutcome:
    (only,) = simulate(experiment).strategies
    return only


# ------------------------------------------------------------------ costs of a strategy's own

OWN = """\
job: {useful: 20 h, step: 10 s}
cluster: {emb_ps: 8, trainers: 2, shard_size: 50 GB, link: 100 Gbit/s}
storage: {bandwidth: 25 Gbit/s}
failures: {kind: job, family: gamma, shape: 0.7, mtbf: 6 h, role: any}
costs: {save: {stall: 3 min, background: 4 min}, load: 6 min, detect: 30 s, reschedule: 9 min}
recovery: [full]
simulation: {seed: 5, replications: 60}
"""
OTHERS = {
    "save": "5 s",
    "load": "1 min",
    "detect": "{family: gamma, mean: 2 min, shape: 3}",
    "reschedule": "{family: exponential, mean: 4 min}",
}
ENTRIES = {
    "none": "none",
    "full": "full",
    "full by bytes": "full",
    "partial": "partial",
    "partial by bytes": "partial",  # over a bandwidth that loads share
    "cpr": "cpr, target_pls: 0.1",
    "gemini": "gemini",
}


@pytest.fixture
def own(tmp_path: Path) -> Make:
    return maker(tmp_path, OWN)


@pytest.mark.parametrize("name", ENTRIES)
def test_they_count_as_if_the_section_said_them(own: Make, name: str) -> None:
    costs = OTHERS | ({"save": "transfer", "load": "transfer"} if "bytes" in name else {})
    if name == "gemini":  # whose own detection is drawn by stage: other draws of what varies
        costs["detect"] = "2 min"
    entry = ", ".join(f"{key}: {cost}" for key, cost in costs.items())
    section = [f"costs.{key}={cost}" for key, cost in costs.items()]
    known = rows(own(f"recovery=[{{strategy: {ENTRIES[name]}}}]", *section))
    found = rows(own(f"recovery=[{{strategy: {ENTRIES[name]}, costs: {{{entry}}}}}]"))
    bare = [replace(one.policy, rules=(), captures=(), tiers=()) for one in (found, known)]
    assert bare[0] == bare[1]
    np.testing.assert_array_equal(found.costs.n_failures, known.costs.n_failures)
    np.testing.assert_array_equal(found.costs.n_saves, known.costs.n_saves)
    for part in found.costs.parts:
        hours = [one.costs.hours_of(part) for one in (found, known)]
        np.testing.assert_allclose(*hours, rtol=1e-9, atol=1e-7)


def test_the_decision_of_cpr_is_priced_with_them(own: Make) -> None:
    entry = "{strategy: cpr, target_pls: 0.1%s}"
    dear = ", name: dear, costs: {load: 300 h}"
    cheap, priced = own(f"recovery=[{entry % ''}, {entry % dear}]").policies
    (section,) = own(f"recovery=[{entry % ''}]", "costs.load=300 h").policies
    assert priced.decision == section.decision
    assert priced.decision != cheap.decision


def test_what_is_not_said_is_the_sections(own: Make) -> None:
    (policy,) = own("recovery=[{strategy: full, costs: {load: 1 min}}]").policies
    detect, _, reschedule, _ = policy.rules[0].stages
    assert detect.cost is None  # as the scope says
    assert reschedule.cost == Constant(9 / 60)
    assert policy.captures[0].background == Constant(4 / 60)
    (bare,) = own("recovery=[{strategy: full, costs: {save: 1 min}}]").policies
    assert bare.captures[0].background is None  # of a save that does not say one


# ------------------------------------------------------------------ bytes of sub-saves

SAVE_H, N_PARTS = 0.1, 8
SHARES = {"mfu": 1.5, "ssu": 0.5}
CHECKS = {"bytes_written": {"by_strategy": {"partial": 1000, "mfu": 1500, "ssu": 500}}}
SUB_SAVES = small_scenario(
    ", ".join(
        ["partial", *(f"{{strategy: cpr-{n}, target_pls: 0.1, interval: 4 h}}" for n in SHARES)]
    )
)


def curve_of(checks: Any = CHECKS, **settings: Any) -> Any:
    responses = [
        Response.linear(name, Metric.AUC, (0.02, 0.002), 0.5, settings=SubSaves(name, **settings))
        for name in SHARES
    ]
    whole = Response.linear("partial", Metric.AUC, (0.02, 0.002), 0.5)
    return StalenessCurve("counted", (whole, *responses), checks=checks)


@pytest.fixture
def with_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """An experiment of whole saves and sub-saves with a curve."""

    def make(curve: Any) -> Experiment:
        monkeypatch.setattr("cprsim.scenario.assemble.chosen_curve", lambda loaded: curve)
        named = "accuracy.curve=this.json"
        longer = ("costs.save=6 min", "job.useful=40 h", "simulation.replications=100", named)
        return maker(tmp_path, SUB_SAVES)(*longer)

    return make


@pytest.mark.parametrize(
    ("curve", "shares"),
    [
        (curve_of(), SHARES),
        (None, {}),
        (curve_of(checks={}), {}),
        (curve_of(fraction=0.25), {}),
        (curve_of(n_large_tables=3), {}),
    ],
    ids=["counted", "no curve", "nothing counted", "other parts", "tables"],
)
def test_a_sub_save_costs_its_part_of_what_was_counted(
    with_curve: Make, curve: Any, shares: dict[str, float]
) -> None:
    stalls: dict[str, Any] = {one.name: one.captures[0].stall for one in with_curve(curve).policies}
    assert {name: stall.mean_h for name, stall in stalls.items()} == pytest.approx(
        {f"cpr-{name}": shares.get(name, 1.0) * SAVE_H / N_PARTS for name in SHARES}
        | {"partial": SAVE_H}
    )


def test_what_is_booked_and_what_a_selection_prices_go_with_it(with_curve: Make) -> None:
    curve = curve_of()
    experiment = with_curve(curve)
    hours = {
        one.policy.name: one.costs.hours_of("save").min() for one in simulate(experiment).strategies
    }
    evaluator = evaluator_of(experiment, Limit(Metric.AUC, 0.001))
    for name, share in SHARES.items():
        # 40 h hold 10 intervals of 4 h; where they cost least, no failure strikes a save
        assert hours[f"cpr-{name}"] == pytest.approx(10 * share * SAVE_H)
        assert evaluator.save_times(f"cpr-{name}")[1] == pytest.approx(share * SAVE_H / N_PARTS)
        sub_saves = evaluator.policy(f"cpr-{name}", inf).sub_saves
        assert sub_saves.bytes_share == share
    assert evaluator.save_times("partial")[1] == pytest.approx(SAVE_H)


# ------------------------------------------------------------------ shards of different sizes

UNEVEN = """\
job: {useful: 100 h}
cluster:
  trainers: 2
  emb_ps: 4
  shards:
    - {servers: 1, size: 70 GB, access: 0.7}
    - {servers: 3, size: 10 GB, access: 0.1}
failures: {kind: injected, at: [15 h, 38 h], servers: [[0], [2, 3]]}
costs: {save: 6 s, load: 30 s, detect: 1 min, reschedule: 4 min}
recovery: [{strategy: partial, interval: 10 h}]
simulation: {replications: 2}
"""
EVEN = "cluster.shards=[{servers: 1, size: 70 GB}, {servers: 3, size: 10 GB}]"
SHARED = ("costs.load=transfer", "storage.bandwidth=100 GB/h")
FULL = "recovery.0.strategy=full"


@pytest.fixture
def uneven(tmp_path: Path) -> Make:
    return maker(tmp_path, UNEVEN)


@pytest.mark.parametrize(
    ("overrides", "share", "stale_h"),
    [
        ([], [0.7, 0.1, 0.1], 5 * 0.7 + 8 * 0.2),  # since saves at 10 h and at 30 h
        ([EVEN], [0.25] * 3, 5 / 4 + 8 * 2 / 4),  # without accesses all count alike
    ],
)
def test_a_lost_shard_counts_by_the_share_of_look_ups_that_it_answers(
    uneven: Make, overrides: list[str], share: list[float], stale_h: float
) -> None:
    experiment = uneven(*overrides)
    outcome = simulate(experiment)
    assert replication_rows(outcome)["pls"].tolist() == pytest.approx([stale_h / 100] * 2)
    assert outcome.strategies[0].losses.share.tolist() == pytest.approx(share * 2)
    (block,) = blocks_of(experiment, range(2))
    job = experiment.simulated_job(experiment.policies[0])
    summed = block.run(job, range(2), keep_losses=False)
    assert len(summed.losses.slot) == 0
    assert summed.stale_h == pytest.approx([stale_h] * 2)


@pytest.mark.parametrize(
    ("overrides", "load_h"),
    [
        # all go back: 100 GB over the storage's bandwidth
        ([FULL, "storage.per_server=1000 GB/h"], 2 * 1.0),
        # shared evenly while 10 GB of each move, then by its own link
        ([FULL, "storage.per_server=35 GB/h"], 2 * (0.4 + 60 / 35)),
        # some go back alone, by their own sizes
        (["failures.servers=[[0], [2]]"], 70 / 100 + 10 / 100),
        (["failures.servers=[[0, 1], [1, 2]]"], 20 / 100 + 60 / 100 + 20 / 100),
    ],
)
def test_all_is_loaded_when_the_largest_shard_is(
    uneven: Make, overrides: list[str], load_h: float
) -> None:
    costs = rows(uneven(*SHARED, *overrides)).costs
    assert costs.hours_of("load") == pytest.approx([load_h] * 2)
