from __future__ import annotations

from contextlib import suppress
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.errors import ParameterError
from cprsim.units import BANDWIDTH, SHARE, SIZE, THROUGHPUT, TIME, Dimension

DIMENSIONS = (TIME, SIZE, BANDWIDTH, THROUGHPUT, SHARE)


@pytest.mark.parametrize(
    ("dimension", "text", "inside"),
    [
        (TIME, "28 h", 28.0),
        (TIME, "94 s", 94 / 3600),
        (TIME, "94s", 94 / 3600),
        (TIME, " 5.62 min ", 5.62 / 60),
        (TIME, "2 d", 48.0),
        (TIME, "1 day", 24.0),
        (TIME, "1e3 h", 1000.0),
        (TIME, ".5 hours", 0.5),
        (TIME, "0 s", 0.0),
        (TIME, "-3 h", -3.0),
        (SIZE, "2.16 GB", 2.16e9),
        (SIZE, "1 KiB", 1024.0),
        (SIZE, "8 bit", 1.0),
        (BANDWIDTH, "25 Gbit/s", 25e9 / 8 * 3600),
        (BANDWIDTH, "1 MB / s", 1e6 * 3600),
        (THROUGHPUT, "20000 samples/s", 20000 * 3600.0),
        (SHARE, "0.5 %", 0.005),
    ],
)
def test_quantities_read_as_arithmetic_says(dimension: Dimension, text: str, inside: float) -> None:
    assert dimension.parse(text) == pytest.approx(inside, rel=1e-15)


@pytest.mark.parametrize(
    ("dimension", "text", "hint"),
    [
        (TIME, "28", "has no unit: write for example 28 h"),
        (TIME, "", "is not a time"),
        (TIME, "h", "is not a time"),
        (TIME, "28 H", "`H`, which is no unit of a time"),
        (TIME, "28 GB", "`GB`, which is no unit of a time"),
        (TIME, "3 foo", "`foo`, which is no unit of a time"),
        (TIME, "3 Hz", "no unit of a time"),
        (TIME, "nan h", "is not a time"),
        (TIME, "-inf h", "is not a time"),
        (TIME, "-.inf h", "is not a time"),
        (TIME, ".nan", "is not a time"),
        (TIME, "1e999 h", "is too large"),
        (TIME, "1e308 years", "is too large"),
        (TIME, "10**10**10 h", "is not a time"),
        (TIME, "1 h + 2 min", "is not a time"),
        (TIME, "3 h/s/d", "is not a time"),
        (TIME, "3 __import__", "is not a time"),
        (TIME, "1" * 100 + " h", "is not a time"),
        (SIZE, "50 %", "no unit of a size"),
        (SIZE, "50 radian", "no unit of a size"),
        (SHARE, "50 radian", "no unit of a share"),
        (SHARE, "8 bit", "no unit of a share"),
        (SHARE, "0.5", "has no unit: write for example 0.5 %"),
        (BANDWIDTH, "25 Gb/s", "write for example 25 Gbit/s"),
        (BANDWIDTH, "25 GB", "no unit of a bandwidth"),
        (THROUGHPUT, "20000 /s", "write for example 20000 samples/s"),
    ],
)
def test_what_is_no_quantity_says_what_would_be(dimension: Dimension, text: str, hint: str) -> None:
    with pytest.raises(ParameterError) as error:
        dimension.parse(text)
    assert hint in str(error.value)
    assert "write for example" in str(error.value)


@given(st.text(max_size=30))
def test_no_text_hangs_or_breaks_the_reader(text: str) -> None:
    for dimension in DIMENSIONS:
        with suppress(ParameterError):
            assert isfinite(dimension.parse(text))


@given(st.sampled_from(DIMENSIONS), st.floats(0, 1e18))
def test_every_value_reads_back_from_its_text(dimension: Dimension, value: float) -> None:
    assert dimension.parse(dimension.format(value)) == value


@pytest.mark.parametrize(
    ("dimension", "text"),
    [
        (TIME, "5.62 min"),
        (TIME, "94 s"),
        (TIME, "28 h"),
        (TIME, "0 h"),
        (SIZE, "2.16 GB"),
        (BANDWIDTH, "25 Gbit/s"),
        (THROUGHPUT, "20000 samples/s"),
        (SHARE, "0.5 %"),
    ],
)
def test_texts_come_back_as_people_write_them(dimension: Dimension, text: str) -> None:
    assert dimension.format(dimension.parse(text)) == text
