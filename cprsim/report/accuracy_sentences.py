"""What a result says of accuracy lost to stale shards: by which curve, and how far it holds."""

from __future__ import annotations

from math import isnan

from cprsim.records import RecoveryPolicy
from cprsim.results import FINISHED, Result
from cprsim.results.words import percent, priced_by

HOW_TO = (
    "What stale shards cost in accuracy is not known: no staleness curve belongs to this scenario. "
    "`cprsim measure` makes one, `accuracy: {curve: ...}` names one (docs/staleness.md)."
)


def accuracy_sentences(result: Result) -> list[str]:
    """Which curve priced the losses, what it does not know, and where it was stretched.

    Empty where no strategy ever keeps a stale shard.
    """
    stale = [policy for policy in result.policies if policy.leaves_stale]
    if not stale:
        return []
    if result.curve is None:
        return [HOW_TO]
    used = result.curve
    shown = knows_loss(result)
    said = priced_by(used.name, used.origin, used.notes, used.unpriced, shown=shown)
    return said + [sentence for policy in stale for sentence in _of(policy, result)]


def knows_loss(result: Result) -> bool:
    """Whether there is a mean loss of AUC of any strategy whose shards go stale."""
    spreads = result.spreads()
    return any(
        policy.leaves_stale and not isnan(spreads[policy.name]["auc_loss"].mean)
        for policy in result.policies
    )


def _of(policy: RecoveryPolicy, result: Result) -> list[str]:
    found = result.spreads()[policy.name]
    if found[FINISHED].mean < 1 or (result.curve and policy.name in result.curve.unpriced):
        return []
    if isnan(found["auc_loss"].mean):  # a result of an earlier version, which did not say why
        return [f"{policy.name}: the curve does not say what it loses, saving as it does here."]
    beyond = found["beyond_measured"].mean
    if not beyond > 0:
        return []
    return [
        f"{policy.name}: {percent(beyond)} of its jobs lose more than was measured; their loss "
        "is extrapolated."
    ]
