"""What a failure log says, once read: which node was down from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import NamedTuple, Self

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.open_ends import with_ends
from cprsim.records import Bools, Floats, Ints


class Causes(NamedTuple):
    """The cause of each outage, as the number of a name."""

    code: Ints  # (n_outages,) place in `names`
    names: tuple[str, ...]  # empty where the log names none

    @classmethod
    def of(cls, written: Sequence[str]) -> Self:
        """From one text per outage, (n_outages,)."""
        names, code = np.unique(np.asarray(written, dtype=object), return_inverse=True)
        return cls(code.astype(np.int64), tuple(names.tolist()))


@dataclass(frozen=True, slots=True)
class Outages:
    """Outages of the nodes of a real cluster, sorted by (start, node).

    Time 0 is the start of the observation, which ends at `window_h`. An outage that was under way
    at 0 has a negative start: it is no failure within the window, but its node was down.
    """

    node: Ints  # (n_outages,) number of the node, from 0
    start_h: Floats  # (n_outages,)
    end_h: Floats  # (n_outages,) maybe after window_h; equal to it where the node was still down
    ended: Bools  # (n_outages,) False where no end was seen
    guessed: Bools  # (n_outages,) True where the log has no end and `end_h` stands for it
    cause_code: Ints  # (n_outages,) place in `cause_names`
    chosen: Bools  # (n_outages,) whether it is of the cause that is asked about; the others compete
    cause_names: tuple[str, ...]
    n_nodes: int  # observed, also those that never failed
    window_h: float
    origin: str  # what time 0 is, as the log writes it
    node_names: tuple[str, ...] = ()  # of those that the log names
    notes: tuple[str, ...] = ()  # what the reader had to decide
    window_given: tuple[bool, bool] = (False, False)  # begin and end said, not taken from the log
    # of nodes that join and leave: when each was of age 0, entered, left [h], (n_nodes,) each
    lives: tuple[Floats, Floats, Floats] | None = None

    @property
    def n_outages(self) -> int:
        return len(self.node)

    @property
    def cause(self) -> tuple[str, ...]:
        """The cause of each outage, (n_outages,); empty where the log names none."""
        return tuple(self.cause_names[code] for code in self.cause_code.tolist())

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
        return self if mask.all() else self._taken(np.flatnonzero(mask))

    def _in_order(self) -> Outages:
        """By start and node, where the nodes' numbers have changed."""
        return _sorted(self)

    def _taken(self, index: Ints) -> Outages:
        """The outages of these numbers, in this order."""
        return replace(self, **{name: getattr(self, name)[index] for name in _COLUMNS})

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
        number = self.node_names.index(name)
        mine = self.where(self.node == number)
        one = slice(number, number + 1)
        lives = self.lives and (self.lives[0][one], self.lives[1][one], self.lives[2][one])
        return replace(
            mine, node=np.zeros_like(mine.node), n_nodes=1, node_names=(name,), lives=lives
        )

    def choosing(self, text: str) -> Outages:
        """All outages, those `chosen` whose cause contains a text, in whatever case.

        Raises
        ------
        ParameterError
            where there is none within the window.
        """
        named = np.array([text.lower() in name.lower() for name in self.cause_names], dtype=bool)
        chosen = named[self.cause_code]
        if not (chosen & self.in_window).any():
            there = np.unique(self.cause_code)
            names = sorted({self.cause_names[code] for code in there.tolist()} - {""})
            known = ", ".join(names[:12]) or "none"
            raise ParameterError(f"no outage has a cause with {text!r}; there are: {known}")
        return replace(self, chosen=chosen)

    def of_cause(self, text: str) -> Outages:
        """The outages whose cause contains a text, without the others; see `choosing`."""
        choosing = self.choosing(text)
        return choosing.where(choosing.chosen)

    def merged(self) -> Outages:
        """Overlapping outages of a node made one, as a node that is down can't fail.

        Outages without length are kept; an outage that begins where another of the same node
        begins, or before that one ends, joins it, and the first one's cause stands for both (of
        those that begin together a chosen one's). Where none overlap, these outages themselves.
        """
        order, up_to_h, begins = _merging(self)
        if begins.all():
            return self
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], self.n_outages) - 1 if self.n_outages else firsts
        kept = order[firsts]
        end_h, ended, guessed = self.end_h.copy(), self.ended.copy(), self.guessed.copy()
        end_h[kept] = up_to_h[lasts]
        ended[kept] = ~_any_of(~self.ended[order], firsts, lasts)
        guessed[kept] = _any_of(self.guessed[order], firsts, lasts)
        del order, up_to_h, firsts, lasts  # they are long
        merged = replace(self, end_h=end_h, ended=ended, guessed=guessed)
        return merged._taken(np.sort(kept))  # by start and node, as they were


_COLUMNS = ("node", "start_h", "end_h", "ended", "guessed", "cause_code", "chosen")


def outages_of(
    node: Ints,
    start_h: Floats,
    end_h: Floats,
    cause: Sequence[str] | Causes,
    *,
    n_nodes: int,
    window_h: float,
    origin: str,
    node_names: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    window_given: tuple[bool, bool] = (False, False),
    unended_h: float | None = None,
) -> Outages:
    """Outages from columns in any order: those that touch the window ``[0, window_h]``.

    Parameters
    ----------
    node, start_h, end_h, cause : (n,) columns; an `end_h` of NaN is an outage without an end
    n_nodes, window_h, origin, node_names, notes, window_given : see `Outages`; the notes get what
        is left out, closed, assumed or part of another outage
    unended_h : how long outages without an end last, see `open_ends.with_ends`

    Raises
    ------
    ParameterError
        where an outage ends before it begins.
    """
    if (end_h < start_h).any():
        raise ParameterError("an outage ends before it begins")
    ends = with_ends(node, start_h, end_h, window_h, unended_h)
    causes = cause if isinstance(cause, Causes) else Causes.of(cause)
    whole = Outages(
        node=node,
        start_h=start_h,
        end_h=ends.end_h,
        ended=~np.isnan(end_h),
        guessed=ends.guessed,
        cause_code=causes.code,
        chosen=np.ones(len(node), dtype=bool),
        cause_names=causes.names,
        n_nodes=n_nodes,
        window_h=window_h,
        origin=origin,
        node_names=node_names,
        notes=(*notes, *ends.notes),
        window_given=window_given,
    )
    kept = (start_h <= window_h) & ((start_h >= 0) | (ends.end_h > 0))
    outages = _sorted(whole.where(kept))
    counted = {
        "outage(s) outside the observation left out": int((~kept).sum()),
        "outage(s) of nodes that were down already, part of the outage under way": (
            outages.n_outages - int(_merging(outages)[2].sum())
        ),
    }
    more = tuple(f"{n} {what}" for what, n in counted.items() if n)
    return replace(outages, notes=(*outages.notes, *more))


def _sorted(outages: Outages) -> Outages:
    before = np.diff(outages.start_h) < 0
    before |= (np.diff(outages.start_h) == 0) & (np.diff(outages.node) < 0)
    if not before.any():
        return outages
    return outages._taken(np.lexsort((outages.node, outages.start_h)))


def _merging(outages: Outages) -> tuple[Ints, Floats, Bools]:
    """How outages of a node join.

    Returns
    -------
    order of the outages by node and start; in it, until when the node of each is down by then [h];
    in it, which strike a node that is up
    """
    order = np.argsort(outages.node, kind="stable")  # they are sorted by start
    node, start_h = outages.node[order], outages.start_h[order]
    new_node, later = node[1:] != node[:-1], start_h[1:] > start_h[:-1]
    if not (new_node | later).all():  # some of a node begin together
        order = np.lexsort((outages.end_h, ~outages.chosen, outages.start_h, outages.node))
    up_to_h = running_end(node, outages.end_h[order])
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = new_node | ((start_h[1:] >= up_to_h[:-1]) & later)
    return order, up_to_h, begins


def running_end(node: Ints, end_h: Floats) -> Floats:
    """Until when each node is down, outage after outage, (n,); `node` is sorted.

    Each step looks back twice as far; where one changes nothing, none that follows does.
    """
    up_to_h, back = end_h.copy(), 1
    while back < len(node):
        longer = (node[back:] == node[:-back]) & (up_to_h[:-back] > up_to_h[back:])
        if not longer.any():
            break
        up_to_h[back:][longer] = up_to_h[:-back][longer]
        back *= 2
    return up_to_h


def _any_of(flags: Bools, firsts: Ints, lasts: Ints) -> Bools:
    """Whether a flag is up anywhere from each first to its last, (n_groups,)."""
    up = np.append(0, np.cumsum(flags))
    return np.asarray(up[lasts + 1] > up[firsts], dtype=bool)
