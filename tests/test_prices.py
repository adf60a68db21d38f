"""Money adds up, to the cent."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.prices import (
    Bill,
    Prices,
    Usage,
    bill_of,
    carbon_kg,
    energy_kwh,
    shown,
    sum_of,
    to_cents,
)

PRICES = Prices(
    currency="USD",
    node_hour={"trainer": Decimal("2.50"), "any": Decimal("0.80")},
    storage_month=Decimal("0.02"),
    storage_written=Decimal("0.001"),
    watts={"any": 500.0},
    kwh=Decimal("0.10"),
    carbon_kg_per_kwh=0.4,
)


def test_a_bill_by_hand() -> None:
    usage = Usage({"useful": {"trainer": 10.0, "emb_ps": 5.0}, "save": {"emb_ps": 1.0}}, 100.0, 7.0)
    bill = bill_of(PRICES, usage)
    assert bill.cents == {
        "useful": 2900, "save": 80, "storage kept": 200, "storage written": 1, "energy": 80,
    }  # fmt: skip
    assert bill.total_cents == 2900 + 80 + 200 + 1 + 80
    assert energy_kwh(PRICES, usage) == pytest.approx(16 * 0.5)
    assert carbon_kg(PRICES, usage) == pytest.approx(3.2)


hours = st.floats(0, 1e9)


@given(st.dictionaries(st.text(), st.dictionaries(st.sampled_from(["trainer", "x"]), hours)), hours)
def test_the_total_is_the_sum_of_its_parts_to_the_cent(node_h, written: float) -> None:
    bill = bill_of(PRICES, Usage(node_h, 0.0, written))
    assert bill.total_cents == sum(bill.cents.values())
    assert all(isinstance(cents, int) for cents in bill.cents.values())
    both = sum_of([bill, bill])
    assert both.total_cents == 2 * bill.total_cents == sum(both.cents.values())


def test_currencies_are_never_added() -> None:
    with pytest.raises(ValueError, match="EUR and USD"):
        sum_of([Bill("USD", {"a": 1}), Bill("EUR", {"a": 1})])


def test_cents_are_rounded_once_halves_to_even() -> None:
    assert [to_cents(Decimal(amount)) for amount in ("0.005", "0.015", "0.0251")] == [0, 2, 3]
    assert shown(123456789, "USD") == "1,234,567.89 USD"
