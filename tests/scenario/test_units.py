import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.errors import ParameterError
from cprsim.files.units import BANDWIDTH, SHARE, SIZE, THROUGHPUT, TIME, Dimension

DIMENSIONS = (TIME, SIZE, BANDWIDTH, THROUGHPUT, SHARE)


INSIDE = {
    TIME: {
        "28 h": 28.0, "94 s": 94 / 3600, "94s": 94 / 3600, " 5.62 min ": 5.62 / 60, "2 d": 48.0,
        "1 day": 24.0, "1e3 h": 1000.0, ".5 hours": 0.5, "0 s": 0.0, "-3 h": -3.0,
    },
    SIZE: {"2.16 GB": 2.16e9, "1 KiB": 1024.0, "8 bit": 1.0},
    BANDWIDTH: {"25 Gbit/s": 25e9 / 8 * 3600, "1 MB / s": 1e6 * 3600},
    THROUGHPUT: {"20000 samples/s": 20000 * 3600.0},
    SHARE: {"0.5 %": 0.005},
}  # fmt: skip
NO_QUANTITY = {
    TIME: {
        "28": "has no unit: write for example 28 h",
        "28 GB": "`GB`, which is no unit of a time",
        "3 Hz": "no unit of a time",
        "1e999 h": "is too large",
        "1e308 years": "is too large",
        **dict.fromkeys(
            ("", "h", "nan h", "-inf h", "-.inf h", ".nan", "10**10**10 h", "1 h + 2 min",
             "3 h/s/d", "3 __import__", "1" * 100 + " h"),
            "is not a time",
        ),
    },
    SHARE: {
        "8 bit": "no unit of a share",
        "0.5": "has no unit: write for example 0.5 %",
    },
    BANDWIDTH: {"25 Gb/s": "write for example 25 Gbit/s"},
    THROUGHPUT: {"20000 /s": "write for example 20000 samples/s"},
}  # fmt: skip


@pytest.mark.parametrize("dimension", INSIDE)
def test_quantities_read_as_arithmetic_says(dimension: Dimension) -> None:
    for text, inside in INSIDE[dimension].items():
        assert dimension.parse(text) == pytest.approx(inside, rel=1e-15), text


@pytest.mark.parametrize("dimension", NO_QUANTITY)
def test_what_is_no_quantity_says_what_would_be(dimension: Dimension) -> None:
    for text, hint in NO_QUANTITY[dimension].items():
        with pytest.raises(ParameterError) as error:
            dimension.parse(text)
        assert hint in str(error.value)
        assert "write for example" in str(error.value)


@given(st.sampled_from(DIMENSIONS), st.floats(0, 1e18))
def test_every_value_reads_back_from_its_text(dimension: Dimension, value: float) -> None:
    assert dimension.parse(dimension.format(value)) == value
