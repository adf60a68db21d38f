"""Oobleck, Varuna and Bamboo up to a wall horizon, by hand; the artifact is in `systems`."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Cluster, Holds, Role
from cprsim.recovery.policy import Reach, Scope
from cprsim.simulate.job import ScopedFailure
from cprsim.simulate.strikes import GivenFailures
from tests.recovery.systems.by_hand import facts, planned, ran

NODE = Scope("node", Reach.NODE, Constant(0.0))
PROCESS = Scope("process", Reach.PROCESS, Constant(0.0), needs_node=False)
Loss = tuple[float, tuple[int, ...], tuple[float, ...]]  # wall hour, slots, hours until repaired
LOST: list[Loss] = [(1.125, (2,), (inf,)), (3.125, (0,), (inf,))]
# as on a spot market: one node leaves, two leave at once; each comes back on its own
SPOT: list[Loss] = [(1.0, (0,), (2.0,)), (2.0, (1, 2), (1.5, 3.0))]
TWO: list[Loss] = [(1.0, (0,), (1.0,)), (4.0, (1,), (1.0,))]  # each is back an hour later
AT_ONCE, FREE = {"grows": "at once"}, {"reconfigure": 0.0}
SLOW = {"step_h": 0.125, "reschedule": Constant(0.25), "load": Constant(0.5)}
RUNS: dict[str, tuple[str, dict[str, Any], dict[str, Any], list[Loss], float, dict[str, float]]] = {
    # 1.125 h at full speed, back to 1; .5 h; from 1.625 on at half of it, so that 1.75 h are done
    # at 3.125, which is a step's beginning; .5 h; from 3.625 on at a quarter
    "loses the step in hand and goes on": (
        "oobleck", {"throughput": (8.0, 4.0, 2.0), "reconfigure": 0.5}, {}, LOST, 6.0,
        {"useful": 1.75 + 2.375 / 4, "lost": 0.125, "regroup": 1.0,
         "degraded": 1.5 / 2 + 2.375 * 3 / 4},
    ),
    # a reconfiguration, 2 h after the failure a node, its start, another reconfiguration
    "stands still below its table": (
        "oobleck", {"throughput": (1.0,), "reconfigure": 0.5},
        {"n_nodes": 2, "reschedule": Constant(0.25)}, [(1.0625, (1,), (2.0,))], 5.0,
        {"useful": 5.0 - 1.0 - 1.75 - 0.0625, "regroup": 1.0, "wait": 2.0 - 0.5 + 0.25,
         "lost": 0.0625},
    ),
    "takes a node in at once where it stands still": (
        "oobleck", FREE | {"throughput": (1.0,)}, {"n_nodes": 2}, [(1.0, (1,), (2.0,))], 6.0,
        {"useful": 4.0},
    ),
    "without any node goes back to the start": (
        "oobleck", {}, {"n_nodes": 2, "mtbf_h": inf}, [(1.375, (0, 1), (0.5, 0.5))], 4.0,
        {"lost": 1.375, "wait": 0.5},
    ),
    "or to a save": (
        "oobleck", {"every": 0.5}, {"n_nodes": 2, "mtbf_h": inf}, [(1.375, (0, 1), (0.5, 0.5))],
        4.0, {"lost": 0.375, "wait": 0.5},
    ),
    "is no slower after the failure of a process": (
        "oobleck", AT_ONCE | {"reconfigure": 0.25}, {"scopes": (PROCESS,)},
        [(1.125, (2,), (inf,))], 4.0, {"useful": 4.0 - 0.125 - 2 * 0.25},
    ),
    # 1 h at full speed; a reconfiguration; .75 h at 6/8, of which .0625 are lost; another; .75 h at
    # 2/8 to 3 h, when the first is back; another; .25 h at 4/8 to 3.5 h, when the second is;
    # another; 1.25 h at 6/8 to 5 h, when the third is; a last one, and .75 h at full speed
    "takes nodes that left together back one by one": (
        "oobleck", AT_ONCE | {"throughput": (8.0, 6.0, 4.0, 2.0), "reconfigure": 0.25}, {}, SPOT,
        6.0, {"useful": 1.5 + 0.75 / 4 + 0.25 / 2 + 1.25 * 0.75 + 0.75, "regroup": 5 * 0.25,
              "lost": 0.0625},
    ),
    # 1 h; a reconfiguration; 1.75 h at 6/8 (.0625 h of a step are lost); another, after which one
    # is missing still; 2.75 h at 6/8, though the second node is back as well
    "takes nodes in at the next loss with its reconfiguration": (
        "oobleck", {"throughput": (8.0, 6.0, 4.0), "reconfigure": 0.25}, {},
        [(1.0, (0,), (0.5,)), (3.0, (1,), (0.5,))], 6.0,
        {"useful": 1.0 + 0.75 * 4.5 - 0.0625, "lost": 0.0625, "regroup": 0.5},
    ),
    # 1 h, a save, .75 h that are lost, a restart; 3.5 h at half speed less a save
    "varuna goes back to its last save": (
        "varuna", {"throughput": (8.0, 4.0), "every": 1.0, "restart": 0.5},
        {"step_h": 0.125, "save_stall": Constant(0.25)}, [(2.0, (3,), (inf,))], 6.0,
        {"useful": 1.0 + (3.5 - 0.25) / 2, "save": 2 * 0.25, "regroup": 0.5, "lost": 0.75},
    ),
    "varuna restarts in the job's rescheduling and load": (
        "varuna", {}, SLOW, [(0.5, (3,), (inf,))], 6.0, {"reschedule": 0.25, "load": 0.5},
    ),
    # 3/4 of the speed while a node is missing; no reconfiguration takes time, no step is in hand
    "at once": ("oobleck", FREE | AT_ONCE, {}, TWO, 8.0, {"useful": 8.0 - 2 / 4}),
    "each 3 h": ("oobleck", FREE | {"grows": 3.0}, {}, TWO, 8.0, {"useful": 8.0 - (2 + 2) / 4}),
    "bamboo at once": ("bamboo", {"backstop": 100.0}, {}, TWO, 8.0, {"useful": 8.0 - 2 / 4}),
    "varuna each 3 h": (
        "varuna", {"every": 0.01, "restart": 0.0, "grows": 3.0}, {}, TWO, 8.0, {"useful": 7.0},
    ),
    "bamboo at the next loss": (  # never both
        "bamboo", {"backstop": 100.0, "grows": "next loss"}, {}, TWO, 8.0, {"useful": 6.25},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RUNS)
def test_hours_up_to_a_horizon(case: str) -> None:
    system, options, changes, losses, horizon_h, expected = RUNS[case]
    n_nodes = changes.get("n_nodes", 4)
    known = {
        "useful_h": 100.0, "scopes": (NODE,), "step_h": 0.25, "save_stall": Constant(0.0),
        "save_background": None, "load": Constant(0.0), "reschedule": Constant(0.0),
        "cluster": Cluster((Role("worker", n_nodes, Holds.SHARD),), n_spares=0),
    }  # fmt: skip
    job = facts(**known | {"n_nodes": n_nodes} | changes)
    policy = planned(system, job, **options)
    given = tuple(ScopedFailure(at_h, slots, 0, repaired) for at_h, slots, repaired in losses)
    costs = ran(policy, GivenFailures((given,)), job, horizon_h=horizon_h)
    found = dict(zip(costs.parts, costs.hours[0].tolist(), strict=True))
    found["useful"] = float(costs.useful_h[0])
    assert {part: found[part] for part in expected} == pytest.approx(expected)
    assert costs.n_failures[0] == len(losses)
