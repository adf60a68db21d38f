"""Figures of a run: the timeline of a log written by hand, what they say, the same bytes again."""

import subprocess
import sys
from types import SimpleNamespace

import matplotlib
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import cprsim
from cprsim.commands.run.figures import (
    Lane,
    Setback,
    Span,
    close_up,
    read_lane,
    timeline_figure,
    visible,
)
from cprsim.job.policy import RELOAD, ROLL_BACK
from cprsim.pages.figures import axis_top, bytes_of, log_scale, save_figure
from tests.making import paper_policy, small_scenario

FULL = paper_policy("full", ROLL_BACK, 5.0, "young")
CPR = paper_policy("cpr_loose $x$", RELOAD, 40.0, "cpr")

FULL_EVENTS = [  # wall h, kind, activity from here on, progress, slot
    (0.0, "started", "useful", 0.0, -1),
    (5.0, "save_started", "save", 5.0, -1),
    (5.5, "save_resumed", "useful", 5.0, -1),
    (6.0, "save_committed", "useful", 5.5, -1),
    (7.5, "failed", "reschedule", 7.0, 3),
    (7.5, "failed", "reschedule", 7.0, 4),
    (7.5, "rolled_back", "reschedule", 5.0, -1),
    (8.0, "stage", "load", 5.0, -1),
    (8.5, "resumed", "lost", 5.0, -1),
    (10.5, "caught_up", "useful", 7.0, -1),
    (13.5, "save_started", "save", 10.0, -1),
    (13.7, "failed", "reschedule", 10.0, 2),
    (13.7, "save_abandoned", "reschedule", 10.0, -1),
    (13.7, "rolled_back", "reschedule", 5.0, -1),
    (14.0, "resumed", "lost", 5.0, -1),
    (19.0, "caught_up", "useful", 10.0, -1),
    (19.0, "finished", "over", 10.0, -1),
]
CPR_EVENTS = [
    (0.0, "started", "useful", 0.0, -1),
    (7.5, "failed", "reschedule", 7.5, 3),
    (7.5, "reverted", "reschedule", 7.5, 3),
    (8.5, "resumed", "useful", 7.5, -1),
    (11.0, "finished", "over", 10.0, -1),
]
COLUMNS = ["at_h", "kind", "activity", "progress_h", "slot"]


def events(rows, strategy="full"):
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame.insert(0, "strategy", strategy)
    return frame


def result(policies=(FULL, CPR), timeline=None):
    """What the timeline of a result is drawn from."""
    if timeline is None:
        timeline = pd.concat([events(FULL_EVENTS), events(CPR_EVENTS, CPR.name)])
    return SimpleNamespace(
        name="by hand", useful_h=10.0, timeline_replication=0, policies=policies, timeline=timeline
    )


LANE, OTHER_LANE = read_lane(events(FULL_EVENTS)), read_lane(events(CPR_EVENTS))


def test_what_is_read_out_of_a_log():
    # neighbours of one activity are one span
    instants_h = (0.0, 5.0, 5.5, 7.5, 8.0, 8.5, 10.5, 13.5, 13.7, 14.0, 19.0)
    names = ("useful", "save", "useful", "reschedule", "load", "lost", "useful", "save",
             "reschedule", "lost")  # fmt: skip
    assert LANE.spans == tuple(map(Span, instants_h, instants_h[1:], names))
    ways_h = [span.end_h - span.start_h for span in OTHER_LANE.spans]
    assert sum(ways_h) == pytest.approx(OTHER_LANE.end_h)
    assert (LANE.failed_at_h, LANE.saved_at_h) == ((7.5, 13.7), (6.0,))
    assert (LANE.background, LANE.abandoned_at_h) == (((5.5, 6.0),), (13.7,))
    # to the start of the save that held, not of the one that the second failure broke off
    assert LANE.setbacks == (Setback(7.5, 5.0, False), Setback(13.7, 5.0, False))
    # a shard without a save goes back to the start
    assert OTHER_LANE.setbacks == (Setback(7.5, 0.0, True),)


def test_the_close_up_shows_the_first_failure_and_the_way_back():
    start_h, end_h = close_up([LANE, OTHER_LANE], 19.0)
    assert start_h < 7.5 < end_h
    assert end_h - start_h < 19 / 4
    calm = [(0.0, "started", "useful", 0.0, -1), (10.0, "finished", "over", 10.0, -1)]
    assert close_up([read_lane(events(calm))], 10.0) is None


def test_what_lies_outside_a_window_is_not_drawn():
    lane = visible(LANE, (7.0, 11.0))
    assert lane.spans == LANE.spans[2:7]
    marks = (lane.failed_at_h, lane.saved_at_h, lane.background, lane.setbacks)
    assert marks == ((7.5,), (), (), (Setback(7.5, 5.0, False),))


def test_what_cannot_be_told_apart_is_drawn_once():
    """Of 10,000 hours with work for 0.6, a save for 0.4 and a failure in each."""
    hours = tuple(map(float, range(10_000)))
    spans = [(Span(h, h + 0.6, "useful"), Span(h + 0.6, h + 1, "save")) for h in hours]
    setbacks = tuple(Setback(h, h - 1, False) for h in hours)
    beside = tuple((h, h + 0.5) for h in hours)
    busy = Lane(sum(spans, ()), hours, beside, hours, hours, setbacks, 10_000.0, True)
    lane = visible(busy, (0.0, 10_000.0), n_bins=100)
    marks = (lane.saved_at_h, lane.failed_at_h, lane.abandoned_at_h, lane.background, lane.setbacks)
    assert [len(mark) for mark in marks] == [100] * 5
    # each bin is mostly useful work, and neighbours are one
    assert lane.spans == (Span(0.0, 10_000.0, "useful"),)


def texts(figure):
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


def test_a_bar_that_dwarfs_the_others_is_cut():
    assert axis_top([2.0, 0.1, 0.01]) < 0.2
    assert axis_top([2.0, 1.0]) > 2.0
    assert axis_top([0.085, 0.005]) > 0.085  # the comparison that matters most stays whole
    assert axis_top([float("nan"), 0.1]) > 0.1
    assert axis_top([0.0]) > 0


@pytest.mark.parametrize(
    ("mtbf", "text"), [("1 min", " no replication finished"), ("100000 d", " 0 %")]
)
def test_what_never_finished_and_what_costs_nothing_is_drawn(mtbf, text):
    run = cprsim.run(small_scenario("none", mtbf=mtbf, replications=2))
    assert text in texts(run.plot("overhead"))


def logarithmic(low, high):
    """Ticks and labels of an axis."""
    axes = Figure().subplots()
    axes.set_xlim(low, high)
    log_scale(axes, "x")
    return axes.get_xticks(), [label.get_text() for label in axes.get_xticklabels()]


@given(st.floats(-9, 9), st.floats(0.02, 15))
def test_a_logarithmic_axis_has_several_ticks_with_plain_numbers(low, decades):
    ticks, labels = logarithmic(10**low, 10 ** (low + decades))
    inside = [tick for tick in ticks if 10**low <= tick <= 10 ** (low + decades)]
    assert 2 <= len(inside) == len({*labels}) <= 9
    assert not any("e" in label for label in labels)


def test_long_labels_along_an_axis_leave_room_between_them():
    assert logarithmic(0.01, 1e5)[1] == ["0.01", "1", "100", "10,000"]


def test_the_timeline_explains_all_that_it_shows():
    figure = timeline_figure(result())
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
    figure = timeline_figure(result((FULL,), events(rows)))
    assert len(save_figure(figure, tmp_path / "timeline")) == 2
    assert "80 h,\nnot finished" in texts(figure)


def test_the_same_figure_is_the_same_bytes():  # as PNG and SVG too: tests/cli/test_process.py
    assert bytes_of(timeline_figure(result()), "pdf") == bytes_of(timeline_figure(result()), "pdf")


def test_plots_need_no_display_and_no_pyplot():
    code = "import sys, cprsim.pages.answer; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
