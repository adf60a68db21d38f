"""Failures with what each of them kills, for both engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple
from zlib import crc32

import numpy as np

from cprsim.failures.block import BlockFailures, Strikes
from cprsim.failures.sources import are_no_hours
from cprsim.records import Floats, Ints
from cprsim.recovery.policy import Reach
from cprsim.simulate.job import NOTICE, ScopedFailure
from cprsim.simulate.transitions import stream_keys, uniform


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


@dataclass(frozen=True, slots=True)
class ScopeShares:
    """Which of the job's scopes a failure is of: the first whose share it falls into."""

    shares: tuple[
        float, ...
    ]  # add up to 1; 0 of scopes whose failures are of a source of their own
    reaches: tuple[Reach, ...]
    n_slots: int
    rack: int | None = None  # slots that share a rack: neighbours, from slot 0 on
    of_source: tuple[int, ...] = ()  # the scope of each further source's failures

    def of(self, key: Ints, number: Ints, source: Ints | None = None) -> Ints:
        """Scopes of the nth failures of some replications, by number.

        Parameters
        ----------
        source : of each; None: all are of the first
        """
        u: Floats = uniform(key, number)
        borders: Floats = np.cumsum(self.shares)[:-1]
        scopes: Ints = np.searchsorted(borders, u, side="right").astype(np.int64)
        if source is None:
            return scopes
        own: Ints = np.array((0, *self.of_source))[source]
        return np.where(source > 0, own, scopes)

    def widened(self, scope: int, slots: Ints) -> Ints:
        """The slots that a failure strikes, given those of the nodes that fail."""
        if self.reaches[scope] is Reach.ALL:
            return np.arange(self.n_slots)
        if self.reaches[scope] is Reach.RACK and self.rack is not None:
            racks = np.unique(slots // self.rack)
            wide = (racks[:, None] * self.rack + np.arange(self.rack)).reshape(-1)
            return wide[wide < self.n_slots]
        return slots


class ScopedBlock:
    """The failures of a block of replications, each with its scope.

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
        seed: int,
        block: int,
        notice_h: tuple[float, ...] = (),
    ) -> None:
        self._notice_h = np.array(notice_h) if any(notice_h) else np.zeros(0)
        self.n_replications = failures.n_replications
        self._failures = failures
        self._shares = shares
        kept = failures.kept
        first = crc32(f"scopes/{seed}/{block}".encode())
        self._keys = stream_keys(first, np.arange(kept.start, kept.stop))
        self._widens = any(reach >= Reach.RACK for reach in shares.reaches)
        self._found: dict[int, ScopedStrikes] = {}  # by failures: the same for the same chunks

    def strikes(self, n_chunks: int) -> ScopedStrikes:
        """The failures of the first chunks, or of all that there are."""
        drawn = self._failures.strikes(n_chunks)
        n = len(drawn.at_h)
        if n not in self._found:
            self._found = {n: self._scoped(drawn)}
        found = self._found[n]._replace(until_h=drawn.until_h, first=drawn.first)
        return self._announced(found) if len(self._notice_h) else found

    def _scoped(self, drawn: Strikes) -> ScopedStrikes:
        scope = self._scopes(drawn)
        repair_h = self._failures.repair_h(len(drawn.slot))
        if are_no_hours(repair_h):
            repair_h = np.zeros(len(repair_h))  # compiled loops take one kind of array
        first_slot, slot = drawn.first_slot, drawn.slot
        if self._widens:
            first_slot, slot, repair_h = self._widened(scope, first_slot, slot, repair_h)
        return ScopedStrikes(
            drawn.until_h, drawn.first, drawn.at_h, scope, first_slot, slot, repair_h
        )

    def _scopes(self, drawn: Strikes) -> Ints:
        if len(self._shares.shares) == 1:
            return np.zeros(len(drawn.at_h), dtype=np.int64)
        n_chunks, n_rows = drawn.first.shape[0], drawn.first.shape[1] - 1
        n = np.diff(drawn.first, axis=1)  # (n_chunks, n_replications)
        before = np.cumsum(n, axis=0) - n  # failures of the same replication in earlier chunks
        row = np.repeat(np.tile(np.arange(n_rows), n_chunks), n.reshape(-1))
        begin = np.repeat(drawn.first[:, :-1].reshape(-1), n.reshape(-1))
        number = np.arange(len(row)) - begin + np.repeat(before.reshape(-1), n.reshape(-1))
        return self._shares.of(self._keys[row], number, drawn.source)

    def _announced(self, drawn: ScopedStrikes) -> ScopedStrikes:
        """The same with the notices of failures among them."""
        n = np.diff(drawn.first, axis=1)
        row = np.repeat(np.tile(np.arange(n.shape[1]), len(n)), n.reshape(-1))
        in_order = np.lexsort((np.arange(len(row)), row))  # of each replication one after another
        before_h = np.zeros(len(row))
        follows = row[in_order][1:] == row[in_order][:-1]
        before_h[in_order[1:][follows]] = drawn.at_h[in_order[:-1][follows]]
        notice_h = self._notice_h[drawn.scope]
        (told,) = np.nonzero(notice_h > 0.0)
        told_at_h = np.maximum(before_h, drawn.at_h - notice_h)[told]
        return drawn._replace(
            # failures that are not drawn yet may have been announced by then
            until_h=drawn.until_h - float(self._notice_h.max()),
            first=drawn.first + np.searchsorted(told, drawn.first),
            at_h=np.insert(drawn.at_h, told, told_at_h),
            scope=np.insert(drawn.scope, told, NOTICE),
            first_slot=np.insert(drawn.first_slot, told, drawn.first_slot[told]),
        )

    def _widened(
        self, scope: Ints, first_slot: Ints, slot: Ints, repair_h: Floats
    ) -> tuple[Ints, Ints, Floats]:
        """Failures of racks and of all strike every slot there, with the repair of the first."""
        shares, n_named = self._shares, np.diff(first_slot)
        reach = np.array(shares.reaches)[scope]
        rack = shares.rack or 1
        in_rack = (reach == Reach.RACK) & (shares.rack is not None)
        begin = np.where(in_rack, slot[first_slot[:-1]] // rack * rack, 0)
        wide = in_rack | (reach == Reach.ALL)
        n_wide = np.where(in_rack, np.minimum(rack, shares.n_slots - begin), shares.n_slots)
        (of_racks,) = np.nonzero(in_rack & (n_named > 1))  # perhaps in several racks: one by one
        several = [shares.widened(int(scope[n]), _part(slot, first_slot, int(n))) for n in of_racks]
        n_wide[of_racks] = [len(slots) for slots in several]
        n_struck = np.where(wide, n_wide, n_named)
        first = np.concatenate([[0], np.cumsum(n_struck)])
        failure = np.repeat(np.arange(len(scope)), n_struck)
        nth = np.arange(first[-1]) - first[failure]
        named = first_slot[failure] + np.where(wide[failure], 0, nth)
        slots = np.where(wide[failure], begin[failure] + nth, slot[named])
        for n, found in zip(of_racks, several, strict=True):
            slots[first[n] : first[n + 1]] = found
        return first, slots, repair_h[named]

    def of(self, replication: int) -> Iterator[ScopedFailure]:
        """The failures of one replication, in order, for as long as anybody asks."""
        key, before_h = self._keys[replication : replication + 1], 0.0
        for number, failure in enumerate(self._failures.of(replication)):
            several = len(self._shares.shares) > 1
            source = np.array([failure.source])
            scope = int(self._shares.of(key, np.array([number]), source)[0]) if several else 0
            named = np.array(failure.slots)
            wide = self._shares.widened(scope, named)
            hours = failure.repair_h if wide is named else failure.repair_h[:1] * len(wide)
            if len(self._notice_h) and (notice_h := float(self._notice_h[scope])) > 0.0:
                yield ScopedFailure(max(before_h, failure.at_h - notice_h), (), NOTICE, ())
            before_h = failure.at_h
            yield ScopedFailure(failure.at_h, tuple(wide.tolist()), scope, hours)


def _part(flat: Ints, first: Ints, n: int) -> Ints:
    return flat[first[n] : first[n + 1]]


@dataclass(frozen=True, slots=True)
class GivenFailures:
    """Failures that are all there is, one list a replication."""

    lists: tuple[tuple[ScopedFailure, ...], ...]

    @property
    def n_replications(self) -> int:
        return len(self.lists)

    def strikes(self, n_chunks: int) -> ScopedStrikes:
        flat = [failure for failures in self.lists for failure in failures]
        return ScopedStrikes(
            inf,
            np.cumsum([0, *(len(failures) for failures in self.lists)])[None, :],
            np.array([failure.at_h for failure in flat], dtype=np.float64),
            np.array([failure.scope for failure in flat], dtype=np.int64),
            np.cumsum([0, *(len(failure.slots) for failure in flat)]),
            np.array([slot for failure in flat for slot in failure.slots], dtype=np.int64),
            np.array([hours for failure in flat for hours in failure.repair_h], dtype=np.float64),
        )

    def of(self, replication: int) -> Iterator[ScopedFailure]:
        return iter(self.lists[replication])
