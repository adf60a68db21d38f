"""Which nodes of a log were there when, and which of them a job has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cprsim.failures.outages import Outages
from cprsim.failures.sources import require_room
from cprsim.records import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Presence:
    """Nodes that join and leave: the same ones are there between two instants of `from_h`."""

    from_h: Floats  # (n_epochs,) increasing, 0 first [h]
    present: Bools  # (n_epochs, n_nodes)

    @classmethod
    def of(cls, outages: Outages) -> Presence:
        """By when the nodes of a log enter and leave; else all are there all along.

        Raises BudgetError where a table of so many nodes and changes does not fit.
        """
        if outages.lives is None:
            return cls(np.zeros(1), np.ones((1, outages.n_nodes), dtype=bool))
        _, enters_h, leaves_h = outages.lives
        changes = np.concatenate([[0.0], enters_h, leaves_h])
        from_h = np.unique(changes[(changes >= 0) & (changes < outages.window_h)])
        require_room(
            float(len(from_h) * len(enters_h)),
            f"a table of {len(enters_h)} nodes that join and leave at {len(from_h)} instants",
            "dates {} times coarser would fit",
        )
        at_h = from_h[:, None]
        return cls(from_h, (enters_h <= at_h) & (at_h < leaves_h))

    def epoch(self, at_h: Floats) -> Ints:
        """Between which changes instants [h] of the log lie, (n,)."""
        return np.asarray(np.searchsorted(self.from_h, at_h, side="right") - 1, dtype=np.int64)

    @property
    def n_present(self) -> Ints:
        """How many nodes are there, (n_epochs,)."""
        return np.asarray(self.present.sum(axis=1), dtype=np.int64)

    def slots(self, place: Ints, replication: Ints, epoch: Ints, node: Ints) -> Ints:
        """Number of each node among those that are there, (n_met,).

        A job of n nodes has the first n of them: where a node joins or leaves, one of them changes
        at most.

        Parameters
        ----------
        place : (n_replications, n_nodes) of each node in a random order
        replication, epoch, node : (n_met,) in which replication and when which node is looked for
        """
        if self.present.all():
            return np.asarray(place[replication, node])
        slot = np.empty(len(node), dtype=np.int64)
        for number in np.unique(epoch):
            rows = np.flatnonzero(epoch == number)
            of_epoch, row = np.unique(replication[rows], return_inverse=True)
            ordered = np.zeros((len(of_epoch), place.shape[1]), dtype=bool)
            np.put_along_axis(ordered, place[of_epoch], self.present[number][None, :], axis=1)
            before = np.cumsum(ordered, axis=1, dtype=np.int64) - 1
            slot[rows] = before[row, place[replication[rows], node[rows]]]
        return slot
