"""Money adds up: in every command that shows a bill, the parts are the total, to the cent."""

from pathlib import Path

import numpy as np
import pytest

import cprsim
from cprsim.commands.sweep.folder import load_sweep
from cprsim.pages.money import with_spares
from cprsim.results.pipeline import replay
from cprsim.results.unknown import break_evens_of
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from tests.history.making import exported, write_events
from tests.making import PRICES

SCENARIO = f"""\
name: small
job: {{useful: 20 h, step: 1 s}}
cluster: {{trainers: 2, emb_ps: 4, shard_size: 50 GB}}
failures: {{kind: job, family: exponential, mtbf: 5 h, role: any}}
storage: {{bandwidth: 25 Gbit/s, per_server: 25 Gbit/s}}
costs: {{save: transfer, load: transfer, detect: 1 min, reschedule: 9 min}}
recovery:
  - {{strategy: full, interval: 1 h}}
  - {{strategy: partial, interval: 2 h}}
  - {{strategy: checkfreq, options: {{snapshot: 9 s}}}}
{PRICES}simulation: {{seed: 3, replications: 100}}
"""


@pytest.fixture
def scenario(scenario: Path) -> Path:
    scenario.write_text(SCENARIO, "utf-8")
    return scenario


def test_the_parts_are_the_total_at_each_point_of_a_sweep(scenario: Path) -> None:
    axes = ["recovery.interval=1 h,3 h", "prices.storage_written=0,0.1"]
    answer = cprsim.sweep(scenario, axes, workers=1, folder="results")
    result = load_sweep(answer.folder)
    assert (result.n_points, answer.values["currency"]) == (4, "USD")
    assert {"money.png", "money.svg"} <= {path.name for path in result.path.iterdir()}
    where = ["strategy", *(axis.column for axis in result.axes)]
    for name in ("cost_job", "cost_month"):
        total = result.of(name).set_index(where)["mean"]
        parts = result.table[result.table["quantity"].str.startswith(f"{name} ")]
        sums = parts.groupby(where)["mean"].sum()
        assert len(total) == 12
        assert (100 * sums - 100 * total).abs().max() < 0.5
    months = result.of("cost_month")
    assert (months["low"] < months["mean"]).all()
    assert answer.values["cheapest"]["cost_month"] == months["mean"].min()
    run = cprsim.run(scenario, ["recovery.full.interval=3 h"])
    bills = run.frames["bills"].set_index(["strategy", "part"])["month_cost"]["full"]
    assert with_spares({"useful": 0.0, "spare": 0.0}) == " without nodes"
    free = months.set_index(where)["mean"]["full", 3, 0]
    assert free == pytest.approx(bills["total"] - bills["storage written"])


def test_the_cheapest_system_is_told_from_that_of_least_overhead(scenario: Path) -> None:
    """Saves behind the job cost bytes instead of hours; the price at which that turns is told."""
    unknown = "unknown={prices.storage_written: {low: 0 USD, high: 0.01 USD}}"
    names = ["full", "checkfreq"]
    found = cprsim.systems(scenario, [unknown], fixed=True, replications=100, only=names)
    month = found.frames["bills"].pivot(index="strategy", columns="part", values="month_cost")
    assert (found.values["best"], found.values["cheapest"]) == ("checkfreq", "full")
    assert any("By overhead it is checkfreq" in one for one in found.document.remarks)
    without, written = month["total"] - month["storage written"], month["storage written"]
    even = 0.0057 * (without["full"] - without["checkfreq"])
    even /= written["checkfreq"] - written["full"]
    (flip,) = found.frames["unknown"].to_dict("records")
    assert flip["becomes"] == "checkfreq"
    assert flip["at"] == pytest.approx(even, rel=0.01)
    assert any("costs the same" in one for one in found.document.remarks)


@pytest.mark.long
def test_a_selection_names_the_unknown_input_that_would_turn_it(scenario: Path) -> None:
    unknown = "unknown={failures.mtbf: {low: 3 h, high: 30 h}}"
    answer = cprsim.select(scenario, [unknown], target_pls=0.05, replications=100)
    (flip,) = answer.frames["unknown"].to_dict("records")
    assert (flip["key"], flip["simulated"]) == ("failures.mtbf", True)
    assert "With these saves, by total cost:" in " ".join(answer.document.remarks)


@pytest.mark.parametrize(
    "unknown", ["unknown={failures.mtbf: {low: 5 h, high: 30 h}}", "failures.mtbf_95=[6 h, 30 h]"]
)
def test_node_hours_decide_without_prices(scenario: Path, unknown: str) -> None:
    """Rare saves are cheapest where failures are rare; the MTBF at which both cost the same."""
    few = "simulation.replications=40"
    loaded = load_scenario(scenario, ["prices=null", "costs.save=10 min", unknown, few])
    entry = "{{strategy: full, name: {}, interval: {} h}}".format
    entries = {"full": entry("full", 1), "rare": entry("rare", 4)}
    (flip,) = break_evens_of(loaded, entries, {"full": 1.0, "rare": 2.0}, "full")
    # to first order an hour costs save / interval, and interval / 2 / MTBF
    even_h = (4 - 1) / 2 / (1 / 6 * (1 - 1 / 4))
    assert flip.becomes == "rare"
    assert flip.at == pytest.approx(even_h, rel=0.35)


def test_a_backtest_bills_the_nodes_of_its_jobs(scenario: Path) -> None:
    experiment = assemble(load_scenario(scenario, ["recovery=[{strategy: full, interval: 1 h}]"]))
    for number in range(2):
        events = exported(replay(experiment, number)["full"], f"j{number}", step_s=1.0)
        write_events(Path(f"{number}.jsonl"), events)
    answer = cprsim.backtest(
        "0.jsonl", "1.jsonl", recovery="{strategy: full, interval: 30 min}", draws=2,
        overrides=["prices.node_hour=2.5 USD", "prices.watts=700", "prices.kwh=0.12 USD"],
    )  # fmt: skip
    bills = answer.frames["bills"]
    useful = (100 * 8 * 2.5 * answer.frames["jobs"]["useful_h"]).round().sum() / 100
    costs = bills[bills["part"] == "useful"][["job_cost", "month_cost"]].to_numpy()
    assert costs == pytest.approx(np.array([[useful, 8 * 2.5 * 730.5]] * 2), abs=0.01)
