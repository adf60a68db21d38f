"""The section `sweep` and ``--over``: what values a text stands for, and how it is refused."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.errors import ParameterError
from cprsim.scenario.job import Sweep, values_along
from tests.scenario.writing import GOOD_TEXT, load, message


@pytest.mark.parametrize(
    ("said", "written", "numbers", "unit"),
    [
        ("1 h:100 h:log3", ("1 h", "10 h", "100 h"), (1, 10, 100), "h"),
        ("30 s:10 min:lin2", ("30 s", "600 s"), (30, 600), "s"),
        ("4:64:log5", (4, 8, 16, 32, 64), (4, 8, 16, 32, 64), ""),
        ("1:3:lin9", (1, 2, 3), (1, 2, 3), ""),
        ("14 h, 20 h,2 d", ("14 h", "20 h", "2 d"), (14, 20, 48), "h"),
        ("2 USD:2.50 USD:lin3", ("2 USD", "2.25 USD", "2.5 USD"), (2, 2.25, 2.5), "USD"),
        ([1, 2.5], (1, 2.5), (1, 2.5), ""),
        ("gamma,weibull", ("gamma", "weibull"), None, ""),
        ("1 h,young", ("1 h", "young"), None, ""),
    ],
)
def test_what_a_text_stands_for(said, written, numbers, unit) -> None:
    values = values_along(said)
    assert (values.written, values.numbers, values.unit) == (written, numbers, unit)


@given(
    low=st.floats(1e-3, 1e3), factor=st.floats(1.01, 1e4), n=st.integers(2, 40), kind=st.booleans()
)
def test_a_range_is_even_and_keeps_its_ends(low, factor, n, kind) -> None:
    numbers = values_along(f"{low!r} h:{low * factor!r} h:{'log' if kind else 'lin'}{n}").numbers
    assert len(numbers) == n
    np.testing.assert_allclose([numbers[0], numbers[-1]], [low, low * factor], rtol=1e-14)
    steps = np.diff(np.log(numbers) if kind else numbers)
    whole = log(factor) if kind else low * (factor - 1)
    np.testing.assert_allclose(steps, whole / (n - 1), atol=1e-5 * max(numbers) + 1e-5)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("1 h:2 h", "is no range: write LOW:HIGH:logN"),
        ("1 h:2 h:log1", "a range has 2 or more"),
        ("0 h:2 h:log3", "write linN for logN"),
        ("1 h:2 GB:log3", "mixes `GB` and `h`"),
        ("2 h:2 h:lin3", "begins where it ends"),
        ("a:b:lin3", "is neither a number nor a quantity"),
        ("1 h,,2 h", "has an empty value"),
        ("1 h,2 h,1 h", "has `1 h` twice"),
    ],
)
def test_what_is_no_range_is_refused(said, why) -> None:
    with pytest.raises(ParameterError, match=why):
        values_along(said)


def sweep_of(text: str, *over: str) -> Sweep:
    return load(over=over, text=text).scenario.sweep


def test_the_command_line_says_the_same_and_takes_the_place_of_the_files_axes() -> None:
    text = GOOD_TEXT + "sweep: {mode: one-at-a-time, over: {costs.load: [1 min, 2 min, 3 min]}}\n"
    in_file, said = sweep_of(text), sweep_of(GOOD_TEXT, "costs.load=1 min,2 min,3 min")
    other = sweep_of(text, "costs.detect=1 s,2 s", "costs.load=1h:4h:log3")
    assert in_file.over == said.over
    assert list(other.over) == ["costs.detect", "costs.load"]
    assert (said.n_points, in_file.n_points, other.n_points) == (3, 4, 6)
    assert other.mode == "one-at-a-time"


IN_SECTION = [
    ("over: {costs.load: 1 min:2 min}", "18: sweep.over.costs.load: `1 min:2 min` is no"),
    ("over: {costs.load: [[1]]}", "18: sweep.over.costs.load: `[[1]]` holds a list"),
    ("over: {costs.load: 5}", "18: sweep.over.costs.load: `5` is no range: write LOW"),
    ("over: {}", "18: sweep.over: `{}` should have at least 1 item"),
    ("over: {a.b: 1:400:lin400, a.c: 1:400:lin400}", "18: sweep.over: makes 160,000 points"),
    *((f"over: {{{key}: [1, 2]}}", f"18: sweep.over.{key}: `{key}` is no key that can be varied")
      for key in ("costs", "sweep.mode", "kernel.batch", "a" + 12 * ".a" + " x")),
]  # fmt: skip
ON_COMMAND_LINE = [
    (("costs.load",), "--over costs.load: write KEY=LOW:HIGH:logN"),
    (("costs.load=1 s,2 s", "costs.load=3 s,4 s"), "is there twice"),
]  # fmt: skip


@pytest.mark.parametrize(("block", "said"), IN_SECTION)
def test_a_wrong_section_is_named_with_its_line(block: str, said: str) -> None:
    assert f"good.yaml:{said}" in message(text=f"{GOOD_TEXT}sweep:\n  {block}\n")


@pytest.mark.parametrize(("over", "said"), ON_COMMAND_LINE)
def test_a_wrong_axis_of_the_command_line_is_named(over: tuple[str, ...], said: str) -> None:
    assert said in message(over=over)
