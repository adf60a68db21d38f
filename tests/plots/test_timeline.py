"""What the timeline reads out of an event log, against logs written by hand."""

from __future__ import annotations

import pytest

from cprsim.plots.timeline import (
    Lane,
    Setback,
    Span,
    close_up,
    read_lane,
    visible,
)
from tests.plots import conftest as hand

FULL = read_lane(hand.events(hand.FULL_EVENTS))
CPR = read_lane(hand.events(hand.CPR_EVENTS))


def test_what_is_read_out_of_a_log():
    # neighbours of one activity are one span
    assert FULL.spans == (
        Span(0.0, 5.0, "useful"),
        Span(5.0, 5.5, "save"),
        Span(5.5, 7.5, "useful"),
        Span(7.5, 8.0, "reschedule"),
        Span(8.0, 8.5, "load"),
        Span(8.5, 10.5, "lost"),
        Span(10.5, 13.5, "useful"),
        Span(13.5, 13.7, "save"),
        Span(13.7, 14.0, "reschedule"),
        Span(14.0, 19.0, "lost"),
    )
    assert sum(span.end_h - span.start_h for span in CPR.spans) == pytest.approx(CPR.end_h)
    assert FULL.failed_at_h == (7.5, 13.7)
    assert FULL.saved_at_h == (6.0,)
    assert FULL.background == ((5.5, 6.0),)
    assert FULL.abandoned_at_h == (13.7,)
    # to the start of the save that held, not of the one that the second failure broke off
    assert FULL.setbacks == (Setback(7.5, 5.0, False), Setback(13.7, 5.0, False))
    # a shard without a save goes back to the start
    assert CPR.setbacks == (Setback(7.5, 0.0, True),)


def test_the_close_up_shows_the_first_failure_and_the_way_back():
    start_h, end_h = close_up([FULL, CPR], 19.0)
    assert start_h < 7.5 < end_h
    assert end_h - start_h < 19 / 4
    calm = [(0.0, "started", "useful", 0.0, -1), (10.0, "finished", "over", 10.0, -1)]
    assert close_up([read_lane(hand.events(calm))], 10.0) is None


def test_what_lies_outside_a_window_is_not_drawn():
    lane = visible(FULL, (7.0, 11.0))
    assert lane.spans == FULL.spans[2:7]
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
