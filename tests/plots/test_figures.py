"""Figures: what they say, that they are drawn whatever the numbers, and the same bytes again."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import matplotlib
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from cprsim.plots.axes import axis_top
from cprsim.plots.overhead import overhead_figure
from cprsim.plots.run import run_figures
from cprsim.plots.save import save_figures
from cprsim.plots.style import LOOKS, OTHER_LOOKS, look_of, stacked
from cprsim.plots.timeline import timeline_figure
from cprsim.records import PARTS
from tests.plots.conftest import result


def texts(figure):
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


def legend_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_every_part_of_overhead_is_drawn():
    assert set(stacked(PARTS)) == set(PARTS) == {*LOOKS} - {"useful"}
    assert stacked(["rebuild", "lost", "save"]) == ("save", "lost", "rebuild")
    assert look_of("rebuild").label == "rebuild"


def test_bars_are_as_high_as_their_parts(hand):
    figure = overhead_figure(hand.result())
    axes = figure.axes[0]
    bars = {
        (round(bar.get_x() + bar.get_width() / 2), round(bar.get_height(), 6))
        for bar in axes.patches
    }
    assert bars == {(0, 0.04), (0, 0.01), (0, 0.05), (1, 0.002), (1, 0.004)}
    assert {"10.0 %", "0.60 %"} <= set(texts(figure))
    # the legend has the parts that cost something
    assert legend_of(axes) == ["reschedule", "lost work, done again", "load", "save"]


def test_a_part_that_only_another_system_has_leaves_the_total_above_the_bar(hand):
    made = hand.result(overheads={**hand.overheads, hand.cpr.name: {"save": 0.002}})
    regroup = made.summary.query("quantity == 'save'").assign(
        quantity="regroup", mean=[float("nan"), 0.03]
    )
    found = texts(overhead_figure(replace(made, summary=pd.concat([made.summary, regroup]))))
    assert "10.0 %" in found


def test_a_bar_that_dwarfs_the_others_is_cut():
    assert axis_top([2.0, 0.1, 0.01]) < 0.2
    assert axis_top([2.0, 1.0]) > 2.0
    assert axis_top([0.085, 0.005]) > 0.085  # the comparison that matters most stays whole
    assert axis_top([float("nan"), 0.1]) > 0.1
    assert axis_top([0.0]) > 0


def test_what_never_finished_and_what_costs_nothing_is_drawn(hand):
    figure = overhead_figure(hand.result(overheads={**hand.overheads, "full": None}))
    assert "no replication\nfinished" in texts(figure)
    overheads = {"full": {}, "cpr_loose $x$": {}}
    assert "0 %" in texts(overhead_figure(hand.result(overheads=overheads)))


def test_the_timeline_explains_all_that_it_shows(hand):
    figure = timeline_figure(hand.result())
    assert "cpr_loose $x$" in texts(figure)  # neither dollars nor underscores make formulas
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {
        "useful work",
        "save",
        "load",
        "lost work, done again",
        "reschedule",
        "failure",
        "all go back",
        "failed shards go back",
        "saved",
        "saving beside the work",
        "save abandoned",
    }


def test_the_timeline_draws_what_only_recovery_systems_do(hand):
    rows = [
        (0.0, "started", "useful", 0.0, -1),
        (4.0, "failed", "regroup", 4.0, 1),
        (5.0, "resumed", "useful", 4.0, -1),
        (11.0, "finished", "over", 10.0, -1),
    ]
    figure = timeline_figure(hand.result(policies=(hand.full,), timeline=hand.events(rows)))
    (legend,) = figure.legends
    assert "regroup" in {text.get_text() for text in legend.get_texts()}
    drawn = [to_rgb(bars.get_facecolor()[0]) for bars in figure.axes[0].collections
             if len(bars.get_facecolor())]  # fmt: skip
    assert to_rgb(look_of("regroup").colour) in drawn


def test_a_timeline_with_many_saves_and_failures_is_drawn(hand, tmp_path):
    rows = [(0.0, "started", "useful", 0.0, -1)]
    for i in range(1, 800):
        rows.append((i * 0.1, "save_started", "save", i * 0.1, -1))
        rows.append((i * 0.1 + 0.01, "save_committed", "useful", i * 0.1, -1))
        if i % 4 == 0:
            rows.append((i * 0.1 + 0.02, "failed", "load", i * 0.1, 1))
            rows.append((i * 0.1 + 0.02, "rolled_back", "load", i * 0.1, -1))
            rows.append((i * 0.1 + 0.03, "resumed", "useful", i * 0.1, -1))
    rows.append((80.0, "stopped", "over", 80.0, -1))
    result = hand.result(policies=(hand.full,), timeline=hand.events(rows))
    assert len(save_figures(run_figures(result), tmp_path)) == 4
    assert "80 h,\nnot finished" in texts(timeline_figure(result))


def luminance(colour):
    red, green, blue = to_rgb(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_no_two_parts_look_alike_without_colour():
    looks = [*LOOKS.values(), *OTHER_LOOKS]
    for i, one in enumerate(looks):
        for other in looks[i + 1 :]:
            apart = abs(luminance(one.colour) - luminance(other.colour))
            assert one.hatch != other.hatch or apart > 0.2, (one, other)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The files of the result made by hand, in each format, each drawn by itself."""
    folder = tmp_path_factory.mktemp("drawn")
    return {
        name: save_figures(run_figures(result()), folder, formats=[name])
        for name in ("png", "svg", "pdf")
    }


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_figure_is_the_same_bytes(hand, drawn, tmp_path, suffix):
    again = save_figures(run_figures(hand.result()), tmp_path, formats=[suffix])
    assert [path.name for path in again] == [path.name for path in drawn[suffix]]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in drawn[suffix]]


def test_the_users_matplotlibrc_changes_nothing(hand, drawn, tmp_path):
    before = drawn["png"]
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 20}):
        after = save_figures(run_figures(hand.result()), tmp_path, prefix="b-", formats=["png"])
    assert [path.read_bytes() for path in before] == [path.read_bytes() for path in after]


def test_files_tell_nothing_of_the_day_or_the_machine(drawn):
    for path in [*drawn["png"], *drawn["svg"]]:
        content = path.read_bytes()
        assert b"Matplotlib v" not in content
        assert b"dc:date" not in content


def test_plots_need_no_display_and_no_pyplot():
    code = "import sys, cprsim.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
