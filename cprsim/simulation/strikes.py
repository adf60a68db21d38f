"""Failures with their scopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple
from zlib import crc32

import numpy as np

from cprsim.compiling import inlined
from cprsim.failures.block import BlockFailures
from cprsim.job.policy import Reach
from cprsim.job.records import FailureTrace, Floats, Ints
from cprsim.simulation.draws import stream_keys, uniform
from cprsim.simulation.job import NOTICE, ScopedFailure
from cprsim.simulation.spec import NONE


class ScopedStrikes(NamedTuple):
    """The failures of the first chunks of a block as flat arrays.

    Those of replication i in chunk c are ``first[c, i]:first[c, i + 1]``.
    """

    until_h: float  # of the clock; infinite where there are no more
    first: Ints  # (n_chunks, n_replications + 1)
    at_h: Floats  # (n_failures,)
    scope: Ints  # (n_failures,) number among the job's
    first_slot: Ints  # (n_failures + 1,)
    slot: Ints  # (n_failed_nodes,)
    repair_h: Floats  # (n_failed_nodes,)

    @property
    def n_replications(self) -> int:
        """How many replications they are of."""
        return len(self.first[0]) - 1

    def strikes(self, n_chunks: int) -> ScopedStrikes:
        """Return these failures: no more can be drawn."""
        return self


@inlined
def next_failure(strikes: ScopedStrikes, row: int, chunk: int, failure: int) -> tuple[int, int]:
    """The chunk and number of a replication's next failure; NONE where no more is drawn.

    Parameters
    ----------
    chunk, failure : where the next would be, if the chunk has one more
    """
    while failure == strikes.first[chunk, row + 1]:
        chunk += 1
        if chunk == len(strikes.first):
            return chunk, NONE
        failure = strikes.first[chunk, row]
    return chunk, failure


def given_failures(lists: Sequence[Sequence[ScopedFailure]]) -> ScopedStrikes:
    """Failures that are all there is, one list a replication."""
    flat = [failure for some in lists for failure in some]
    return ScopedStrikes(
        inf,
        np.cumsum([0, *map(len, lists)])[None, :],
        np.array([failure.at_h for failure in flat], dtype=np.float64),
        np.array([failure.scope for failure in flat], dtype=np.int64),
        np.cumsum([0, *(len(failure.slots) for failure in flat)]),
        np.array([slot for failure in flat for slot in failure.slots], dtype=np.int64),
        np.array([hours for failure in flat for hours in failure.repair_h], dtype=np.float64),
    )


@dataclass(frozen=True, slots=True)
class ScopeShares:
    """Which of the job's scopes a failure is of: the first whose share it falls into."""

    shares: tuple[float, ...]  # add up to 1; 0 of scopes with a source of their own
    reaches: tuple[Reach, ...]
    n_slots: int
    rack: int | None = None  # slots that share a rack: neighbours, from slot 0 on
    of_source: tuple[int, ...] = ()  # the scope of each further source's failures


class ScopedBlock:
    """The failures of a block of replications, each with its scope, drawn as they are asked for.

    The scope of a failure depends on the seed, the block, its replication and its number alone, so
    that all systems meet the same.

    Parameters
    ----------
    notice_h : by how long each scope's failures are announced, none sooner than the failure before;
        empty for a system that does not listen
    """

    def __init__(
        self,
        failures: BlockFailures,
        shares: ScopeShares,
        notice_h: tuple[float, ...] = (),
    ) -> None:
        self._notice_h = np.array(notice_h)
        self.n_replications = failures.n_replications
        self._failures, self._shares = failures, shares
        first = crc32(f"scopes/{failures.seed}/{failures.number}".encode())
        self._keys = stream_keys(first, np.arange(failures.kept.start, failures.kept.stop))
        self._n_chunks = 0

    def strikes(self, n_chunks: int) -> ScopedStrikes:
        """Return the failures of at least the first `n_chunks` chunks, or of all chunks."""
        if n_chunks > self._n_chunks:
            scoped = self._scoped(self._failures.strikes(n_chunks))
            self._drawn = self._announced(scoped) if self._notice_h.any() else scoped
            self._n_chunks = n_chunks
        return self._drawn

    def _scoped(self, drawn: FailureTrace) -> ScopedStrikes:
        scope = self._scopes(drawn)
        first_slot, slot, repair_h = drawn.first_slot, drawn.slot, drawn.repair_h
        if any(reach >= Reach.RACK for reach in self._shares.reaches):
            first_slot, slot, repair_h = self._widened(scope, first_slot, slot, repair_h)
        return ScopedStrikes(
            drawn.until_h, drawn.first, drawn.at_h, scope, first_slot, slot, repair_h
        )

    def _scopes(self, drawn: FailureTrace) -> Ints:
        shares = self._shares
        if len(shares.shares) == 1:
            return np.zeros(len(drawn.at_h), dtype=np.int64)
        n = np.diff(drawn.first, axis=1)  # (n_chunks, n_replications)
        before = np.cumsum(n, axis=0) - n  # failures of the same replication in earlier chunks
        row, begin = _rows(drawn.first), np.repeat(drawn.first[:, :-1].reshape(-1), n.reshape(-1))
        number = np.arange(len(row)) - begin + np.repeat(before.reshape(-1), n.reshape(-1))
        borders: Floats = np.cumsum(shares.shares)[:-1]
        u: Floats = uniform(self._keys[row], number)
        scopes: Ints = np.searchsorted(borders, u, side="right").astype(np.int64)
        if drawn.source is not None:
            scope_of_source: Ints = np.array((0, *shares.of_source))[drawn.source]
            return np.where(drawn.source > 0, scope_of_source, scopes)
        return scopes

    def _announced(self, drawn: ScopedStrikes) -> ScopedStrikes:
        """The same with the notices of failures among them."""
        row = _rows(drawn.first)
        in_order = np.lexsort((np.arange(len(row)), row))  # of each replication one after another
        before_h = np.zeros(len(row))
        follows = row[in_order][1:] == row[in_order][:-1]
        before_h[in_order[1:][follows]] = drawn.at_h[in_order[:-1][follows]]
        notice_h = self._notice_h[drawn.scope]
        (announced,) = np.nonzero(notice_h > 0.0)
        told_at_h = np.maximum(before_h, drawn.at_h - notice_h)[announced]
        return drawn._replace(
            # failures that are not drawn yet may have been announced by then
            until_h=drawn.until_h - float(self._notice_h.max()),
            first=drawn.first + np.searchsorted(announced, drawn.first),
            at_h=np.insert(drawn.at_h, announced, told_at_h),
            scope=np.insert(drawn.scope, announced, NOTICE),
            first_slot=np.insert(drawn.first_slot, announced, drawn.first_slot[announced]),
        )

    def _widened(
        self, scope: Ints, first_slot: Ints, slot: Ints, repair_h: Floats
    ) -> tuple[Ints, Ints, Floats]:
        """Failures of racks and of all strike every slot there, with the repair of the first."""
        shares, number = self._shares, np.arange(len(slot))
        failure = np.repeat(np.arange(len(scope)), np.diff(first_slot))
        reach = np.array(shares.reaches)[scope][failure]
        wide = (reach == Reach.ALL) | ((reach == Reach.RACK) & (shares.rack is not None))
        # a failed slot stands for itself or, with others of its failure, for a block of neighbours
        size = np.where(reach == Reach.ALL, shares.n_slots, shares.rack or 1)
        block = np.where(wide, slot // size, number)
        _, kept = np.unique(failure * (len(slot) + shares.n_slots) + block, return_index=True)
        begin = np.where(wide, block * size, slot)[kept]
        n = np.where(wide[kept], np.minimum(size[kept], shares.n_slots - begin), 1)
        n_struck = np.bincount(failure[kept], n, len(scope)).astype(np.int64)
        slots = np.repeat(begin - np.cumsum(n) + n, n) + np.arange(n.sum())
        source = np.repeat(np.where(wide, first_slot[failure], number)[kept], n)
        return np.concatenate([[0], np.cumsum(n_struck)]), slots, repair_h[source]


ScopedFailures = ScopedBlock | ScopedStrikes


def _rows(first: Ints) -> Ints:
    """The replication of each failure."""
    n = np.diff(first, axis=1)
    return np.repeat(np.tile(np.arange(n.shape[1]), len(n)), n.reshape(-1))
