"""What a fleet is told to do, what that saves, and what would reverse it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cprsim
from cprsim.commands.fleet import axes_of
from cprsim.commands.fleet.histories import cost_by_kind
from cprsim.commands.fleet.options import (
    FleetDecision,
    FleetOption,
    decide,
    points_of,
    run_options,
    saving,
)
from cprsim.results.store import PointStore
from cprsim.results.unknown import crossing
from cprsim.scenario.reading import LoadedScenario
from cprsim.workers import Workers
from tests.fleet.making import JOB, loaded

PRICED = (
    JOB
    + """\
prices: {node_hour: 1.00 USD, storage_written: 0.02 USD, watts: 1000, kwh: 0.10 USD}
"""
)
KINDS = "{jobs: 24, kinds: 12, vary: {useful: {family: uniform, low: 5 h, high: 60 h}}%s}"


def options_of(scenario: LoadedScenario, *over: str) -> list[FleetOption]:
    store = PointStore(scenario.path.parent)
    strategies = range(len(scenario.scenario.recovery))
    wanted = [(where, n) for where in points_of(axes_of(over)) for n in strategies]
    return run_options(scenario, wanted, Workers(1), store)


def decided(scenario: LoadedScenario, options: list[FleetOption]) -> FleetDecision:
    return decide(scenario, options, {}, Workers(1), PointStore(scenario.path.parent))


@pytest.mark.parametrize(
    ("x", "costs", "crossed"),
    [
        ([0, 1, 2, 3], {"a": [1, 1, 1, 1], "b": [4, 3, 2, 0]}, (2.5, "b")),
        ([0, 1, 2, 3], {"a": [1, 1, 1, 1], "b": [13, 12, 11, 9]}, (None, None)),
        ([0, 1, 2, 3], {"a": [1, 1, 1, 1]}, (None, None)),
        # cheapest at no value: undercut from the lowest on
        ([1, 2, 4], {"a": [5, 5, 5], "b": [4, 4, 3], "c": [4, 1, 4]}, (1.0, "c")),
    ],
)
def test_lines_cross_where_they_do(
    x: list[float], costs: dict[str, list[float]], crossed: tuple[float | None, str | None]
) -> None:
    arrays = {name: np.array(values, dtype=float) for name, values in costs.items()}
    assert crossing(np.array(x, dtype=float), arrays, "a") == crossed


def test_the_break_even_of_a_price_is_where_both_cost_the_same(tmp_path: Path) -> None:
    """Two strategies differ in node-hours and in bytes: their costs are lines in each price."""
    unknown = "unknown: {prices.storage_written: {low: 0 USD, high: 5 USD}}\n"
    recovery = (
        "recovery=[{strategy: full, interval: 1 h}, {strategy: full, name: rare, interval: 9 h}]"
    )
    scenario = loaded(tmp_path, KINDS % "", recovery, job=PRICED + unknown)
    often, rare = options = options_of(scenario)
    assert often.cost < rare.cost
    cents = [one.cost - one.cents["storage written"] for one in options]
    gb = [one.cells[0].used.written_gb for one in options]
    price = (cents[1] - cents[0]) / 100 / (gb[0] - gb[1])
    decision = decided(scenario, options)
    (even,) = decision.break_evens
    assert (decision.best, even.becomes) == ("full", "rare")
    assert even.at == pytest.approx(price, rel=1e-3)
    share = gb[0] * 1e9 / 730.5 / 3600 / 1e6  # of all jobs, of a storage of 1 MB/s
    shared = loaded(tmp_path, KINDS % ", storage: 1 MB/s", recovery, job=PRICED)
    assert f"full {100 * share:,.0f} % of the storage" in decided(shared, options).resources


def test_a_month_follows_from_the_hours_and_what_is_saved_is_paired(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, KINDS % ", spares: 5, histories: 4", job=PRICED)
    full, cpr = options = options_of(scenario)
    for one in options:
        assert one.cost == sum(one.cents.values()) == pytest.approx(np.mean(one.costs), abs=9)
        for part, hours in one.node_h.items():
            assert one.cents[part] == pytest.approx(100 * hours, abs=1)
        assert one.cents["spare"] == 5 * 73050  # 730.5 h of each at 1 USD
        node_h = sum(hours for part, hours in one.node_h.items() if part != "spare")
        assert one.cents["energy"] == pytest.approx(10 * node_h, abs=1)
        for cell, cost in zip(one.cells, one.costs, strict=True):
            assert cost == pytest.approx(cost_by_kind(cell, one.prices).sum() + 365250, abs=10)
    each, found = np.subtract(full.costs, cpr.costs), saving(full, cpr)
    half = 3.182 * np.std(each, ddof=1) / 2  # Student's t of 3 degrees of freedom
    assert found.mean == pytest.approx(np.mean(each))
    assert (found.low, found.high) == pytest.approx(
        (found.mean - half, found.mean + half), rel=1e-3
    )


def test_spares_pay_until_one_more_costs_more_than_it_saves(tmp_path: Path) -> None:
    fleet = KINDS % ", nodes: 60, window: 200 h"
    options = options_of(loaded(tmp_path, fleet, "recovery=[full]"), "spares=0,2,6,64")
    waits = [one.statistics["wait_h"].mean for one in options]
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] == 0 < waits[0]


def test_an_option_whose_queue_grows_is_not_preferred_to_one_that_keeps_up(tmp_path: Path) -> None:
    """Five jobs of 6 nodes: in 200 h, 6 nodes do four at most, and spares stand until the last."""
    scenario = loaded(tmp_path, "{jobs: 5, kinds: 1, spares: 1, window: 200 h}", "recovery=[full]")
    slow, fast = options_of(scenario, "nodes=6,60")
    worked = sum(slow.node_h.values()) - slow.node_h["spare"]
    assert slow.node_h["spare"] == pytest.approx(worked / 6)
    done = [one.statistics["jobs_per_month"].mean for one in (slow, fast)]
    assert done == pytest.approx([5 * 6 / worked * 730.5**2 / 200, 5 * 730.5 / 200])
    assert decided(scenario, [slow, replace(fast, cost=2 * slow.cost)]).best == fast.name


def test_without_prices_node_hours_decide(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, KINDS % "")
    options = options_of(scenario)
    decision = decided(scenario, options)
    years = [one.statistics["machine_years"].mean for one in options]  # in a window of 720 h
    assert decision.saves.mean == pytest.approx(abs(years[0] - years[1]) * 8766 * 730.5 / 720)
    assert decision.saves.low < decision.saves.mean < decision.saves.high


def test_an_unknown_mtbf_is_simulated(tmp_path: Path) -> None:
    unknown = "unknown: {failures.mtbf: {low: 5 h, high: 50 h}}\n"
    scenario = loaded(tmp_path, "{jobs: 6, kinds: 1}", job=JOB + unknown)
    (even,) = decided(scenario, options_of(scenario)).break_evens
    assert (even.simulated, even.unit, even.low, even.high) == (True, "h", 5.0, 50.0)


def test_stale_shards_are_recommended_where_the_scenario_says_what_it_accepts(
    tmp_path: Path,
) -> None:
    accepted, guessed = (f"{{strategy: cpr, target_pls: 0.1{s}}}" for s in ("", ", assumed: true"))
    for entry, best in ((accepted, "cpr"), (guessed, "full"), ("partial", "full")):
        scenario = loaded(tmp_path, KINDS % "", f"recovery=[full, {entry}]")
        full, stale = options_of(scenario)
        assert stale.cost < full.cost
        assert stale.statistics["pls"].mean > 0.0
        assert decided(scenario, [full, stale]).best == best


@pytest.mark.parametrize(("spares", "are_enough"), [("0,2", False), ("0,2,8", True)])
def test_more_spares_are_looked_for_where_the_most_that_are_compared_are_best(
    spares: str, are_enough: bool
) -> None:
    changes = {"recovery": ["full"], "simulation.replications": 50}
    answer = cprsim.fleet("llm", {"spares": spares}, changes).document.answer
    assert any("with 10 spares" in said for said in answer) != are_enough
