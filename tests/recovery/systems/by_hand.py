"""One small job for cases by hand: times are halves of halves, so that sums are exact.

Failures are words (`tests.simulators.failures`).
"""

from dataclasses import replace
from typing import Any

import pytest

from cprsim.commands.systems.listing import MADE_UP_SCENARIO
from cprsim.job.distributions import Constant
from cprsim.job.legal import require_legal
from cprsim.job.policy import Policy, Reach, Scope
from cprsim.job.records import Clock, Cluster, Costs, Holds, Role, Storage
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.system import JobProfile
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from cprsim.simulation.job import ScopedFailure, SimulatedJob
from tests.simulators import draws_of, failures, ran

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
BACK = {"detect": DETECT_H, "reschedule": RESCHEDULE_H}


COSTS = Costs(
    save_stall=Constant(SNAPSHOT_H),
    load=Constant(LOAD_H),
    detect=Constant(DETECT_H),
    reschedule=Constant(RESCHEDULE_H),
    save_background=Constant(PERSIST_H),
    storage=Storage(8.0),
)


def facts(n_nodes: int = 8, **changes: Any) -> JobProfile:
    """A job of 16 h; a node's state goes to a peer in `COPY_H`, all of it outside in 1 h."""
    costs = {key: changes.pop(key) for key in COSTS.__slots__ if key in changes}
    return replace(
        JobProfile(
            useful_h=16.0,
            cluster=Cluster((Role("worker", n_nodes, Holds.SHARD),)),
            role="worker",
            scopes=SCOPES,
            mtbf_h=64.0,
            costs=replace(COSTS, **costs),
            step_h=STEP_H,
            state_bytes=1.0,
            node_bytes_per_h=1.0 / COPY_H,
            replicas=n_nodes,
        ),
        **changes,
    )


def every_system_s_job() -> JobProfile:
    """The made-up job of the listing, which all systems can serve."""
    made_up = load_scenario("made up", text=MADE_UP_SCENARIO)
    return assemble(made_up, with_policies=False).facts


def planned(system: str, job: JobProfile | None = None, **options: object) -> Policy:
    """The system's policy; options are numbers as the system reads them [h, bytes/h]."""
    job = facts() if job is None else job
    recovery_system = SYSTEMS[system]
    policy = recovery_system.plan(job, options, system)
    require_legal(policy, job.cluster, job.scopes)
    return policy


def spent(
    policy: Policy, struck: str | list[ScopedFailure] = "", job: JobProfile | None = None
) -> dict[str, float]:
    """Hours of one replication by part, useful ones too; none of 0 h."""
    job = facts() if job is None else job
    simulated = SimulatedJob(job.useful_h, job.cluster, Clock.WALL, job.scopes, policy)
    if isinstance(struck, str):
        struck = failures(struck, [scope.name for scope in job.scopes], REPAIR_H)
    outcome = ran("loop", simulated, struck, draws_of(simulated))
    assert outcome.finished
    assert outcome.n_failures == len(struck)
    assert outcome.useful_h + sum(outcome.hours) == pytest.approx(outcome.wall_h, rel=1e-9)
    by_part = {"useful": outcome.useful_h} | dict(zip(policy.parts, outcome.hours, strict=True))
    return {part: hours for part, hours in by_part.items() if hours > 1e-12}
