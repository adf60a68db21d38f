"""Repeats of one node within a short time taken as one failure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages, running_end
from cprsim.records import Bools, Ints


def coalesced(outages: Outages, within_h: float) -> Outages:
    """Failures of one node that follow each other within a window, made one.

    An outage (or an instant) that begins no later than `within_h` after the end of what its node
    had before belongs to that; so do others after it. The first one's start and cause stand for
    all, of the chosen cause where there is one among those that begin together; the end is the
    last. How many were merged is noted.

    Parameters
    ----------
    outages : the log
    within_h : the window [h]

    Raises
    ------
    ParameterError
        for a window that is negative or not finite.
    """
    if not 0 <= within_h < np.inf:
        raise ParameterError(f"a coalescing window is a time from 0 on, not {within_h!r} h")
    order, begins, up_to_h = _merging(outages, within_h)
    n_merged = int((~begins).sum())
    note = f"{n_merged} failure(s) within {within_h:.4g} h of one of the same node merged into it"
    noted = replace(outages, notes=(*outages.notes, note))
    if n_merged == 0:
        return noted
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], outages.n_outages) - 1
    kept = order[firsts]
    end_h, ended, guessed = outages.end_h.copy(), outages.ended.copy(), outages.guessed.copy()
    end_h[kept] = up_to_h[lasts]
    ended[kept] = np.logical_and.reduceat(outages.ended[order], firsts)
    guessed[kept] = np.logical_or.reduceat(outages.guessed[order], firsts)
    mask = np.zeros(outages.n_outages, dtype=bool)
    mask[kept] = True
    return replace(noted, end_h=end_h, ended=ended, guessed=guessed).where(mask)


def n_failures(outages: Outages, within_h: float) -> int:
    """Failures of the observation that are left with a window [h]."""
    order, begins, _ = _merging(outages, within_h)
    return int((outages.in_window & outages.chosen)[order[begins]].sum())


def _merging(outages: Outages, within_h: float) -> tuple[Ints, Bools, np.ndarray]:
    """Order by node and start; in it, which begin a failure, and until when the node is down."""
    order = np.lexsort((outages.end_h, ~outages.chosen, outages.start_h, outages.node))
    node, start_h = outages.node[order], outages.start_h[order]
    up_to_h = running_end(node, outages.end_h[order])
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (node[1:] != node[:-1]) | (start_h[1:] - up_to_h[:-1] > within_h)
    return order, begins, up_to_h
