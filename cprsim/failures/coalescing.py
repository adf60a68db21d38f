"""Repeats of one node within a short time taken as one failure, and of nodes as one event."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cprsim.failures.outages import Outages


def coalesced(outages: Outages, within_h: float) -> Outages:
    """Failures of one node that follow each other within a window, made one.

    An outage (or an instant) that begins no later than `within_h` after the end of what its node
    had before belongs to that; so do others after it. The first one's start and cause stand for
    all; the end is the last. How many were merged is noted.
    """
    merged = outages.merged(within_h)
    n_merged = outages.n_outages - merged.n_outages
    note = f"{n_merged} failure(s) within {within_h:.4g} h of one of the same node merged into it"
    return replace(merged, notes=(*outages.notes, note))


def brought_together(outages: Outages, within_h: float) -> Outages:
    """Failures of nodes that begin within a window of the one before begin with the first of them.

    What asks which nodes fail at one instant then finds those that fail nearly at once, in chains.
    How many would have been moved had each failure come at a random instant is noted too.
    """
    start_h = outages.start_h
    near = np.append(False, np.diff(start_h) <= within_h)[: len(start_h)] & (start_h >= 0)
    first = np.maximum.accumulate(np.where(near, 0, np.arange(len(near))))
    n_moved = int((start_h > start_h[first]).sum())
    n = int(outages.in_window.sum())
    by_chance = n * -np.expm1(-n * within_h / outages.window_h)
    note = (
        f"{n_moved} failure(s) within {within_h:.4g} h of the one before taken as one event with "
        f"it ({by_chance:.3g} would be, came all at random)"
    )
    moved = replace(outages, start_h=start_h[first], notes=(*outages.notes, note))
    return moved.in_order().merged()
