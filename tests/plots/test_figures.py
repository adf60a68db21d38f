"""Figures: what they say, that they are drawn whatever the numbers, and the same bytes again."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import pytest

from cprsim.plots.axes import axis_top
from cprsim.plots.run import overhead_figure
from cprsim.plots.save import save_figures
from cprsim.plots.timeline import timeline_figure
from tests.plots import conftest as hand
from tests.plots.conftest import drawings


def texts(figure):
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


def test_a_bar_that_dwarfs_the_others_is_cut():
    assert axis_top([2.0, 0.1, 0.01]) < 0.2
    assert axis_top([2.0, 1.0]) > 2.0
    assert axis_top([0.085, 0.005]) > 0.085  # the comparison that matters most stays whole
    assert axis_top([float("nan"), 0.1]) > 0.1
    assert axis_top([0.0]) > 0


def test_what_never_finished_and_what_costs_nothing_is_drawn():
    figure = overhead_figure(hand.result(overheads={**hand.OVERHEADS, "full": None}))
    assert "no replication\nfinished" in texts(figure)
    overheads = {"full": {}, "cpr_loose $x$": {}}
    assert "0 %" in texts(overhead_figure(hand.result(overheads=overheads)))


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
    result = hand.result(policies=(hand.FULL,), timeline=hand.events(rows))
    assert len(save_figures(drawings(result), tmp_path)) == 4
    assert "80 h,\nnot finished" in texts(timeline_figure(result))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_figure_is_the_same_bytes(tmp_path, suffix):
    folders = (tmp_path / "one", tmp_path / "two")
    for folder in folders:
        folder.mkdir()
        save_figures(drawings(hand.result()), folder, formats=[suffix])
    one, two = (sorted(folder.iterdir()) for folder in folders)
    assert len(one) == 2
    assert [path.name for path in one] == [path.name for path in two]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_plots_need_no_display_and_no_pyplot():
    code = "import sys, cprsim.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
