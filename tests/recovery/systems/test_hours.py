"""What failures cost under each system, by hand."""

from typing import Any

import pytest

from tests.recovery.lives import approx
from tests.recovery.systems.by_hand import (
    BACK,
    COPY_H,
    DETECT_H,
    LOAD_H,
    PERSIST_H,
    RESCHEDULE_H,
    SNAPSHOT_H,
    STEP_H,
    planned,
    spent,
)

Options = dict[str, Any]
Hours = dict[str, float]

AT_H = 5.3125 + STEP_H / 4  # a quarter of a step is done
AT_NODE = f"{AT_H} node"
AT_RACK = f"{AT_H} rack"
ALL_8 = "0 1 2 3 4 5 6 7"
SINCE_H = AT_H - SNAPSHOT_H - 4.0  # since the content of 4 h
STEP = {"lost": STEP_H / 4}
SAVED = {"every": 4.0}
NO_SAVES = {"backstop": 16.0}  # as long as the job
RECONFIGURE_H, MOVE_H = 0.125, 0.0625
LEFT = {"reconfigure": RECONFIGURE_H} | NO_SAVES
LEFT_OUT = STEP | {"detect": DETECT_H, "regroup": 2 * RECONFIGURE_H}
MASKED = STEP | {"detect": DETECT_H, "regroup": RECONFIGURE_H}
ABSENT_H = RESCHEDULE_H + COPY_H  # hours in which the other replica groups work
SAVES_H = 4 * SNAPSHOT_H + PERSIST_H  # at the end the job waits for the last to be written
SWIFT = SAVED | {"replay_speed": 2.0}
HSDP = {"group": 2, "stall": RECONFIGURE_H} | NO_SAVES
HSDP_4 = {"group": 4, "stall": MOVE_H} | NO_SAVES
ALL_HOURS: list[tuple[str, Options, str, Hours]] = [
    # written behind: the first save holds 4 h, stalls until 4.125 and is there from 4.625 on
    ("async", SAVED, "4.75 node 0", BACK | {"load": LOAD_H, "lost": 0.625, "save": SAVES_H}),
    ("async", SAVED, "4.5 node 0",
     BACK | {"load": LOAD_H, "lost": 4.375, "save": SAVES_H + SNAPSHOT_H}),
    ("datastates", SAVED, "", {"save": SAVES_H - 3 * STEP_H}),  # hidden but the last
    # each takes .625 h from its start, which is two intervals: there is room for two
    ("pccheck", {"every": 0.3125}, "", {}),
    ("portus", {**SAVED, "server": 1e9}, "4.75 node 0",
     BACK | {"load": COPY_H, "save": 4 * (COPY_H - STEP_H) + STEP_H,
             "lost": 4.75 - (COPY_H - STEP_H) - 4.0}),
    ("lc-checkpoint", SAVED, "4.75 node 0",
     BACK | {"load": LOAD_H / 28, "lost": 0.625, "save": 4 * SNAPSHOT_H + PERSIST_H / 28}),
    # a step in hand is retried
    ("just-in-time", NO_SAVES, f"{AT_NODE} 0",
     BACK | STEP | {"save": SNAPSHOT_H + PERSIST_H, "load": LOAD_H}),
    ("just-in-time", NO_SAVES | {"group": 4}, f"{AT_RACK} 0 4",  # both of a shard
     BACK | {"lost": AT_H, "load": LOAD_H}),
    ("flashrecovery", NO_SAVES, f"{AT_NODE} 0", BACK | STEP | {"load": COPY_H}),
    ("checkmate", {"shadow_nodes": 3}, f"{AT_H} all {ALL_8}", BACK | STEP | {"load": COPY_H}),
    ("swift-undo", NO_SAVES, f"{AT_H + STEP_H / 2} node 0",
     BACK | {"lost": STEP_H, "load": COPY_H}),
    # the struck replay; with its log, on the next node, everybody goes back
    ("swift", SWIFT, f"{AT_NODE} 0",
     BACK | {"replay": SINCE_H / 2, "load": LOAD_H, "save": SAVES_H}),
    ("swift", SWIFT, f"{AT_RACK} 3 4", BACK | {"lost": SINCE_H, "load": LOAD_H, "save": SAVES_H}),
    # lost nodes are left out: two reconfigurations, and speed
    ("bamboo", LEFT, f"{AT_NODE} 0", LEFT_OUT | {"degraded": RESCHEDULE_H / 8}),
    ("bamboo", LEFT | {"throughput": (10.0, 9.5)}, f"{AT_NODE} 0",
     LEFT_OUT | {"degraded": 0.05 * RESCHEDULE_H}),
    ("bamboo", LEFT | {"tax": 0.25}, "", {"tax": 4.0}),  # it computes twice all the time
    ("lazarus", LEFT | {"copies": 2}, f"{AT_NODE} 0", LEFT_OUT | {"degraded": RESCHEDULE_H / 8}),
    ("recycle", LEFT | {"pipelines": 2}, f"{AT_NODE} 0",
     LEFT_OUT | {"degraded": RESCHEDULE_H / 2}),
    # SPARe: one more stack, however many are missing; both shards of the lost one are copied
    *(("spare", {"stacked": 2, "regroup": RECONFIGURE_H} | NO_SAVES, f"{AT_RACK} {slots}",
       MASKED | {"degraded": (RESCHEDULE_H + 2 * COPY_H) / 2}) for slots in ("0", "0 2 4 6")),
    # replica groups: the groups that are left retry the step, or stall
    ("torchft", {"group": 2, "quorum": RECONFIGURE_H} | NO_SAVES, f"{AT_NODE} 0",
     MASKED | {"degraded": ABSENT_H / 4}),
    ("hsdp", HSDP, f"{AT_RACK} 2 3",  # a group
     {"regroup": RECONFIGURE_H, "degraded": ABSENT_H / 4}),
    ("hsdp", HSDP | {"copy": 1.0}, f"{AT_RACK} 3 4",
     {"regroup": RECONFIGURE_H, "degraded": 2 * (RESCHEDULE_H + 1.0) / 4}),
    ("hsdp", HSDP | {"speed": 0.5}, f"{AT_RACK} 2 4",
     {"regroup": RECONFIGURE_H, "wait": ABSENT_H}),  # without two groups it stands still
    # 2 groups of 4: 1 and 5 hold the same shard, until the first has copied the state again
    ("hsdp", HSDP_4, "5 node 1, 5.5 node 5",
     BACK | {"regroup": MOVE_H, "load": LOAD_H, "lost": 5.0 + (0.5 - MOVE_H) / 2,
             "degraded": (0.5 - MOVE_H) / 2}),
    ("hsdp", HSDP_4, "5 node 1, 6 node 5", {"regroup": 2 * MOVE_H, "degraded": 2 * ABSENT_H / 2}),
    # a copy of .25 h takes 4 steps; the one of 5 h is complete at 5.25
    ("gemini", {"remote_every": 16.0}, f"{AT_NODE} 2",
     BACK | {"load": COPY_H, "save": COPY_H, "lost": AT_H - 5.0}),
    ("gemini", {"remote_every": 16.0}, "5.125 node 2",
     BACK | {"load": COPY_H, "save": COPY_H, "lost": 5.125 - 4.75}),
]  # fmt: skip


@pytest.mark.parametrize(("system", "options", "struck", "hours"), ALL_HOURS)
def test_hours(system: str, options: Options, struck: str, hours: Hours) -> None:
    parts = spent(planned(system, **options), struck)
    assert parts == approx({"useful": 16.0} | hours)
