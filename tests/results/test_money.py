"""Bills of several jobs together."""

from __future__ import annotations

import pytest

from cprsim.prices import Bill
from cprsim.results.money import Billed, summed


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


def test_energy_is_known_where_that_of_each_job_is() -> None:
    together = summed([bill(1000, 60.0), bill(5000, None)], [100.0, 300.0])
    assert (together.energy_kwh, together.carbon_kg) == (None, None)
