"""MoC-System: a save holds a few experts of each layer, in turn, and all that is no expert.

Of the N experts of a layer each save holds the next K, so that it takes ``1 - e + e K/N`` of the
bytes of a whole one, e the share of the experts in the state: .86 by the published shares 12 / 2 /
74 / 12 % of the state, of which the last two are the experts'. After a failure the job goes back to
the newest content that is whole in what is no expert; experts that were saved earlier are stale.
"""

from __future__ import annotations

from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.intervals import ROUNDING, young_h
from cprsim.recovery.options import OPTIONS, time
from cprsim.recovery.pieces import SECONDARY, row
from cprsim.recovery.policy import OWN, Capture, Medium, Policy, Tax, Tier
from cprsim.recovery.system import Family, JobFacts

SNAPSHOT = "snapshot"


def moc(job: JobFacts, o: Any) -> Policy:
    part = save_fraction(o.experts, o.saved_each, o.expert_share)
    snapshot_h, persist_h = part * o.snapshot, part * o.persist
    stall_h = max(0.0, snapshot_h - ((job.step_h or 0.0) if o.window is None else o.window))
    best_h = young_h(stall_h, job.mtbf_h) if stall_h > 0.0 else 0.0
    soonest_h = persist_h * (1.0 + 4.0 * ROUNDING)  # each is over before the next begins
    every_h = o.every or max(best_h, snapshot_h, soonest_h)
    if not every_h > 0.0:
        raise ParameterError("saves take no time here, so none is too many: give `every`")
    return Policy(
        o.name,
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


SYSTEMS = (
    row(
        "moc", "every snapshot persist experts saved_each expert_share window", moc, {},
        "ASPLOS'25", SECONDARY,
        "for mixtures of experts: each save holds some experts in turn and all else, in host "
        "memory first",
        source="MoC-System 2025 (ASPLOS): shares published; mechanism and costs secondary",
        own={
            "window": time(
                "of a forward and backward pass, which hides a snapshot; default: a step"
            ),
            "snapshot": OPTIONS["snapshot"]._replace(fact="stall_h"),
        },
        interval="every", family=Family.EXPERTS,
        not_counted="what experts that go back further than the job cost in accuracy is not "
        "priced",
        assumed="the stall of a snapshot comes before the part that training hides, which changes "
        "no hours. After the loss of a node's host memory all experts are loaded from the remote "
        "storage, also those that other nodes still hold.",
        not_modelled="the accuracy of stale experts; parts of the state that ranks save.",
    ),
)  # fmt: skip
