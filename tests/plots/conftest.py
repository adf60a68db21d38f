"""Logs of events by hand, as the timeline gets them."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from cprsim.recovery.policy import RELOAD, ROLL_BACK
from tests.making import paper_policy

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
