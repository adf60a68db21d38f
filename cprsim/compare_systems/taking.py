"""What a system takes all the time besides hours: bytes over links and to the storage."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.records import Cluster
from cprsim.recovery.policy import Capture, Groups, Outside, Policy, Ring


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes per hour of progress, if each save moves whole states.

    A system that saves parts or deltas moves less. None: the job does not say how large a state is,
    or a tier is written on notice alone.
    """

    storage_bytes_per_h: float | None  # of all nodes together
    peers_bytes_per_h: float | None  # that one node sends to others


UNKNOWN = Traffic(None, None)


def traffic_of(
    policy: Policy, cluster: Cluster, state_bytes: float | None, useful_h: float
) -> Traffic:
    """The bytes that the saves of a policy move.

    Parameters
    ----------
    state_bytes : of one node of the role whose state is saved; None: not known
    useful_h : work of the job [h]: an interval as long is no save
    """
    if state_bytes is None:
        return UNKNOWN
    storage = peers = 0.0
    for capture in policy.captures:
        per_h = _saves_per_h(policy, capture, useful_h) * state_bytes / capture.parts
        tier = policy.tier(capture.tier)
        if isinstance(tier.placement, Outside):
            storage += per_h * len(cluster.slots(tier.role))
        else:
            peers += per_h * _sent(tier.placement)
    return Traffic(storage, peers)


def _saves_per_h(policy: Policy, capture: Capture, useful_h: float) -> float:
    if capture.after is not None:
        followed = next(one for one in policy.captures if one.tier == capture.after)
        return _saves_per_h(policy, followed, useful_h) / capture.every_nth
    if capture.every_h is None or capture.every_h >= useful_h:
        return 0.0
    return 1.0 / capture.every_h


def _sent(place: Ring | Groups) -> float:
    """States' worth that a node sends to others with each save.

    Copies on all others of its group, or as parity ``tolerates`` of the others' places.
    """
    return float(place.copies - 1 if isinstance(place, Ring) else place.tolerates)
