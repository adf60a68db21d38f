"""GEMINI: each machine's shard is copied to the host memory of peers, every step where that fits.

The state of a machine goes to m - 1 others over its own link, in the hours in which training leaves
that idle, so that m machines hold each shard. If all machines keep their memory, the job is
recovered from there; else from peers, each shard over one link; and only where all m holders of a
shard are lost from the remote storage, which is saved to in the background each 3 h (Wang et al.
2023; mechanism and 3 h published).

Assumptions: a machine copies to its own memory, and reads it, in no time beside the transfers;
saves to the remote storage slow neither the training nor the copies to peers.

Not modelled: copies cut into pieces so that they fit the gaps between collectives; a wrong profile
of those gaps.
"""

from __future__ import annotations

from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Duration
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.policy import (
    OWN,
    Capture,
    Groups,
    Medium,
    Policy,
    Reverts,
    Ring,
    Rule,
    Stage,
    StageKind,
    Tax,
    Tier,
    WhenBusy,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

OWN_OPTIONS = {
    "copies": Option(2, "count", "machines that hold each shard, its own included"),
    "placement": Option(
        "group", "word", "`group`: all of a group hold its shards; `ring`: the next machines do"
    ),
    "every": Option(
        None, "time", "progress between copies to peers; default: the fewest steps that one fits in"
    ),
    "idle": Option(None, "time", "how long a machine's link is free in a step; default: all of it"),
    "remote_every": Option(
        3.0, "time", "progress between saves to the remote storage; at least what one takes"
    ),
}


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    placement = placed(facts, o)
    every_h, stall_h, background_h = copying(facts, o)
    if not o.remote_every > 0.0:
        raise ParameterError(f"`remote_every` is {o.remote_every} h; it must be positive")
    to_remote = saved_remotely(facts)
    reload = pieces.restart(facts, pieces.LOAD)
    fetch = pieces.restart(facts, Stage(StageKind.LOAD, facts.to_peer("gemini")))
    return Policy(
        name,
        rules=(
            Rule(Reverts.ALL, reload, needs=("own memory",), sources=("peers",)),
            Rule(Reverts.ALL, fetch, sources=("peers",)),
            pieces.back_to_remote(facts),
        ),
        tiers=(
            Tier("own memory", Medium.HOST, OWN, facts.role),  # live: wherever it was not lost
            Tier("peers", Medium.HOST, placement, facts.role),
            pieces.remote_tier(facts),
        ),
        captures=(  # two in flight: one that ends as the next begins does not delay it
            Capture(
                "peers", every_h, stall=Constant(stall_h), background=Constant(background_h),
                in_flight=2,
            ),
            Capture(
                "remote", max(o.remote_every, to_remote.mean_h), background=to_remote,
                in_flight=2, when_busy=WhenBusy.SKIP,
            ),
        ),
        tax=Tax(memory=float(o.copies)),
    )  # fmt: skip


def placed(facts: JobFacts, o: Any) -> Groups | Ring:
    """Where the copies lie; raises ParameterError where the job has no room for them."""
    n, m = facts.n_nodes, o.copies
    if not 2 <= m <= n:
        raise ParameterError(
            f"`copies` is {m}; it must be at least 2, of which one is the machine's own, and at "
            f"most {n}, the nodes of `{facts.role}`"
        )
    if o.placement == "ring":
        return Ring(m)
    if o.placement != "group":
        raise ParameterError(f"`placement` is `{o.placement}`; it is `group` or `ring`")
    if n % m:
        raise ParameterError(
            f"{n} nodes of `{facts.role}` make no groups of {m}: give a number of `copies` that "
            "divides them, or `placement: ring`"
        )
    return Groups(m, m - 1)


def copying(facts: JobFacts, o: Any) -> tuple[float, float, float]:
    """Progress between copies to peers, and what one stalls and takes in the background [h].

    B bytes over a link r stall the job for ``max(0, B/r - h)``, h the hours of an interval in which
    the link is free (published, and so in three systems). The rest is spread over the interval: it
    takes longer by as much as training has the link.
    """
    copy_h = facts.to_peer("gemini", o.copies - 1).mean_h
    if o.every is not None and not o.every > 0.0:
        raise ParameterError(f"`every` is {o.every} h; it must be positive")
    free = 1.0
    if o.idle is not None:
        step_h = facts.needed("step_h", "`idle` of gemini")
        free = o.idle / step_h
        if not 0.0 < free <= 1.0:
            raise ParameterError(
                f"`idle` is {o.idle} h; it must be positive and at most a step, {step_h} h"
            )
    every_h = o.every
    if every_h is None:
        step_h = facts.needed("step_h", "gemini without `every`")
        every_h = step_h * pieces.nth_that_fits(copy_h, free * step_h)
    stall_h = max(0.0, copy_h - free * every_h)
    return every_h, stall_h, min(every_h, (copy_h - stall_h) / free)


def saved_remotely(facts: JobFacts) -> Duration:
    """What a save to the remote storage takes: by bytes, else all of what one of this job takes."""
    if facts.remote_bytes_per_h is not None:
        return facts.to_remote("gemini")
    if facts.save_background is None:
        return facts.save_stall
    return Constant(facts.save_stall.mean_h + facts.background_h)


SYSTEM = System(
    "gemini",
    "copies of each shard in peers' host memory, each step where that fits, before remote saves",
    "Wang et al. 2023: mechanism and the interval of remote saves published",
    options("", OWN_OPTIONS), plan, interval="remote_every", family=Family.MEMORY, cited="SOSP'23",
    mark=Provenance.PUBLISHED, runs_as="HyperPod tiered checkpoints",
)  # fmt: skip
