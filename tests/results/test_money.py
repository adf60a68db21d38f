"""The bill of one job, which follows from hours and bytes, and of several jobs together."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cprsim.errors import ResultError
from cprsim.job.policy import RELOAD, ROLL_BACK
from cprsim.pages.money import cheapest, money_tables
from cprsim.results.money import (
    Billed,
    JobPrices,
    JobUse,
    bills_of,
    cheapest_by_bill,
    prices_in,
    prices_of,
    summed,
)
from cprsim.scenario.assemble import assemble
from cprsim.scenario.prices import Bill, Money, Prices
from cprsim.scenario.reading import load_scenario
from tests.making import paper_policy, small_scenario

PRICES = Prices(
    currency="USD",
    node_hour={"trainer": Money("2.50"), "any": Money("0.81")},
    storage_month=Money("0.02"),
    storage_written=Money("0.005"),
    watts={"any": 700.0},
    kwh=Money("0.12"),
    auc_loss=Money(30),
)
JOB = JobPrices(PRICES, {"trainer": 20, "emb_ps": 18}, 900e9)
OFTEN = paper_policy("full", ROLL_BACK, 2.0, "given")
STALE = paper_policy("cpr", RELOAD, 9.0, "given")
FULL = JobUse(40.0, {"lost": 1.234, "save": 0.777}, 20.0, 0.0)
CPR = JobUse(40.0, {"lost": 0.0, "save": 0.3}, 4.0, 0.0002)


def test_the_bill_of_a_job_follows_from_its_hours_and_bytes() -> None:
    cents = JOB.billed(OFTEN, FULL).job.cents
    per_h = 20 * 2.50 + 18 * 0.81
    assert cents["useful"] == round(100 * 40 * per_h)
    assert cents["lost"] == round(100 * 1.234 * per_h)
    assert cents["storage written"] == round(100 * 20 * 900 * 0.005)
    assert cents["storage kept"] == round(100 * 900 * 42.011 / 730.5 * 0.02)
    assert cents["energy"] == round(100 * 38 * 42.011 * 0.7 * 0.12)
    assert cents["accuracy"] == 0
    assert JOB.billed(STALE, CPR).job.cents["accuracy"] == 6000  # 0.0002 at 30 USD per 0.0001


@pytest.mark.parametrize(("price", "first"), [(0, "cpr"), (1000, "full")])
def test_the_price_of_accuracy_decides(price: int, first: str) -> None:
    prices = JobPrices(
        Prices(currency="USD", node_hour=PRICES.node_hour, auc_loss=Money(price)), JOB.nodes, 0.0
    )
    said = cheapest(bills_of(prices, {"full": (OFTEN, FULL), "cpr": (STALE, CPR)}))
    assert said.startswith(f"Cheapest in all, accuracy counted: {first}, ")


def test_a_loss_that_nobody_knows_is_not_free() -> None:
    unknown = JobUse(40.0, {"save": 0.3}, 4.0, None)
    assert "accuracy" not in JOB.billed(STALE, unknown).job.cents
    bills = bills_of(JOB, {"full": (OFTEN, FULL), "cpr": (STALE, unknown)})
    assert bills["cpr"].job.total_cents < bills["full"].job.total_cents
    assert cheapest_by_bill(bills) == "full"
    said = cheapest(bills)
    assert said.startswith("Cheapest in all, accuracy counted: full, ")
    assert said.endswith("Not compared in money: cpr, whose loss of accuracy is not priced.")
    (table,) = money_tables(bills)
    at = [*table.headings].index("accuracy")
    assert [(row[0], row[at]) for row in table.rows] == [("full", "0.00"), ("cpr", "not priced")]
    free = JobPrices(PRICES.model_copy(update={"auc_loss": None}), JOB.nodes, 0.0)
    by_rules = replace(STALE, accuracy_model="hsdp")  # nobody has accepted what a system loses
    for policy, first in ((STALE, "cpr"), (by_rules, "full")):
        said = cheapest(bills_of(free, {"full": (OFTEN, FULL), "cpr": (policy, unknown)}))
        assert said.startswith(f"Cheapest in all, accuracy not counted: {first}, ")
    nobody = bills_of(JOB, {"full": (OFTEN, unknown), "cpr": (STALE, unknown)})
    assert "accuracy not counted" in cheapest(nobody)


@pytest.mark.parametrize("replicas", [1, 4])
def test_a_save_writes_each_part_of_the_state_once(tmp_path: Path, replicas: int) -> None:
    """In the bill as in the time that it takes: replicas hold the same."""
    path, cluster = tmp_path / "job.yaml", {"workers": 16, "replicas": replicas, "state": "100 GB"}
    path.write_text(
        f"job: {{useful: 100 h, step: 2 s}}\ncluster: {json.dumps(cluster)}\n"
        "failures: {kind: job, family: exponential, mtbf: 10 h, role: worker}\n"
        "costs: {save: transfer, load: transfer, detect: 1 min, reschedule: 5 min}\n"
        "storage: {bandwidth: 10 GB/s, per_server: 10 GB/s}\n"
        "recovery: [full]\nprices: {storage_written: 0.01 USD}\n"
    )
    experiment = assemble(load_scenario(path))
    prices, written = prices_of(experiment.scenario), 16 * 100e9 / replicas
    assert (prices.state_bytes, experiment.facts.all_bytes) == (written, written)
    assert experiment.facts.write_h * 3600 == pytest.approx(written / 10e9)


def test_prices_are_those_of_the_folder(tmp_path: Path) -> None:
    assert prices_in(tmp_path) is None
    text = small_scenario().replace("emb_ps: 4", "emb_ps: 3, shard_size: 10 GB")
    (tmp_path / "scenario.yaml").write_text(text + "prices: {node_hour: 2 USD}\n", "utf-8")
    found = prices_in(tmp_path)
    assert (dict(found.nodes), found.state_bytes) == ({"emb_ps": 3, "trainer": 2}, 3e10)
    (tmp_path / "scenario.yaml").write_text(text + "prices: {node_hour: cheap}\n", "utf-8")
    with pytest.raises(ResultError, match="prices can't be read"):
        prices_in(tmp_path)


def bill(node_cents: int, kwh: float | None) -> Billed:
    """Of one job, and as much for a month."""
    of_job = Bill("USD", {"useful": node_cents, "lost": 100})
    return Billed(of_job, of_job, kwh, None if kwh is None else kwh / 10)


def test_bills_of_several_jobs_are_added_and_a_month_is_one_of_their_useful_hours() -> None:
    together = summed([bill(1000, 60.0), bill(5000, 120.0)], [100.0, 300.0])
    assert together.job == Bill("USD", {"useful": 6000, "lost": 200})
    assert together.month == Bill("USD", {"useful": round(6000 * 730.5 / 400), "lost": 365})
    assert together.energy_kwh == pytest.approx((60 * 100 + 120 * 300) / 400)
    assert together.carbon_kg == pytest.approx(10.5)
    unknown = summed([bill(1000, 60.0), bill(5000, None)], [100.0, 300.0])
    assert (unknown.energy_kwh, unknown.carbon_kg) == (None, None)
