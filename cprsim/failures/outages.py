"""What a failure log says, once read: which node was down from when to when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np

from cprsim.errors import ParameterError
from cprsim.records import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Outages:
    """Outages of the nodes of a real cluster, sorted by (start, node).

    Time 0 is the start of the observation, which ends at `window_h`. An outage that was under way
    at 0 has a negative start: it is no failure within the window, but its node was down.
    """

    node: Ints  # (n_outages,) number of the node, from 0
    start_h: Floats  # (n_outages,)
    end_h: Floats  # (n_outages,) maybe after window_h; equal to it where no end is known
    ended: Bools  # (n_outages,) False where no end is known
    cause: tuple[str, ...]  # (n_outages,) empty where the log names none
    n_nodes: int  # observed, also those that never failed
    window_h: float
    origin: str  # what time 0 is, as the log writes it
    node_names: tuple[str, ...] = ()  # of those that the log names
    notes: tuple[str, ...] = ()  # what the reader had to decide

    @property
    def n_outages(self) -> int:
        return len(self.node)

    @property
    def down_h(self) -> Floats:
        """Length of each outage [h], (n_outages,)."""
        return self.end_h - self.start_h

    @property
    def in_window(self) -> Bools:
        """Which outages began within the observation, (n_outages,)."""
        return self.start_h >= 0

    def where(self, mask: Bools) -> Outages:
        """Those outages that `mask` (n_outages,) keeps; nodes and window stay as they are."""
        return replace(
            self,
            node=self.node[mask],
            start_h=self.start_h[mask],
            end_h=self.end_h[mask],
            ended=self.ended[mask],
            cause=tuple(cause for cause, keep in zip(self.cause, mask, strict=True) if keep),
        )

    def of_node(self, name: str) -> Outages:
        """The outages of one node alone.

        Raises
        ------
        ParameterError
            for a name that the log does not have.
        """
        if name not in self.node_names:
            near = get_close_matches(name, self.node_names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ParameterError(f"the log names no node {name!r}{hint}")
        mine = self.where(self.node == self.node_names.index(name))
        return replace(mine, node=np.zeros_like(mine.node), n_nodes=1, node_names=(name,))

    def of_cause(self, text: str) -> Outages:
        """The outages whose cause contains a text, in whatever case.

        Raises
        ------
        ParameterError
            where there is none within the window.
        """
        mine = np.array([text.lower() in cause.lower() for cause in self.cause], dtype=bool)
        if not (mine & self.in_window).any():
            known = ", ".join(sorted({cause for cause in self.cause if cause})[:12]) or "none"
            raise ParameterError(f"no outage has a cause with {text!r}; there are: {known}")
        return self.where(mine)

    def merged(self) -> Outages:
        """Overlapping outages of a node made one, as a node that is down can't fail.

        Outages without length are kept; an outage that begins where another of the same node
        begins, or before that one ends, joins it, and the first one's cause stands for both.
        """
        order = np.lexsort((self.end_h, self.start_h, self.node))
        node, start_h = self.node[order], self.start_h[order]
        up_to_h, ended = _running_end(node, self.end_h[order], self.ended[order])
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = (np.diff(node) != 0) | ((start_h[1:] >= up_to_h[:-1]) & (np.diff(start_h) > 0))
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], len(order)) - 1 if len(order) else firsts
        return _sorted(
            replace(
                self,
                node=node[firsts],
                start_h=start_h[firsts],
                end_h=up_to_h[lasts],
                ended=ended[lasts],
                cause=tuple(self.cause[i] for i in order[firsts]),
            )
        )


def outages_of(
    node: Ints,
    start_h: Floats,
    end_h: Floats,
    cause: tuple[str, ...],
    *,
    n_nodes: int,
    window_h: float,
    origin: str,
    node_names: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Outages:
    """Outages from columns in any order: those that touch the window ``[0, window_h]``.

    Parameters
    ----------
    node, start_h, end_h, cause : (n,) columns; an `end_h` of NaN is an outage that has not ended
    n_nodes, window_h, origin, node_names, notes : see `Outages`

    Raises
    ------
    ParameterError
        where an outage ends before it begins.
    """
    ended = ~np.isnan(end_h)
    until_h = np.where(ended, end_h, window_h)
    if (ended & (end_h < start_h)).any():
        raise ParameterError("an outage ends before it begins")
    whole = Outages(
        node, start_h, until_h, ended, cause, n_nodes, window_h, origin, node_names, notes
    )
    kept = (start_h <= window_h) & ((start_h >= 0) | (until_h > 0))
    return _sorted(whole.where(kept))


def _sorted(outages: Outages) -> Outages:
    order = np.lexsort((outages.node, outages.start_h))
    return replace(
        outages,
        node=outages.node[order],
        start_h=outages.start_h[order],
        end_h=outages.end_h[order],
        ended=outages.ended[order],
        cause=tuple(outages.cause[i] for i in order),
    )


def _running_end(node: Ints, end_h: Floats, ended: Bools) -> tuple[Floats, Bools]:
    """Until when each node is down, outage after outage, and whether that end was observed."""
    up_to_h, all_ended = end_h.copy(), ended.copy()
    borders = np.flatnonzero(np.diff(node)) + 1
    for first, last in zip(np.append(0, borders), np.append(borders, len(node)), strict=True):
        up_to_h[first:last] = np.maximum.accumulate(end_h[first:last])
        all_ended[first:last] = np.logical_and.accumulate(ended[first:last])
    return up_to_h, all_ended
