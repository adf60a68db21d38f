"""Results made by hand, as the figures get them: no simulation and no folder."""

from __future__ import annotations

from functools import partial
from math import inf
from pathlib import Path

import pandas as pd

from cprsim.plots.run import overhead_figure
from cprsim.plots.timeline import timeline_figure
from cprsim.recovery.policy import RELOAD, RESTART, ROLL_BACK
from cprsim.results.metrics import METRICS
from cprsim.results.run import Result
from tests.making import paper_policy

FULL = paper_policy("full", ROLL_BACK, 5.0, "young")
CPR = paper_policy("cpr_loose $x$", RELOAD, 40.0, "cpr")
NONE = paper_policy("none", RESTART, inf, "never saves")

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


def summary(overheads):
    """A summary with the given parts of overhead (or None: never finished) for each strategy."""
    rows = []
    for name, parts in overheads.items():
        total = None if parts is None else sum(parts.values())
        for quantity in METRICS:
            mean = total if quantity == "overhead_fraction" else (parts or {}).get(quantity, 0.0)
            mean = float("nan") if parts is None else mean
            rows.append((name, quantity, mean, 0.9 * mean, 1.1 * mean, 100))
        rows.append((name, "finished_fraction", float(parts is not None), 0.0, 1.0, 100))
    return pd.DataFrame(rows, columns=["strategy", "quantity", "mean", "low", "high", "n"])


OVERHEADS = {
    "full": {"save": 0.04, "lost": 0.05, "load": 0.01},
    "cpr_loose $x$": {"save": 0.002, "reschedule": 0.004},
}


def result(policies=(FULL, CPR), overheads=None, timeline=None):
    """A result as read back, made of what a test cares about."""
    made = Result(
        path=Path("nowhere"),
        manifest={},
        name="by hand",
        useful_h=10.0,
        n_nodes=8,
        timeline_replication=0,
        replay=None,
        policies=tuple(policies),
        replications=pd.DataFrame(),
        losses=pd.DataFrame(),
        timeline=(
            pd.concat([events(FULL_EVENTS), events(CPR_EVENTS, "cpr_loose $x$")])
            if timeline is None
            else timeline
        ),
    )
    vars(made)["summary"] = summary(overheads or OVERHEADS)  # not of its rows
    return made


def drawings(result):
    """What draws a result's figures, but for percentiles, which need replications."""
    return {
        "overhead": partial(overhead_figure, result),
        "timeline": partial(timeline_figure, result),
    }
