"""The failures of a real cluster, replayed: random window, random assignment of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.outages import Note, Outages
from cprsim.failures.sources import (
    BYTES_OF_A_ROW,
    asked,
    expected_of,
    replications_for,
    require_room,
    stream,
    trace_of,
)
from cprsim.job.distributions import p_strikes
from cprsim.job.records import Bools, Clock, Cluster, ExpectedFailures, FailureTrace, Floats, Ints

ANY_OF_SEVERAL = "failures of one of several nodes are taken to be of any of these"


@dataclass(frozen=True, slots=True)
class Replay:
    """Outages of real nodes, each replication from its own random instant of the trace on.

    The trace wraps: after its end it begins again. Its nodes are assigned to the slots of the job
    at random, without replacement, anew for each replication. A node that is down at the start
    counts as replaced. The length of an outage is the failed node's repair.

    Where nodes join and leave (`Outages.lives`), the job has the first of the present nodes, in a
    random order of all: at each instant a random sample of them. A node that leaves is replaced by
    the next present one; slots are then renumbered.
    """

    outages: Outages
    from_first: bool = False  # begin at the trace's first instant; who is down then is lost at once

    def __post_init__(self) -> None:
        if not self._strikes(self.outages).any() or self.outages.window_h <= 0:
            raise ParameterError("the trace has no failure within a window of some length")

    @property
    def clock(self) -> Clock:
        """Always wall time: a cluster's failures do not wait for the job."""
        return Clock.WALL

    def expected(
        self, cluster: Cluster, useful_h: float, of: range | None = None
    ) -> ExpectedFailures:
        """Exact means over windows and assignments, the same for any number of hours.

        A failure of s trace nodes strikes a job of n of the N nodes with the hypergeometric
        probability ``1 - C(N - s, n) / C(N, n)``, and ``s n / N`` of its nodes on average.
        """
        failures = self._failures()
        self._check_slots(cluster)
        sizes = np.diff(failures.first_slot)
        from_h, present = presence(self.outages)
        n_present = present.sum(axis=1)[_epoch(from_h, failures.at_h)]
        pairs, counts = np.unique(np.stack([sizes, n_present]), axis=1, return_counts=True)

        def n_striking(n_slots: int) -> float:
            p = [p_strikes(int(size), n_slots, int(n_trace)) for size, n_trace in pairs.T]
            return float(counts @ np.array(p))

        n_shards = len(asked(cluster, of))
        n_any, n_shard = n_striking(cluster.n_nodes), n_striking(n_shards)
        n_all = self.outages.n_nodes  # each failure counts as if all had been there
        n_shards_struck = float(counts @ (pairs[0] * n_all / pairs[1])) * n_shards / n_all
        return expected_of(self.outages.window_h, n_any, n_shard, n_shards_struck)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the outages that a block looks through and by its table of nodes."""
        n_seen = self.outages.n_outages * useful_h / self.outages.window_h
        return replications_for(n_seen, self.outages.n_nodes)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float],
    ) -> Iterator[FailureTrace]:  # fmt: skip
        self._check_slots(cluster)
        rng = stream(seed, block, "failures/trace/window")
        begin_h = rng.random(n_replications) * self.outages.window_h
        if self.from_first:
            begin_h = np.zeros(n_replications)
        # of each trace node in a random order, (n_replications, n_trace_nodes)
        places = np.tile(np.arange(self.outages.n_nodes), (n_replications, 1))
        place = stream(seed, block, "failures/trace/nodes").permuted(places, axis=1)
        failures, (changes_h, present) = self._failures(), presence(self.outages)
        row_h = np.repeat(failures.at_h, np.diff(failures.first_slot))
        for from_h, until_h in pairwise(chain([0.0], borders_h)):
            replication, at_h, row = _hits(row_h, self.outages.window_h, begin_h, from_h, until_h)
            epoch = _epoch(changes_h, row_h[row])
            slot = slots_at(present, place, replication, epoch, failures.slot[row])
            in_job = slot < cluster.n_nodes
            yield trace_of(
                until_h, n_replications,
                replication[in_job], at_h[in_job], slot[in_job], failures.repair_h[row[in_job]],
            )  # fmt: skip

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on replayed failures, and on those left out, closed or assumed by the reader."""
        outages, failures = self.outages, self._failures()
        unsaid = [(fact, how) for fact, (by, how) in outages.facts.items() if by == "inferred"]
        n_last = int((outages.start_h == outages.window_h).sum())
        last = Note("dropped", n_last, "outage(s) at its very end left out: there it begins again")
        of = f"of {outages.n_nodes} nodes in {outages.window_h:.6g} h from {outages.origin} on"
        return (
            str(Note("read_as", len(failures.slot), f"node failure(s) {of}")),
            *(f"{fact.removeprefix('n_')}: {how}" for fact, how in unsaid),
            *map(str, outages.notes),
            *([ANY_OF_SEVERAL] if not outages.placed.all() else []),
            *([str(last)] if n_last else []),
        )

    def _check_slots(self, cluster: Cluster) -> None:
        from_h, present = presence(self.outages)
        n_present, when = present.sum(axis=1), ""
        if self.outages.lives is not None:
            when = f" at hour {from_h[n_present.argmin()]:.6g} of it: choose another period"
            if cluster.n_nodes > n_present.max():
                when = " at any time: name all in `nodes`, also those that never failed"
        if cluster.n_nodes > n_present.min():
            raise ParameterError(
                f"the job has {cluster.n_nodes} nodes, the trace only {n_present.min()}{when}"
            )

    def _failures(self) -> FailureTrace:
        """The trace as one replication whose slots are the trace's nodes."""
        outages = self.outages.where(self._strikes(self.outages))
        start_h = np.maximum(outages.start_h, 0.0)
        return trace_of(
            outages.window_h,
            1,
            np.zeros(outages.n_outages, dtype=np.int64),
            start_h,
            outages.node,
            outages.end_h - start_h,
        )

    def _strikes(self, outages: Outages) -> Bools:
        """Which outages are failures of a job, (n_outages,)."""
        begins = outages.in_window | self.from_first
        return np.asarray(begins & (outages.start_h < outages.window_h), dtype=bool)


def _hits(
    row_h: Floats, window_h: float, begin_h: Floats, from_h: float, until_h: float
) -> tuple[Ints, Floats, Ints]:
    """Replication, instant since its start [h] and row of the trace, (n_met,) each.

    Replications begin at `begin_h` (n_replications,) of the trace, which is repeated for ever and
    whose rows are at `row_h` (n_rows,); they meet rows from `from_h` to `until_h` of their own.
    """

    def passed(trace_h: Floats) -> Ints:
        rounds, rest_h = np.divmod(trace_h, window_h)
        return rounds.astype(np.int64) * len(row_h) + np.searchsorted(row_h, rest_h, side="left")

    first, last = passed(begin_h + from_h), passed(begin_h + until_h)
    n_met = last - first
    require_room(
        BYTES_OF_A_ROW * float(n_met.sum()),
        f"{n_met.sum()} outages before {until_h:g} h",
        "a job {} times as short would fit",
    )
    replication = np.repeat(np.arange(len(begin_h)), n_met)
    within = np.arange(n_met.sum()) - np.repeat(np.cumsum(n_met) - n_met, n_met)
    round_, row = np.divmod(first[replication] + within, len(row_h))
    at_h = round_ * window_h + row_h[row] - begin_h[replication]
    # an instant at a border is of the chunk that counts it, whatever the subtraction rounds
    return replication, np.clip(at_h, from_h, np.nextafter(until_h, 0)), row


# ------------------------------------------------------------------------ nodes that join and leave


def presence(outages: Outages) -> tuple[Floats, Bools]:
    """Instants at which nodes of a log join or leave [h], 0 first, and the nodes present then.

    (n_epochs,) and (n_epochs, n_nodes). Raises BudgetError where the table does not fit.
    """
    if outages.lives is None:
        return np.zeros(1), np.ones((1, outages.n_nodes), dtype=bool)
    _, enters_h, leaves_h = outages.lives
    changes_h = np.concatenate([[0.0], enters_h, leaves_h])
    from_h = np.unique(changes_h[(changes_h >= 0) & (changes_h < outages.window_h)])
    require_room(
        float(len(from_h) * len(enters_h)),
        f"a table of {len(enters_h)} nodes that join and leave at {len(from_h)} instants",
        "dates {} times coarser would fit",
    )
    at_h = from_h[:, None]
    return from_h, (enters_h <= at_h) & (at_h < leaves_h)


def _epoch(from_h: Floats, at_h: Floats) -> Ints:
    """Between which changes instants [h] of the log lie, (n,)."""
    return np.asarray(np.searchsorted(from_h, at_h, side="right") - 1, dtype=np.int64)


def slots_at(present: Bools, place: Ints, replication: Ints, epoch: Ints, node: Ints) -> Ints:
    """Number of each node among the present ones, (n_met,).

    A job of n nodes has the first n of them: where a node joins or leaves, one changes at most.
    `present` is (n_epochs, n_nodes), `place` of each node in a random order (n_replications,
    n_nodes), the others are (n_met,).
    """
    if present.all():
        return np.asarray(place[replication, node])
    slot = np.empty(len(node), dtype=np.int64)
    for number in np.unique(epoch):
        rows = np.flatnonzero(epoch == number)
        of_epoch, row = np.unique(replication[rows], return_inverse=True)
        ordered = np.zeros((len(of_epoch), place.shape[1]), dtype=bool)
        np.put_along_axis(ordered, place[of_epoch], present[number][None, :], axis=1)
        before = np.cumsum(ordered, axis=1, dtype=np.int64) - 1
        slot[rows] = before[row, place[replication[rows], node[rows]]]
    return slot
