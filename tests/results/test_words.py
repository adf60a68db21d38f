"""Numbers as people read them: the digits suit the interval, wherever an estimate is shown."""

from __future__ import annotations

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.results.words import (
    ends,
    portion,
    suited,
    ten_thousandths,
    with_ends,
    with_interval,
)


def test_a_small_estimate_keeps_the_digits_of_its_interval():
    assert with_ends(0.0025, 0.0021, 0.0029) == "0.0025 (0.0021 to 0.0029, 95 % interval)"
    assert suited(0.0025, 0.0021, 0.0029) == ("0.0025", "0.0021", "0.0029")
    assert suited(0.0025, 0.00238, 0.00262) == ("0.00250", "0.00238", "0.00262")
    assert with_interval(0.0025, 0.0004) == "0.0025 ± 0.0004"
    assert ends(0.0021, 0.0029) == "0.0021 to 0.0029"


def test_a_small_portion_is_not_shown_as_nothing():
    shown = {0.1: "0.1000", 0.0: "0.0000", 3.2e-5: "3e-05", nan: "–"}
    assert {value: portion(value) for value in shown} == shown


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6))
def test_no_digit_of_the_half_width_is_lost(value, half):
    shown, low, high = (
        float(text.replace(",", "")) for text in suited(value, value - half, value + half)
    )
    if half > 1e-6 * abs(value):
        assert (high - low) / 2 == pytest.approx(half, rel=0.51)
        assert shown == pytest.approx(value, abs=0.51 * half)


def test_a_loss_of_accuracy_is_told_in_ten_thousandths():
    assert ten_thousandths(0.00027, 0.00008) == "2.70 ± 0.80"
    assert ten_thousandths(0.12345678, 0.0000005) == "1,234.568 ± 0.005"
    assert ten_thousandths(0.5, 0.123445) == "5,000 ± 1,234"
    assert ten_thousandths(0.0, 0.0) == "0"
