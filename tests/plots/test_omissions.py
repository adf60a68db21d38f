"""No figure of curves leaves out a value without saying so."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import matplotlib.text
import numpy as np
import pytest

from cprsim.plots.chart import Band, Chart, Panel, Series
from cprsim.plots.draw_chart import chart_figure
from cprsim.plots.omissions import Omissions
from cprsim.plots.percentiles import percentiles_figure
from cprsim.plots.selection import pareto_figure
from cprsim.results.percentiles import percentiles
from cprsim.selector.folder import read_selection
from tests.present.conftest import candidate, made_selection


def texts(figure) -> str:
    found = figure.findobj(matplotlib.text.Text)
    return "\n".join(text.get_text() for text in found if text.get_text())


def chart(y, low=(), high=(), x=(1.0, 2.0, 3.0), bands=(), **changed) -> Chart:
    one = Series("ours", x, y, low, high)
    return Chart("t", "s", (Panel("p", "x", "y", (one,), bands, **changed),))


def told(figure) -> list[str]:
    starts = ("left out", "beyond", "not shown")
    return [line for line in texts(figure).splitlines() if line.startswith(starts)]


def test_a_chart_that_shows_everything_says_nothing() -> None:
    assert told(chart_figure(chart((1.0, 2.0, 3.0), (0.5, 1.5, 2.5), (1.5, 2.5, 3.5)))) == []
    assert told(chart_figure(chart((-1.0, 2.0, 3.0)))) == []


@pytest.mark.parametrize("none", [nan, inf, -inf])
@pytest.mark.parametrize("kind", ["line", "points", "steps", "stack", "paper"])
def test_values_that_are_none_are_counted(none, kind) -> None:
    one = Series("ours", ("a", "b", "c"), (1.0, none, 3.0), kind=kind)
    figure = chart_figure(Chart("t", "s", (Panel("p", "x", "y", (one,)),)))
    assert told(figure) == ["left out: 1 value not finite"]


def test_values_that_a_logarithmic_axis_cannot_show_are_counted() -> None:
    of_y = chart_figure(chart((0.0, 2.0, -3.0), y_log=True))
    assert told(of_y) == ["left out: 2 values not above 0, on a logarithmic axis"]
    of_x = chart_figure(chart((1.0, 2.0, nan), x=(0.0, 1.0, 10.0), x_log=True))
    assert told(of_x) == [
        "left out: 1 value not finite; 1 value not above 0, on a logarithmic axis"
    ]


def test_ends_of_intervals_that_are_none_or_not_shown_are_counted() -> None:
    figure = chart_figure(chart((1.0, 2.0, 3.0), (0.5, nan, -1.0), (1.5, nan, 3.5), y_log=True))
    assert told(figure) == ["not shown whole: 3 ends of intervals"]


def test_a_range_below_zero_is_not_cut_off() -> None:
    figure = chart_figure(chart((1.0, 2.0, 3.0), bands=(Band("paper", -1.0, 1.0),)))
    assert figure.axes[0].get_ylim()[0] <= -1.0


def test_what_lies_beyond_the_axes_is_marked_at_their_edge() -> None:
    figure = chart_figure(chart((1.0, 2.0, 3.0)))
    axes, omissions = figure.axes[0], Omissions()
    axes.set_xlim(1, 2.5)
    axes.set_ylim(1.5, 10)
    omissions.add([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    omissions.annotate(axes)
    assert told(figure) == ["beyond the axes, marked at their edge: 2 values"]
    marks = {(line.get_marker(), *map(float, line.get_xydata()[0])) for line in axes.lines[1:]}
    assert marks == {("v", 1.0, 1.5), (">", 2.5, 3.0)}
    assert (axes.get_xlim(), axes.get_ylim()) == ((1, 2.5), (1.5, 10))


def test_the_worst_runs_are_said_to_lie_beyond_the_axis() -> None:
    overhead = np.concatenate([np.linspace(0.1, 0.2, 985), np.full(15, 5.0)])
    figure = percentiles_figure({"full": percentiles(overhead)}, what="made-up")
    assert "beyond the axes, marked at their edge" in figure.axes[0].get_xlabel()  # on no line


def test_candidates_beyond_the_axes_and_unfinished_ones_are_said(made_up_selection) -> None:
    assert told(pareto_figure(made_up_selection(), "made-up")) == []
    far = candidate("partial", 9.0, 0.5, 0.95, keeps=False)
    figure = pareto_figure(made_up_selection(far), "made-up")
    assert told(figure) == ["beyond the axes, marked at their edge: 1 value"]
    unfinished = candidate("partial", 9.0, nan, nan, keeps=False)
    figure = pareto_figure(made_up_selection(unfinished), "made-up")
    assert told(figure) == ["left out: 1 value of candidates that do not finish"]


@pytest.fixture
def made_up_selection(tmp_path):
    """A selection of a few candidates, and more on its front."""
    selection = read_selection(made_selection(tmp_path))

    def _selection(*more):
        near = (candidate("partial", 7.0, 0.02, 0.09), selection.chosen)
        return replace(selection, front={"partial": (*more, *near)})

    return _selection
