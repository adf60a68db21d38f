"""Nodes that join and leave: when each was installed, and from when to when it was watched."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.records import Floats


@dataclass(frozen=True, slots=True)
class NodeLives:
    """When each node was there, on the clock of its log (0 is where the observation begins)."""

    names: tuple[str, ...]
    born_h: Floats  # (n_nodes,) when its age was 0; before 0 where it was installed earlier
    enters_h: Floats  # (n_nodes,) from when on its failures are in the log; at least `born_h`
    leaves_h: Floats  # (n_nodes,) until when

    def __post_init__(self) -> None:
        """Raise ParameterError for a node that leaves before it enters."""
        wrong = np.flatnonzero(~(self.born_h <= self.enters_h) | ~(self.enters_h < self.leaves_h))
        if len(wrong):
            name = self.names[int(wrong[0])]
            raise ParameterError(
                f"node {name!r} does not enter after its installation, and leave after that"
            )


def with_lives(outages: Outages, lives: NodeLives) -> Outages:
    """The log of these nodes, each watched while it was there.

    Nodes that the log does not name count too: they never failed. Outages that began before their
    node entered or after it left are left out and counted; so are nodes that were not there within
    the observation.

    Raises
    ------
    ParameterError
        where the log names a node of which nothing is said, or no node was there.
    """
    enters_h = np.maximum(lives.enters_h, 0.0)
    leaves_h = np.minimum(lives.leaves_h, outages.window_h)
    there = enters_h < leaves_h
    number = {name: place for place, name in enumerate(lives.names)}
    if unknown := [name for name in outages.node_names if name not in number]:
        raise ParameterError(
            f"the log names node {unknown[0]!r} (and {len(unknown) - 1} more), of which the list "
            "of nodes says nothing"
        )
    if not there.any():
        raise ParameterError("no node was there within the observation: are both on one clock?")
    place = np.array([number[name] for name in outages.node_names], dtype=np.int64)
    node = place[outages.node] if outages.n_outages else outages.node
    mine = there[node] & (outages.start_h < leaves_h[node])
    mine &= (outages.start_h >= enters_h[node]) | (outages.start_h < 0)
    kept = replace(outages, node=node).where(mine)
    shift = np.cumsum(there) - 1
    counted = {
        "outage(s) left out that began while their node was not there": int((~mine).sum()),
        "node(s) left out that were not there within the observation": int((~there).sum()),
    }
    late, early = int((enters_h[there] > 0).sum()), int((leaves_h < outages.window_h)[there].sum())
    return replace(
        kept,
        node=shift[kept.node],
        n_nodes=int(there.sum()),
        window_h=float(leaves_h[there].max()),  # nothing is watched once all have left
        node_names=tuple(np.array(lives.names, dtype=object)[there].tolist()),
        lives=(lives.born_h[there], enters_h[there], leaves_h[there]),
        notes=(
            *outages.notes,
            f"{late} node(s) joined after the observation began, {early} left before its end",
            *(f"{n} {what}" for what, n in counted.items() if n),
        ),
    )._in_order()
