"""One small job for cases by hand: times are halves of halves, so that sums are exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cprsim.experiments.assemble import assemble
from cprsim.failures.distributions import Constant
from cprsim.present.systems_listing import MADE_UP_SCENARIO
from cprsim.records import Clock, Cluster, CostBreakdown, Costs, Holds, Role, Storage
from cprsim.recovery.legal import require_legal
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.policy import Policy, Reach, Scope
from cprsim.recovery.system import JobFacts
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.reading import load_scenario
from cprsim.scenario.recovery import options_of
from cprsim.simulate.blocks import BlockDraws, run_block
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures

OF_LITERATURE = [name for name in SYSTEMS if name not in STRATEGIES]
DETECT_H, RESCHEDULE_H, LOAD_H = 0.25, 0.5, 2.0
SNAPSHOT_H, PERSIST_H, COPY_H, STEP_H = 0.125, 0.5, 0.25, 0.0625
REPAIR_H = 8.0
SCOPES = (
    Scope("process", Reach.PROCESS, Constant(DETECT_H), needs_node=False),
    Scope("restart", Reach.NODE, Constant(DETECT_H), needs_node=False),
    Scope("node", Reach.NODE, Constant(DETECT_H)),
    Scope("rack", Reach.RACK, Constant(DETECT_H)),
    Scope("all", Reach.ALL, Constant(DETECT_H)),
)
PROCESS, RESTART, NODE, RACK, ALL = range(5)
BACK = {"detect": DETECT_H, "reschedule": RESCHEDULE_H}


COSTS = Costs(
    save_stall=Constant(SNAPSHOT_H),
    load=Constant(LOAD_H),
    detect=Constant(DETECT_H),
    reschedule=Constant(RESCHEDULE_H),
    save_background=Constant(PERSIST_H),
    storage=Storage(8.0),
)


def facts(n_nodes: int = 8, **changes: Any) -> JobFacts:
    """A job of 16 h; a node's state goes to a peer in `COPY_H`, all of it outside in 1 h."""
    own = {key: changes.pop(key) for key in COSTS.__slots__ if key in changes}
    return replace(
        JobFacts(
            useful_h=16.0,
            cluster=Cluster((Role("worker", n_nodes, Holds.SHARD),)),
            role="worker",
            scopes=SCOPES,
            mtbf_h=64.0,
            costs=replace(COSTS, **own),
            step_h=STEP_H,
            state_bytes=1.0,
            node_bytes_per_h=1.0 / COPY_H,
            replicas=n_nodes,
        ),
        **changes,
    )


def every_system_s_job() -> JobFacts:
    """The made-up job of the listing, which all systems can serve."""
    made_up = load_scenario("made up", text=MADE_UP_SCENARIO)
    return assemble(made_up, with_policies=False).facts


def planned(system: str, job: JobFacts | None = None, **options: object) -> Policy:
    """The system's policy; options are numbers as the system reads them [h, bytes/h]."""
    job = facts() if job is None else job
    known = SYSTEMS[system]
    policy = known.plan(job, replace(options_of(system, {}), **options), system)
    require_legal(policy, job.cluster, job.scopes)
    return policy


def ran(
    policy: Policy,
    failures: Any,
    job: JobFacts,
    n_replications: int = 1,
    horizon_h: float | None = None,
) -> CostBreakdown:
    simulated = SimulatedJob(
        horizon_h or job.useful_h, job.cluster, Clock.WALL, job.scopes, policy, horizon_h
    )
    n = range(n_replications)
    return run_block(simulated, failures, BlockDraws(simulated, 0, 0, len(n), n), n).costs


def spent(
    policy: Policy,
    *struck: tuple[float, Sequence[int], int],
    job: JobFacts | None = None,
    scopes: tuple[Scope, ...] = SCOPES,
) -> dict[str, float]:
    """Hours of one replication by part, for failures (wall hour, slots, scope); none of 0 h."""
    failures = tuple(
        ScopedFailure(at_h, tuple(slots), scope, (REPAIR_H,) * len(slots))
        for at_h, slots, scope in struck
    )
    costs = ran(policy, GivenFailures((failures,)), replace(job or facts(), scopes=scopes))
    assert costs.finished.all()
    np.testing.assert_allclose(costs.useful_h + costs.hours.sum(axis=1), costs.wall_h, rtol=1e-9)
    named = zip(costs.parts, costs.hours[0].tolist(), strict=True)
    return {part: hours for part, hours in named if hours > 1e-12}


def approx(value: object) -> object:
    return pytest.approx(value, abs=1e-9)
