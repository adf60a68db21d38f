"""MoC-System: a save holds a few experts of each layer, in turn, and all that is no expert.

Of the N experts of a layer each save holds the next K, so that it takes ``1 - e + e K/N`` of the
bytes of a whole one, e the share of the experts in the state: .86 by the published shares 12 / 2 /
74 / 12 % of the state, of which the last two are the experts'. After a failure the job goes back to
the newest content that is whole in what is no expert; experts that were saved earlier are stale.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Floats
from cprsim.recovery import pieces
from cprsim.recovery.intervals import ROUNDING, young_h
from cprsim.recovery.options import time
from cprsim.recovery.pieces import SECONDARY, row
from cprsim.recovery.policy import OWN, Capture, Medium, Policy, Tax, Tier
from cprsim.recovery.system import Family, JobFacts

SNAPSHOT = "snapshot"


def moc(job: JobFacts, o: Any, name: str) -> Policy:
    part = save_fraction(o.experts, o.saved_each, o.expert_share)
    whole_h = job.save_stall.mean_h if o.snapshot is None else o.snapshot
    snapshot_h, persist_h = part * whole_h, part * pieces.persist_h(job, o.persist)
    stall_h = max(0.0, snapshot_h - ((job.step_h or 0.0) if o.window is None else o.window))
    best_h = young_h(stall_h, job.mtbf_h) if stall_h > 0.0 else 0.0
    soonest_h = persist_h * (1.0 + 4.0 * ROUNDING)  # each is over before the next begins
    every_h = o.every or max(best_h, snapshot_h, soonest_h)
    if not every_h > 0.0:
        raise ParameterError(
            f"saves of {name} take no time here, so none is too many: give `every`"
        )
    return Policy(
        name,
        rules=(pieces.go_back(pieces.restart(job, pieces.LOAD), SNAPSHOT, pieces.REMOTE),),
        tiers=(Tier(SNAPSHOT, Medium.HOST, OWN, job.role), pieces.remote_tier(job)),
        captures=(
            Capture(
                SNAPSHOT, every_h, stall=Constant(stall_h),
                background=Constant(snapshot_h - stall_h),
            ),
            Capture(
                pieces.REMOTE, after=SNAPSHOT, background=Constant(persist_h),
                in_flight=2 if persist_h <= every_h else 1,  # rounding leaves none out
            ),
        ),
        tax=Tax(memory=part),
        step_h=job.step_h or 0.0,
    )  # fmt: skip


def save_fraction(n_experts: int, n_saved_each: int, expert_share: float) -> float:
    """Bytes of a save as a share of the whole state: ``1 - e + e K/N``."""
    if n_saved_each > n_experts:
        raise ParameterError(
            f"a save holds {n_saved_each} of {n_experts} experts; it must be at least one, and no "
            "more than there are"
        )
    return 1.0 - expert_share + expert_share * n_saved_each / n_experts


def expert_staleness(n_experts: int, n_saved_each: int, save_number: int) -> Floats:
    """How much older each expert is than the save that a job goes back to, (N,) [intervals].

    Save m holds the K experts from ``(m - 1) K mod N`` on. An expert that no save holds yet goes
    back to the start.
    """
    places_behind = (save_number * n_saved_each - 1 - np.arange(n_experts)) % n_experts
    intervals: Floats = np.minimum(places_behind // n_saved_each, save_number).astype(np.float64)
    return intervals


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


MOC = row(
    "moc", "every snapshot persist experts saved_each expert_share window", moc, {}, "ASPLOS'25",
    SECONDARY, "for mixtures of experts: each save holds some experts in turn and all else, in "
    "host memory first",
    source="MoC-System 2025 (ASPLOS): shares published; mechanism and costs secondary",
    own={
        "window": time("of a forward and backward pass, which hides a snapshot; default: a step")
    },
    interval="every", family=Family.EXPERTS, needs=(("experts", 64),),
    not_counted="what experts that go back further than the job cost in accuracy is not priced",
    assumed="costs that vary are taken at their mean; the stall of a snapshot comes before the "
    "part of it that training hides, not behind it, which changes no hours; after a failure that "
    "wipes a node's host memory all experts are loaded from the remote storage, also those that "
    "other nodes still hold.",
    not_modelled="what stale experts cost in accuracy; parts of the state that different ranks "
    "save.",
)  # fmt: skip
SYSTEMS = (MOC,)
