"""Mean number of shards that a failure of partial recovery reverts, by scope, and waits for spares.

Both follow from how often failures of each scope strike, and how many nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp, inf

import numpy as np

from cprsim import failures as sources
from cprsim.failures.sources import FailureSource
from cprsim.job.policy import Reach, Scope
from cprsim.job.records import Cluster, ExpectedFailures, Holds
from cprsim.simulation.strikes import ScopeShares

LEAST_WORK = 1e-6  # share of time, of a job that hardly ever works
MOST_REPAIRS, TOO_LARGE = 700.0, 1e250  # within the range of a float: exp(-700) is 1e-304


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
    parts = [*_parts(failures, reaches, shares, cluster, useful_h)]
    per_h = sum(rate for rate, _ in parts)
    if per_h == 0.0:
        return ExpectedFailures(expected.mtbf_h, inf, 0.0)
    n_together = sum(rate * n_shards for rate, n_shards in parts) / per_h
    return ExpectedFailures(expected.mtbf_h, 1.0 / per_h, n_together)


def struck_in_waits(
    failures: FailureSource, scopes: Sequence[Scope], shares: ScopeShares, cluster: Cluster,
    useful_h: float,
) -> float:  # fmt: skip
    """Waits for spares in which other nodes may fail, as a share of the hours without waits.

    Assumes failures at a constant rate, also of nodes away, and repairs that do not queue:
    then the nodes away are a compound Poisson number (M/G/infinity). The job waits while they are
    more than the spares, and a node that is away can't fail. Source: derived here.
    """
    n_spares, repair, n_nodes = cluster.n_spares, cluster.repair, cluster.n_nodes
    if n_spares is None or repair is None:
        return 0.0
    reaches = tuple(_reach(scope, shares) if scope.needs_node else None for scope in scopes)
    nodes = replace(
        cluster, roles=tuple(replace(role, holds=Holds.SHARD) for role in cluster.roles)
    )
    parts = _parts(failures, reaches, shares, nodes, useful_h)
    away = [(rate * repair.mean_h, round(n)) for rate, n in parts]
    n_repairs = sum(mean for mean, _ in away)
    p_away = [exp(-n_repairs) if n_repairs < MOST_REPAIRS else 1.0]  # a factor of all cancels
    for n in range(1, n_spares + n_nodes):  # Panjer's recursion
        p_away.append(sum(mean * k * p_away[n - k] for mean, k in away if k <= n) / n)
        if p_away[-1] > TOO_LARGE:
            p_away = [p / TOO_LARGE for p in p_away]
    can_fail = np.linspace(1.0, 0.0, n_nodes, endpoint=False)[1:]
    works = max(sum(p_away[: n_spares + 1]), LEAST_WORK * sum(p_away))
    return float(can_fail @ p_away[n_spares + 1 :]) / works


def _parts(
    failures: FailureSource, reaches: tuple[Reach | None, ...], shares: ScopeShares,
    cluster: Cluster, useful_h: float,
) -> Iterator[tuple[float, float]]:  # fmt: skip
    """Failures per hour that strike shards, and how many each strikes; None: it strikes none."""
    for source, share_of in _scopes_by_source(failures, reaches, shares):
        for reach, share in share_of.items():
            if reach is None:
                continue
            for per_h, n_shards in _reverts(source, reach, shares, cluster, useful_h):
                if share * per_h > 0.0:
                    yield share * per_h, n_shards


def _scopes_by_source(
    failures: FailureSource, reaches: tuple[Reach | None, ...], shares: ScopeShares
) -> Iterator[tuple[FailureSource, dict[Reach | None, float]]]:
    """Each source of failures, with the share of each reach among its failures."""
    first, *others = [failures]
    if shares.of_source and isinstance(failures, sources.SeveralSources):
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
