"""Outages of which a log names no end: how long they are taken to last, and what is said of it."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from cprsim.records import Bools, Floats, Ints


class Ends(NamedTuple):
    """The end of every outage."""

    end_h: Floats  # (n,)
    guessed: Bools  # (n,) True where the log does not say that the node was down until then
    notes: tuple[str, ...]  # how many ends are no ends of the log


def next_failure_h(node: Ints, start_h: Floats) -> Floats:
    """When the node of each outage fails next, later than at its start [h], (n,); inf if never."""
    order = np.lexsort((start_h, node))
    by_node, by_start_h = node[order], start_h[order]
    new_node = np.diff(by_node) != 0
    last_of_instant = np.append(new_node | (np.diff(by_start_h) > 0), True)
    lasts = np.flatnonzero(last_of_instant)
    follows_h = np.append(np.where(new_node, inf, by_start_h[1:]), inf)[lasts]
    next_h = np.empty(len(node))
    next_h[order] = np.repeat(follows_h, np.diff(lasts, prepend=-1))
    return next_h


def with_ends(
    node: Ints, start_h: Floats, end_h: Floats, window_h: float, unended_h: float | None
) -> Ends:
    """Give every outage an end.

    A node that fails again was up before: its next failure closes an outage at the latest.

    Parameters
    ----------
    node, start_h, end_h : (n,) columns in any order, times in [h]; no end is a NaN
    window_h : when the observation ends [h]
    unended_h : how long an outage without an end lasts [h]; None: until the node's next failure,
        else to the end of the observation
    """
    none = np.isnan(end_h)
    if not none.any():
        return Ends(end_h, none, ())
    next_h = next_failure_h(node, start_h)
    closed = none & (next_h <= window_h)
    if unended_h is None:
        until_h = np.where(closed, next_h, np.maximum(window_h, start_h))
        notes = {
            "closed by the next failure of the node": int(closed.sum()),
            "still under way at the end of the observation": int((none & ~closed).sum()),
        }
        guessed = closed
    else:
        until_h = np.minimum(start_h + unended_h, next_h)
        what = f"taken to last {unended_h:.6g} h" if unended_h > 0 else "taken as points in time"
        cut = none & (next_h < start_h + unended_h)
        notes = {what: int(none.sum()), "of these cut at the node's next failure": int(cut.sum())}
        guessed = none
    said = tuple(f"{n} outage(s) without an end, {what}" for what, n in notes.items() if n)
    return Ends(np.where(none, until_h, end_h), guessed, said)
