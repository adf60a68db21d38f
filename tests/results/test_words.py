"""Numbers as people read them: the digits suit the interval, wherever an estimate is shown."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.job.policy import RELOAD
from cprsim.job.records import SubSaves
from cprsim.results.words import (
    hours,
    portion,
    saves,
    significant,
    suited,
    with_ends,
    with_interval,
)
from tests.making import paper_policy


def policy(interval_h, sub_saves):
    return paper_policy("partial", RELOAD, interval_h, "given", sub_saves=sub_saves)


SAID = [
    # about three digits
    *((significant, (value,), text) for value, text in (
        (1e-12, "0"), (0.0004, "0.0004"), (1.434, "1.43"), (9.996, "10.0"), (99.96, "100"),
        (-1661.1, "-1,661"), (nan, "–"),
    )),
    # those of the interval; none where it is exact
    (with_interval, (10.23, 0.613), "10.2 ± 0.6"),
    (with_interval, (6.75, 0.0045), "6.750 ± 0.004"),
    (with_interval, (1661.1, 1234.5), "1,661 ± 1,234"),
    (with_interval, (5.0, 0.0), "5.00"),
    (with_ends, (0.0025, 0.0021, 0.0029), "0.0025 (0.0021 to 0.0029, 95 % interval)"),
    # a small portion is not shown as nothing
    *((portion, (value,), text) for value, text in (
        (0.1, "0.1000"), (0.0, "0.0000"), (3.2e-5, "3e-05"), (nan, "–"),
    )),
    # times in the unit that suits them
    *((hours, (value,), text) for value, text in (
        (0, "0 h"), (30 / 3600, "30 s"), (0.094, "5.64 min"), (2.049, "2.05 h"),
        (1200, "1,200 h"), (nan, "–"),
    )),
    *((saves, (policy(interval_h, sub_saves), 50.0), text) for interval_h, sub_saves, text in (
        (2.05, None, "every 2.05 h"),
        (inf, None, "no saves"),
        (60.0, None, "60 h: no saves"),
        (60.0, SubSaves("mfu"), "12.5 % of the rows every 7.5 h"),
        (600.0, SubSaves("mfu"), "600 h: no saves"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("say", "given", "text"), SAID)
def test_how_a_number_is_said(say, given, text):
    assert say(*given) == text


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6))
def test_no_digit_of_the_half_width_is_lost(value, half):
    shown, low, high = (
        float(text.replace(",", "")) for text in suited(value, value - half, value + half)
    )
    if half > 1e-6 * abs(value):
        assert (high - low) / 2 == pytest.approx(half, rel=0.51)
        assert shown == pytest.approx(value, abs=0.51 * half)
