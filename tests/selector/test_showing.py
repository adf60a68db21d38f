"""A selection as it is stored, said and drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from math import nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cprsim.codec import decode, encode
from cprsim.plots.save import save_figure
from cprsim.plots.selection import pareto_figure
from cprsim.present.selection import summary
from cprsim.present.terminal import show
from cprsim.recovery.giving_up import n_saves_due
from cprsim.selector.choice import Flip, Selection
from cprsim.selector.folder import candidate_rows
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


def test_it_is_read_back_as_it_was_written(selection: Selection) -> None:
    text = json.dumps(encode(selection), allow_nan=False)
    again = decode(Selection, json.loads(text))
    assert json.dumps(encode(again), allow_nan=False) == text
    assert again.chosen.strategy == selection.chosen.strategy
    assert said(again) == said(selection)


def test_a_candidate_that_does_not_finish_is_read_back_too(selection: Selection) -> None:
    full = replace(
        selection.full,
        finished_fraction=0.4,
        overhead=replace(selection.full.overhead, mean=nan, low=nan, high=nan),
    )
    unfinished = replace(selection, full=full)
    again = decode(Selection, json.loads(json.dumps(encode(unfinished), allow_nan=False)))
    assert "40.0 % done" in said(again)
    assert "while under full recovery 40.0 % of the jobs finish" in said(again)


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


def test_the_curve_of_another_model_is_warned_of(selection: Selection) -> None:
    noted = replace(selection, notes=("The curve was measured for another model.",))
    assert "Warning: The curve was measured for another model." in said(noted)


def test_what_is_not_compared_is_named(selection: Selection) -> None:
    text = said(replace(selection, left_out=("cpr-ssu", "cpr-scar")))
    assert "Not compared: cpr-ssu, cpr-scar." in text
    assert "Not compared" not in said(selection)


def test_the_table_has_every_candidate(selection: Selection) -> None:
    rows = candidate_rows(selection)
    assert rows["part"].tolist() == ["full", *["best"] * 3, "formula cpr", *["front"] * 3]
    assert rows["overhead_mean"].notna().all()


def test_the_figure_is_the_same_bytes_every_time(selection: Selection, tmp_path: Path) -> None:
    first, second = (
        save_figure(pareto_figure(selection, "made-up"), tmp_path / name) for name in "ab"
    )
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("n_saves", "useful_h", "shown"),
    [(2, 10.0, 3.34), (3, 10.0, 2.501), (6, 1.0, 8.58 / 60), (6, 0.1, 51.5 / 3600)],
)
def test_the_interval_shown_has_few_digits(n_saves: int, useful_h: float, shown: float) -> None:
    assert interval_with(n_saves, useful_h) == shown


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
