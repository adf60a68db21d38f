"""What a log rests on: failures, and the hours that nodes were watched."""

from __future__ import annotations

from cprsim.failures.outages import Outages


def node_hours(outages: Outages) -> float:
    """Hours that all nodes were there together [h], down ones included."""
    if outages.lives is None:
        return outages.n_nodes * outages.window_h
    return float((outages.lives[2] - outages.lives[1]).sum())


def n_failures(outages: Outages) -> int:
    """Failures within the observation, of the chosen cause."""
    return int((outages.in_window & outages.chosen).sum())
