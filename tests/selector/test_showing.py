"""A selection as it is stored, said and drawn."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cprsim.present.selection import summary
from cprsim.present.terminal import show
from cprsim.recovery.intervals import n_saves_due
from cprsim.selector.choice import Flip, Selection
from cprsim.selector.limit import Limit, LimitedQuantity
from cprsim.selector.pricing import interval_with
from cprsim.selector.selecting import select
from cprsim.selector.words import typed
from cprsim.units import TIME
from tests.selector.conftest import Job, curve_of

LIMIT = Limit(LimitedQuantity.AUC, 0.06 * 0.01 * Job().pls(0))
FLIPS = (Flip("a cost of a save", "h", 0.05, 0.5), Flip("an MTBF of the job", "h", 25, None, (1,)))


@pytest.fixture(scope="module")
def selection() -> Selection:
    made = select(Job(n_replications=200).experiment(), curve_of(0.0005), LIMIT, explain=False)
    bench = {name: (one,) for name, one in made.best.items() if one is not None}
    return replace(made, flips=FLIPS, front=bench)


def said(selection: Selection) -> str:
    console = Console(file=StringIO(), width=120)
    show(console, summary(selection, "made-up", 256))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_flips_say_from_what_to_what(selection: Selection) -> None:
    text = said(selection)
    assert "a cost of a save of 30 min (now 3 min)" in text
    assert "It would stay the same with: an MTBF of the job of 1 h (now 25 h)." in text


def test_what_was_not_measured_is_warned_of(selection: Selection) -> None:
    partial = selection.best["partial"]
    assert partial is not None
    best = {**selection.best, "partial": replace(partial, beyond_fraction=0.07)}
    beyond = replace(selection, best=best)
    assert "7.00 % of the jobs lose more than the curve was measured for" in said(beyond)
    assert "Warning" not in said(selection)


@given(
    n_saves=st.integers(1, 20_000),
    useful_h=st.floats(0.01, 10_000),
    tail=st.floats(0.2, 1.0),
)
def test_the_interval_shown_can_be_typed_and_gives_the_same_saves(
    n_saves: int, useful_h: float, tail: float
) -> None:
    interval_h = interval_with(n_saves, useful_h, tail)
    assert n_saves_due(interval_h, useful_h) == n_saves
    assert n_saves_due(TIME.parse(typed(interval_h)), useful_h) == n_saves
    assert interval_h == pytest.approx(useful_h / (n_saves + tail), rel=0.0021)
