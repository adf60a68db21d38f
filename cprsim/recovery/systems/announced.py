"""Failures that are announced: saves on notice, work that moves away, standbys that take over."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

from cprsim.errors import ParameterError
from cprsim.files.units import TIME
from cprsim.job.intervals import young_h
from cprsim.job.options import EVERY, POSITIVE, time
from cprsim.job.policy import Policy, SaveSchedule, Tax, WhenBusy
from cprsim.recovery import building_blocks as build
from cprsim.recovery.building_blocks import DETECT, LOAD, PUBLISHED, RECALLED, WAIT, row
from cprsim.recovery.system import Family, JobProfile
from cprsim.recovery.systems.memory import standbys_of

ENOUGH = 0.99  # of the time there are standbys; assumed
ON_NOTICE = "on notice"
OTHERS_TIER = "others"


def on_notice(job: JobProfile, o: Any) -> Policy:
    if not any(scope.notice_h > 0.0 for scope in job.scopes):
        raise ParameterError("no failure is announced: give `notice` to one of `scopes`")
    every_h = young_h(job.stall_h, job.mtbf_h) if o.every is None else o.every
    if not every_h > 0.0:
        raise ParameterError("saves cost nothing, so that Young's rule gives none: give `every`")
    remote = build.remote_tier(job)
    besides = SaveSchedule(
        build.REMOTE, every_h, stall=job.save_stall, background=job.save_background
    )
    saves = replace(besides, tier=ON_NOTICE, every_h=None, when_busy=WhenBusy.SKIP, on_notice=True)
    return Policy(
        o.name,
        rules=(build.go_back(build.restart(job, LOAD), ON_NOTICE, build.REMOTE),),
        tiers=(replace(remote, name=ON_NOTICE), remote),
        captures=(saves, besides) if every_h < inf else (saves,),
    )


def parcae(job: JobProfile, o: Any) -> Policy:
    in_time, every_h = _announced(job, o, o.migrate)
    if not in_time:
        raise ParameterError(
            f"it moves work away in {TIME.format(o.migrate)}, and no failure is announced as long "
            "before: give `notice` to one of `scopes`"
        )
    moved = build.regroup(o.migrate)
    back = (*build.meanwhile(job, each=True), *build.until_it_grows(o.grows), moved)
    rule = build.go_on(OTHERS_TIER, (moved, *back), scopes=in_time)
    others_tier = build.live_tier(job, OTHERS_TIER, job.n_nodes)
    return build.with_backstop(o, job, rule, others_tier, every_h, elastic=build.elastic_of(job, o))


def trainmover(job: JobProfile, o: Any) -> Policy:
    in_time, every_h = _announced(job, o, o.prepare)
    moved = build.regroup(o.downtime)
    unforeseen = build.go_back((DETECT, WAIT, moved, LOAD), build.REMOTE)
    announced = build.go_on(OTHERS_TIER, (WAIT, moved), scopes=in_time)
    others_tier = build.live_tier(job, OTHERS_TIER, job.n_nodes)
    tax = Tax(nodes=standbys_of(job, ENOUGH, at_least=1))
    policy = build.with_backstop(o, job, announced, others_tier, every_h, unforeseen, tax=tax)
    return policy if in_time else replace(policy, rules=(unforeseen,), tiers=policy.tiers[1:])


def _announced(job: JobProfile, o: Any, least_h: float) -> tuple[tuple[str, ...], float]:
    """Scopes with a warning of at least `least_h`, and the save interval for all others [h]."""
    in_time = [scope for scope in job.scopes if scope.notice_h > 0.0 and scope.notice_h >= least_h]
    unannounced = job.striking([scope for scope in job.scopes if scope not in in_time])
    names = tuple(scope.name for scope in in_time)
    return names, o.every or build.own_interval_h(unannounced)


UNANNOUNCED = time(f"{EVERY}Young's for unannounced failures", bound=POSITIVE)
_row = partial(row, interval="every", family=Family.AFTERWARDS)
SYSTEMS = (
    _row(
        "on-notice", "every", on_notice, {}, "spot nodes", None,
        "saves when a failure is announced, besides at an interval",
        source="spot and preemptible nodes; no figure of a paper",
        overrides={
            "every": time(
                "progress between saves besides; default: Young's, as if there were no notice"
            )
        },
        runs_as="Lightning, Orbax",
        assumed="a save on notice costs as much as any other; work continues until the failure.",
        not_modelled="moving the work to another node before the failure.",
    ),
    _row(
        "parcae", "throughput grows migrate every", parcae, {}, "NSDI'24", RECALLED,
        "work is moved away from nodes before they leave, on notice",
        source="Parcae (Duan et al. 2024, NSDI): mechanism recalled",
        overrides={"every": UNANNOUNCED},
        assumed="the migration is charged as the node goes, not as it is announced, which changes "
        "no hours. Without a table of throughput speed is in proportion to the nodes left. Saves "
        "are the job's own.",
        not_modelled="the forecast of instances, by which Parcae chooses a shape that lasts.",
    ),
    _row(
        "trainmover", "downtime prepare every", trainmover, {}, "OSDI'26", PUBLISHED,
        "standbys replace nodes that fail; in the background if the failure is announced",
        source="TrainMover (Lao et al., OSDI 2026): mechanism and downtime published, saves "
        "assumed",
        overrides={"every": UNANNOUNCED},
        assumed="after other failures the job rolls back to its own saves. Standbys are the job's "
        "spares, by default enough for 99 % of the time until a lost node is replaced. The node "
        "that leaves first copies its state: a shorter notice is ignored.",
        not_modelled="machines lent by jobs of less importance; what preparing a standby takes of "
        "the network.",
    ),
)  # fmt: skip
