"""Parity and codes: lost embedding rows, or training data, are rebuilt from other nodes.

ECRec stripes rows and optimiser state over k servers with m of parity, up to date in every step.
With PRM a reader's part of the data is rebuilt while the job waits; some samples are approximated.
"""

from __future__ import annotations

from typing import Any

from cprsim.errors import ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.options import POSITIVE, count, time
from cprsim.job.policy import (
    Groups,
    Medium,
    Policy,
    Reverts,
    Rule,
    Stage,
    StageKind,
    Tax,
    Tier,
)
from cprsim.recovery import building_blocks as build
from cprsim.recovery.building_blocks import LOAD, PUBLISHED, RECALLED, load_in, restart, row
from cprsim.recovery.system import Family, JobProfile

PARITY = "parity"


def ecrec(job: JobProfile, o: Any) -> Policy:
    size = build.in_groups(job, o.data + o.parity, "`data` and `parity` whose sum")
    stripe = Groups(size, o.parity)
    rebuild_h = _rebuild_h(job, o)
    down_h = job.replaced_h + rebuild_h
    every_h = o.backstop or build.backstop_h(job, stripe, down_h, neighbours=True)
    rebuilt = restart(job, Stage(StageKind.REBUILD, Constant(rebuild_h), blocks=False))
    return build.with_backstop(
        o,
        job,
        build.go_on(PARITY, rebuilt, speed_meanwhile=o.speed_meanwhile),
        Tier(PARITY, Medium.DEVICE, stripe, job.role),
        every_h,
        tax=Tax(compute=o.tax, memory=o.parity / o.data),
    )


def _rebuild_h(job: JobProfile, o: Any) -> float:
    """How long lost rows take: k shards over the link, or to be computed where that is slower."""
    if o.rebuild is not None:
        if o.encoding is not None:
            raise ParameterError("`rebuild` and `encoding` both say how long a rebuild takes")
        return float(o.rebuild)
    state_bytes, read_h = job.needed("state_bytes", "without `rebuild` it"), job.to_peers_h(o.data)
    if o.encoding is None:
        return read_h
    return float(max(read_h, o.data * state_bytes / o.encoding))


def prm(job: JobProfile, o: Any) -> Policy:
    roles = [role.name for role in job.cluster.roles]
    if o.readers not in roles or o.readers == job.role:
        raise ParameterError(
            f"it rebuilds the data of readers, and no other role of the job is called "
            f"`{o.readers}`: give `cluster.others`, as {{{o.readers}: 12}}"
        )
    every_h = o.every or build.own_interval_h(job)
    rebuilt = load_in((1.0 - o.less) * o.rebuild)
    back = Reverts.STRUCK if o.model == "struck" else Reverts.ALL
    return Policy(
        o.name,
        rules=(
            Rule(Reverts.NOBODY, restart(job, rebuilt), roles=(o.readers,)),
            Rule(back, restart(job, LOAD), sources=(build.REMOTE,)),
        ),
        tiers=(build.remote_tier(job, None if o.load is None else Constant(o.load)),),
        captures=(build.remote_capture(job, every_h),),
    )


SYSTEMS = (
    row(
        "ecrec", "data parity tax encoding backstop speed_meanwhile rebuild", ecrec, {},
        "PVLDB'23", PUBLISHED,
        "parity of the embedding shards, up to date in every step; lost shards are rebuilt while "
        "the job continues",
        source="Liu et al. 2021 and PVLDB 2023: mechanism and speed published; backstop assumed",
        overrides={
            "rebuild": time(
                "how long a rebuild takes; default: k shards over the link of a server"
            ),
            "parity": count("servers of parity that a stripe has on top, m", 1, POSITIVE),
        },
        interval="backstop", family=Family.PARITY,
        assumed="saves against losses of more than the parity, which are no part of ECRec. The "
        "servers of a stripe are neighbours. A failure of another role's node is charged a rebuild "
        "too.",
        not_modelled="rows that are asked for before they are rebuilt; what encoding takes of the "
        "servers.",
    ),
    row(
        "prm", "rebuild every less readers model load", prm, {}, "IWQoS'22", RECALLED,
        "readers rebuild the training data that a lost one held, some of it approximated",
        source="PRM (IWQoS 2022): savings published in its abstract, mechanism recalled",
        interval="every", family=Family.PARITY,
        not_counted="the accuracy loss of approximated samples is unknown",
        assumed="a rebuild takes as long for one reader as for several. Saves are the job's own, "
        "for all failures, those of readers too.",
        not_modelled="network traffic of a rebuild; saves of the readers' positions; "
        "samples that are read again.",
    ),
)  # fmt: skip
