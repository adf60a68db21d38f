"""Figures: what they say, that they are drawn whatever the numbers, and the same bytes again."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import pytest

import cprsim
from cprsim.plots.axes import axis_top
from cprsim.plots.save import bytes_of, save_figure
from cprsim.plots.timeline import timeline_figure
from tests.making import small_scenario
from tests.plots import conftest as hand


def texts(figure):
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


def test_a_bar_that_dwarfs_the_others_is_cut():
    assert axis_top([2.0, 0.1, 0.01]) < 0.2
    assert axis_top([2.0, 1.0]) > 2.0
    assert axis_top([0.085, 0.005]) > 0.085  # the comparison that matters most stays whole
    assert axis_top([float("nan"), 0.1]) > 0.1
    assert axis_top([0.0]) > 0


@pytest.mark.parametrize(
    ("mtbf", "text"), [("1 min", "no replication\nfinished"), ("100000 d", "0 %")]
)
def test_what_never_finished_and_what_costs_nothing_is_drawn(mtbf, text):
    run = cprsim.run(small_scenario("none", mtbf=mtbf, replications=2))
    assert text in texts(run.figure("overhead"))


def test_the_timeline_explains_all_that_it_shows():
    figure = timeline_figure(hand.result())
    assert "cpr_loose $x$" in texts(figure)  # neither dollars nor underscores make formulas
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(labels) == len(set(labels)) == 11
    assert {"lost work, done again", "failed shards go back", "save abandoned"} <= {*labels}


def test_a_timeline_with_many_saves_and_failures_is_drawn(tmp_path):
    cycle = [
        ("save_started", "save"), ("save_committed", "useful"), ("failed", "load"),
        ("rolled_back", "load"), ("resumed", "useful"),
    ]  # fmt: skip
    rows = [(h + n / 10, *what, h, 1) for h in range(80) for n, what in enumerate(cycle)]
    rows.append((80.0, "stopped", "over", 80.0, -1))
    figure = timeline_figure(hand.result((hand.FULL,), hand.events(rows)))
    assert len(save_figure(figure, tmp_path / "timeline")) == 2
    assert "80 h,\nnot finished" in texts(figure)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_figure_is_the_same_bytes(suffix):
    one, two = (bytes_of(timeline_figure(hand.result()), suffix) for _ in range(2))
    assert one == two


def test_plots_need_no_display_and_no_pyplot():
    code = "import sys, cprsim.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
