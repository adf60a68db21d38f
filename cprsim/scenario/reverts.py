"""Mean number of shards that a failure of partial recovery reverts, by scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from cprsim.failures.several import SeveralSources
from cprsim.failures.sources import FailureSource
from cprsim.job.policy import Reach, Scope
from cprsim.job.records import Cluster, ExpectedFailures, Holds
from cprsim.simulation.strikes import ScopeShares


def expected_reverts(
    failures: FailureSource, scopes: Sequence[Scope], shares: ScopeShares, cluster: Cluster,
    useful_h: float,
) -> ExpectedFailures:  # fmt: skip
    """Expected failures, and the mean number of shards reverted by those that revert any.

    A failure of a rack strikes every shard of the rack, a silent error all. Where a failure strikes
    all trainers, and no server of theirs has the dense model, all shards go back.
    """
    expected = failures.expected(cluster, useful_h)
    reaches = tuple(_reach(scope, shares) for scope in scopes)
    if {*reaches} == {Reach.NODE} and len(cluster.replica_slots) != 1:
        return expected
    parts = [
        (share * per_h, n_shards)
        for source, share_of in _scopes_by_source(failures, reaches, shares)
        for reach, share in share_of.items()
        for per_h, n_shards in _reverts(source, reach, shares, cluster, useful_h)
        if share * per_h > 0.0
    ]
    per_h = sum(rate for rate, _ in parts)
    if per_h == 0.0:
        return ExpectedFailures(expected.mtbf_h, inf, 0.0)
    n_together = sum(rate * n_shards for rate, n_shards in parts) / per_h
    return ExpectedFailures(expected.mtbf_h, 1.0 / per_h, n_together)


def _scopes_by_source(
    failures: FailureSource, reaches: tuple[Reach, ...], shares: ScopeShares
) -> Iterator[tuple[FailureSource, dict[Reach, float]]]:
    """Each source of failures, with the share of each reach among its failures."""
    first, *others = [failures]
    if shares.of_source and isinstance(failures, SeveralSources):
        first, *others = [source for _, source in failures.sources]
    share_of = dict.fromkeys(reaches, 0.0)
    for reach, share in zip(reaches, shares.shares, strict=True):
        share_of[reach] += share
    yield first, share_of
    for source, scope in zip(others, shares.of_source, strict=True):
        yield source, {reaches[scope]: 1.0}


def _reach(scope: Scope, shares: ScopeShares) -> Reach:
    """Nodes that a failure of a scope reverts: its rack, all, or those that the source names."""
    if scope.silent or scope.reach is Reach.ALL:
        return Reach.ALL
    return Reach.RACK if scope.reach is Reach.RACK and shares.rack is not None else Reach.NODE


def _reverts(
    source: FailureSource, reach: Reach, shares: ScopeShares, cluster: Cluster, useful_h: float
) -> Iterator[tuple[float, float]]:
    """Failures per hour that take shards back, and how many each takes back."""
    struck = source.expected(cluster, useful_h)
    trainers, n_shards = cluster.replica_slots, cluster.n_emb_ps
    is_alone = not cluster.slots_that_hold(Holds.CENTRAL)  # the dense model is on trainers only
    if reach is Reach.ALL:
        yield 1.0 / struck.mtbf_h, n_shards
    elif reach is Reach.NODE:
        yield 1.0 / struck.mtbf_shard_h, struck.n_shards_together
        if len(trainers) == 1 and is_alone:
            yield 1.0 / source.expected(cluster, useful_h, trainers).mtbf_shard_h, n_shards
    else:
        for rack, n_racks in _racks(cluster, shares).items():
            n_back = float(len(_common(rack, cluster.shard_slots)))
            if is_alone and trainers and _common(rack, trainers) == trainers:
                n_back = n_shards
            if n_back:
                yield n_racks / source.expected(cluster, useful_h, rack).mtbf_shard_h, n_back


def _racks(cluster: Cluster, shares: ScopeShares) -> dict[range, int]:
    """A rack of each composition, with the number of racks of the same roles."""
    size, n_slots = shares.rack or 1, shares.n_slots
    racks = (range(at, min(at + size, n_slots)) for at in range(0, n_slots, size))
    alike: dict[tuple[int, ...], list[range]] = {}
    for rack in racks:
        of_roles = tuple(len(_common(rack, cluster.slots(role.name))) for role in cluster.roles)
        alike.setdefault(of_roles, []).append(rack)
    return {found[0]: len(found) for found in alike.values()}


def _common(some: range, others: range) -> range:
    return range(max(some.start, others.start), min(some.stop, others.stop))
