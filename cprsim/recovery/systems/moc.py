"""MoC-System: a save holds a few experts of each layer, in turn, and all that is no expert.

Of the N experts of a layer each save holds the next K, so that it takes
``1 - e + e K/N`` of the bytes of a whole one, e the share of the experts in the state: .86 by the
published shares 12 / 2 / 74 / 12 % of the state, of which the last two are the experts'. A save is
first a snapshot in the node's host memory, in the hours of one forward and backward pass, and then
goes to the remote storage. After a failure the job goes back to the newest content that is whole
in what is no expert; experts that were saved earlier are stale (MoC-System, ASPLOS 2025; shares
published, the rest of the mechanism secondary).

A snapshot of T_snap hours stalls the job for ``max(0, T_snap - T_window)``. With I between saves of
a job of I_tot and n_f failures of recovery R each that costs ``s I_tot/I + n_f (R + I/2)``, where
the hidden part of a snapshot is taken as nothing (secondary); here a snapshot is as old as it took.

Records of policies know no parts of the state with times of their own, so that what the hours show
follows from them, and how stale the experts are from the functions here: `expert_staleness`,
`mean_expert_staleness` and `portion_of_lost_tokens`.

Assumptions: costs that vary are taken at their mean; the stall of a snapshot comes before the part
of it that training hides, not behind it, which changes no hours; after a failure that wipes
a node's host memory all experts are loaded from the remote storage, also those that other nodes
still hold.

Not modelled: what stale experts cost in accuracy; parts of the state that different ranks save.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Floats
from cprsim.recovery import pieces
from cprsim.recovery.giving_up import ROUNDING
from cprsim.recovery.intervals import young_h
from cprsim.recovery.options import Option
from cprsim.recovery.policy import OWN, Capture, Medium, Policy, Reverts, Rule, Tax, Tier
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

EXPERT_SHARE = 0.74 + 0.12


OPTIONS = options(
    "every snapshot persist",
    {
        "experts": Option(None, "count", "experts of each layer; needed"),
        "saved_each": Option(1, "count", "experts of each layer that a save holds"),
        "expert_share": Option(EXPERT_SHARE, "share", "of the state's bytes, the experts'"),
        "window": Option(
            None, "time", "of a forward and backward pass, which hides a snapshot; default: a step"
        ),
    },
)


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    if o.experts is None:
        raise ParameterError("moc saves a few experts in turn: give `experts`, those of a layer")
    pieces.require_positive("moc", every=o.every)
    pieces.require_not_negative("moc", snapshot=o.snapshot, window=o.window, persist=o.persist)
    part = save_fraction(o.experts, o.saved_each, o.expert_share)
    whole = facts.save_stall if o.snapshot is None else Constant(o.snapshot)
    snapshot_h, persist_h = part * whole.mean_h, part * pieces.persist_h(facts, o.persist)
    window_h = (facts.step_h or 0.0) if o.window is None else o.window
    stall_h = max(0.0, snapshot_h - window_h)
    best_h = young_h(stall_h, facts.mtbf_h) if stall_h > 0.0 else 0.0
    soonest_h = persist_h * (1.0 + 4.0 * ROUNDING)  # each flush is over before the next begins
    every_h = o.every or max(best_h, snapshot_h, soonest_h)
    if not every_h > 0.0:
        raise ParameterError("saves of moc take no time here, so none is too many: give `every`")
    stages = pieces.restart(facts, pieces.LOAD)
    return Policy(
        name,
        rules=(Rule(Reverts.ALL, stages, sources=("snapshot", "remote")),),
        tiers=(
            Tier("snapshot", Medium.HOST, OWN, facts.role),
            pieces.remote_tier(facts),
        ),
        captures=(
            Capture(
                "snapshot",
                every_h,
                stall=Constant(stall_h),
                background=Constant(snapshot_h - stall_h),
            ),
            Capture(
                "remote",
                after="snapshot",
                background=Constant(persist_h),
                in_flight=2 if persist_h <= every_h else 1,  # rounding leaves none out
            ),
        ),
        tax=Tax(memory=part),
        step_h=facts.step_h or 0.0,
    )


def save_fraction(n_experts: int, n_saved_each: int, expert_share: float) -> float:
    """Bytes of a save as a share of the whole state: ``1 - e + e K/N``."""
    _require_experts(n_experts, n_saved_each)
    if not 0.0 <= expert_share <= 1.0:
        raise ParameterError(f"`expert_share` is {expert_share}; it must lie between 0 and 1")
    return 1.0 - expert_share + expert_share * n_saved_each / n_experts


def expert_staleness(n_experts: int, n_saved_each: int, save_number: int) -> Floats:
    """How much older each expert is than the save that a job goes back to, (N,) [intervals].

    Save m holds the K experts from ``(m - 1) K mod N`` on. An expert that no save holds yet goes
    back to the start.
    """
    _require_experts(n_experts, n_saved_each)
    if save_number < 0:
        raise ParameterError(f"save {save_number} is before the start of the job")
    places_behind = (save_number * n_saved_each - 1 - np.arange(n_experts)) % n_experts
    intervals: Floats = np.minimum(places_behind // n_saved_each, save_number).astype(np.float64)
    return intervals


def mean_expert_staleness(n_experts: int, n_saved_each: int) -> float:
    """Mean of `expert_staleness` once every expert has been saved [intervals].

    ``q (N + r - K) / (2 N)`` with ``N = q K + r``, r below K; that is ``(N/K - 1)/2`` where K
    divides N. Exact over all experts at every save, and for an expert drawn at random. Source:
    derived here.
    """
    _require_experts(n_experts, n_saved_each)
    q, r = divmod(n_experts, n_saved_each)
    return q * (n_experts + r - n_saved_each) / (2.0 * n_experts)


def portion_of_lost_tokens(
    n_experts: int,
    n_saved_each: int,
    save_numbers: Iterable[int],
    interval_h: float,
    useful_h: float,
) -> float:
    """PLT of a job: what its experts lost, as a share of what they were trained on.

    The published formula is not known here. This is PLS with experts for shards: staleness summed
    over failures and experts, each with a share of 1/N, as a share of the useful work. So it takes
    all experts to be given as many tokens, and counts each failure from the last save. Source:
    derived here.
    """
    lost = sum(expert_staleness(n_experts, n_saved_each, m).mean() for m in save_numbers)
    return float(lost) * interval_h / useful_h


def _require_experts(n_experts: int, n_saved_each: int) -> None:
    if not 1 <= n_saved_each <= n_experts:
        raise ParameterError(
            f"a save holds {n_saved_each} of {n_experts} experts; it must be at least one, and no "
            "more than there are"
        )


SYSTEM = System(
    "moc",
    "for mixtures of experts: each save holds some experts in turn and all else, in host memory "
    "first", "MoC-System 2025 (ASPLOS): shares published; mechanism and costs secondary", OPTIONS,
    plan, interval="every", family=Family.EXPERTS, cited="ASPLOS'25", mark=Provenance.SECONDARY,
    needs=(("experts", 64),),
    not_counted="what experts that go back further than the job cost in accuracy is not priced",
)  # fmt: skip
