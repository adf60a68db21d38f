"""Saves on notice: for failures that are announced alone, and at an interval besides."""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import pytest

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from tests.recovery.systems.by_hand import SCOPES, SNAPSHOT_H, approx, facts, planned

ANNOUNCED = tuple(replace(scope, notice_h=0.5) for scope in SCOPES)


def test_it_saves_on_notice_and_at_youngs_interval() -> None:
    job = facts(scopes=ANNOUNCED)
    on_notice, besides = planned("on-notice", job).captures
    assert (on_notice.on_notice, on_notice.every_h) == (True, None)
    assert (besides.on_notice, besides.every_h) == (False, approx(sqrt(2 * SNAPSHOT_H * 64)))


def test_besides_nothing_is_saved_where_the_interval_has_no_end() -> None:
    (on_notice,) = planned("on-notice", facts(scopes=ANNOUNCED), every=inf).captures
    assert on_notice.on_notice


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scopes": SCOPES}, "no failure is announced"),
        ({"scopes": ANNOUNCED, "save_stall": Constant(0.0)}, "give `every`"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        planned("on-notice", facts(**changes))
