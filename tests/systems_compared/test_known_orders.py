"""Jobs whose best system is known by arithmetic: first order in the failures, by hand."""

from math import sqrt

import pytest

import cprsim

MINUTE = 1 / 60

JOB = """\
name: job
job: {{useful: 200 h, step: {step}}}
cluster: {{{cluster}, link: 100 Gbit/s}}
failures: {{kind: job, family: exponential, mtbf: {mtbf}, role: worker}}
scopes: [{{name: failure, share: 1, {failure}}}]
costs: {{{costs}}}
recovery: [full]
"""
WHOLE_JOB = JOB.format(
    step="10 s", cluster="workers: 8, replicas: 8, state: 10 GB", mtbf="20 h",
    failure="reach: all, detect: 0 s", costs="save: 6 min, load: 6 min, reschedule: 6 min",
)  # fmt: skip
REPLICAS = JOB.format(
    step="1 s", cluster="workers: 16, replicas: 16, state: 1 GB", mtbf="4 h",
    failure="reach: node, detect: 1 min", costs="save: 1 min, load: 1 min, reschedule: 10 min",
)  # fmt: skip
PROCESSES = JOB.format(
    step="10 s", cluster="workers: 32, state: 100 GB", mtbf="5 h",
    failure="reach: process, detect: 1 min",
    costs="save: {stall: 10 s, background: 5 min}, load: 5 min, reschedule: 1 min",
)  # fmt: skip


def young(stall_h: float, mtbf_h: float, back_h: float) -> float:
    """Overhead of saves at Young's interval, and of going back."""
    return sqrt(2 * stall_h / mtbf_h) + back_h / mtbf_h


BY_HAND = [
    # every failure strikes all replicas and all copies: what remains is a save outside. GEMINI's
    # is written beside the job, one after the other: half an interval and one save are lost.
    (WHOLE_JOB, {
        "gemini": (1.5 * 6 * MINUTE + 12 * MINUTE) / 20,
        "oobleck": young(6 * MINUTE, 20, 12 * MINUTE),
        "full": young(6 * MINUTE, 20, 12 * MINUTE),
    }),
    # hsdp: a stall of 3 min, 10 min at 15/16 of the speed; oobleck: detection, 2 s of
    # reconfiguration, half a step, and 15/16 up to the next loss, which takes the node in.
    # hsdp costs accuracy, which is not priced: the best is the next
    (REPLICAS, {
        "flashrecovery": (MINUTE + 10 * MINUTE + 0.5 / 3600) / 4,
        "hsdp": (3 * MINUTE + 10 * MINUTE / 16) / 4,
        "oobleck": (MINUTE + 2.5 / 3600) / 4 + 1 / 15,
        "full": young(MINUTE, 4, 12 * MINUTE),
    }),
    # memory outlives the processes: a step or two are lost from copies of each step (8 s of 10),
    # half of Young's interval from snapshots of 10 s; without them 5 min are read, and saves are
    # a snapshot and 5 min old at least
    (PROCESSES, {
        "gemini": (2 * MINUTE + 13 / 3600) / 5,
        "dlrover-flash": young(10 / 3600, 5, 2 * MINUTE),
        "async": young(10 / 3600, 5, 2 * MINUTE + 10 * MINUTE),
    }),
]  # fmt: skip


@pytest.mark.parametrize(("scenario", "by_hand"), BY_HAND, ids=["all", "replicas", "processes"])
def test_the_order_is_that_of_arithmetic(scenario: str, by_hand: dict[str, float]) -> None:
    found = cprsim.systems(scenario, only=[*by_hand], replications=400)
    systems = found.frames["systems"].set_index("system").drop("today", errors="ignore")
    overheads = systems["overhead_fraction"].to_dict()
    assert found.values["best"] == next(iter(by_hand))
    assert sorted(overheads, key=overheads.__getitem__) == sorted(
        by_hand, key=lambda name: by_hand[name] + overheads[name] * 1e-9
    )
    for name, overhead in by_hand.items():
        spread = systems["overhead_fraction_high"][name] - overheads[name]
        # the second order of failures during saves, loads and restarts is left out by hand
        assert overheads[name] == pytest.approx(overhead, rel=0.12, abs=2 * spread), name
