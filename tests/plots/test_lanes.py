"""What the timeline reads out of an event log, against logs written by hand."""

from __future__ import annotations

import pytest

from cprsim.plots.lanes import Setback, Span, read_lane
from cprsim.plots.timeline import close_up


@pytest.fixture
def full(hand):
    return read_lane(hand.events(hand.full_events))


@pytest.fixture
def cpr(hand):
    return read_lane(hand.events(hand.cpr_events))


def test_neighbours_of_one_activity_are_one_span(full):
    assert full.spans == (
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


def test_spans_cover_the_whole_time(full, cpr):
    for lane in (full, cpr):
        assert sum(span.hours for span in lane.spans) == pytest.approx(lane.end_h)


def test_nodes_that_fail_together_are_one_mark(full):
    assert full.failed_at_h == (7.5, 13.7)


def test_saves_that_held_and_saves_that_did_not(full):
    assert full.saved_at_h == (6.0,)
    assert full.background == ((5.5, 6.0),)
    assert full.abandoned_at_h == (13.7,)


def test_a_rollback_leads_to_the_start_of_the_save_that_held(full):
    # not to the one that the second failure broke off
    assert full.setbacks == (Setback(7.5, 5.0, False), Setback(13.7, 5.0, False))


def test_a_shard_without_a_save_goes_back_to_the_start(cpr):
    assert cpr.setbacks == (Setback(7.5, 0.0, True),)


def test_whether_the_job_finished(full, hand):
    assert full.finished
    stopped = [*hand.full_events[:-1], (19.0, "stopped", "over", 10.0, -1)]
    assert not read_lane(hand.events(stopped)).finished


def test_the_close_up_shows_the_first_failure_and_the_way_back(full, cpr):
    start_h, end_h = close_up([full, cpr])
    assert start_h < 7.5 < end_h
    assert end_h - start_h < 19 / 4


def test_without_a_failure_there_is_no_close_up(hand):
    calm = [(0.0, "started", "useful", 0.0, -1), (10.0, "finished", "over", 10.0, -1)]
    assert close_up([read_lane(hand.events(calm))]) is None
