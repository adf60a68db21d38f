"""From a failure log to times that a distribution can be fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np

from cprsim.failures.outages import ROUNDING_H, Outages, by_node
from cprsim.job.records import Bools, Floats, Ints

Age = Literal["new", "unknown"]
"""Of nodes as their observation begins: if `unknown`, their first up-times are left out."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Times to an event or the end of observation (censored); times of zero are only counted."""

    duration_h: Floats  # (n,) above 0
    observed: Bools  # (n,) False where it had not ended yet (right-censored)
    entry_h: Floats  # (n,) age at which the observation began (left truncation), mostly 0
    limit_h: Floats  # (n,) age at which it would have been censored
    unit: Ints  # (n,) node that it belongs to: times of one node may resemble each other
    competed: Bools  # (n,) censored as something else ended it, which was not asked about
    n_zero: int = 0

    @property
    def n(self) -> int:
        return len(self.duration_h)

    @property
    def n_observed(self) -> int:
        return int(self.observed.sum())

    @property
    def total_h(self) -> float:
        """Time under observation [h]."""
        return float((self.duration_h - self.entry_h).sum())

    @property
    def longest_h(self) -> float:
        """Longest of them, whether it ended or not [h]; 0 where there are none."""
        return float(self.duration_h.max(initial=0.0))

    @property
    def hours_per_end(self) -> float:
        """Time under observation per observed end [h]: the mean that the log itself supports."""
        return self.total_h / self.n_observed if self.n_observed > 0 else inf

    def extrapolates(self, mean_h: float) -> bool:
        """Whether a fitted mean [h] exceeds the longest observed time."""
        return mean_h > self.longest_h

    def at_most(self, n: int) -> tuple[Lifetimes, int]:
        """Every k-th of them, so that there are `n` or a few fewer; and k, 1 for all of them."""
        nth = -(-self.n // n)
        return (self, 1) if nth <= 1 else (self.where(slice(None, None, nth)), nth)

    def of_units(self, nth: int) -> Lifetimes:
        """Those of every n-th unit, whole."""
        return self.where(np.unique(self.unit, return_inverse=True)[1] % nth == 0)

    def where(self, rows: Bools | Ints | slice) -> Lifetimes:
        """Those that a mask (n,) keeps, of these numbers in this order, or of a slice."""
        if isinstance(rows, np.ndarray) and rows.dtype == bool and rows.all():
            return self  # they are long
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})

    def at_risk_h(self, borders_h: Floats) -> Floats:
        """Time [h] that all of them spent under observation between ages, (n_borders - 1,)."""
        younger_h = [
            np.minimum(self.duration_h, border).sum() - np.minimum(self.entry_h, border).sum()
            for border in borders_h
        ]
        return np.diff(np.array(younger_h, dtype=np.float64))

    def ends(self) -> tuple[Floats, Ints]:
        """Ages at which some ended, (n_ages,) increasing, and how many; rounding makes no two."""
        ages_h = np.sort(self.duration_h[self.observed])
        firsts = np.flatnonzero(np.diff(ages_h, prepend=-np.inf) > ROUNDING_H)
        return ages_h[firsts], np.diff(firsts, append=len(ages_h))

    def n_at_risk(self, age_h: Floats) -> Ints:
        """How many were under observation just before ages, (n_ages,)."""
        left = np.searchsorted(np.sort(self.duration_h), age_h, side="left")
        return np.searchsorted(np.sort(self.entry_h), age_h, side="left") - left


_COLUMNS = ("duration_h", "observed", "entry_h", "limit_h", "unit", "competed")


def lifetimes_of(
    duration_h: Floats,
    observed: Bools | None = None,
    *,
    limit_h: Floats | None = None,
    entry_h: Floats | None = None,
    unit: Ints | None = None,
    competed: Bools | None = None,
) -> Lifetimes:
    """Lifetimes from columns, without those of zero."""
    duration_h = np.asarray(duration_h, dtype=np.float64)
    n = len(duration_h)
    observed = np.ones(n, dtype=bool) if observed is None else np.asarray(observed, dtype=bool)
    entry_h = np.broadcast_to(0.0, n) if entry_h is None else np.asarray(entry_h, dtype=np.float64)
    limit_h = np.where(observed, inf, duration_h) if limit_h is None else limit_h
    is_positive = duration_h - entry_h > ROUNDING_H
    return Lifetimes(
        duration_h, observed, entry_h, np.asarray(limit_h, dtype=np.float64),
        np.arange(n, dtype=np.int32) if unit is None else unit,
        np.broadcast_to(False, n) if competed is None else competed,
        int((~is_positive & observed).sum()),
    ).where(is_positive)  # fmt: skip


def gaps(outages: Outages) -> Lifetimes:
    """Hours between (chosen) failures of the cluster, of whatever node.

    The gap at a given end of the window is censored; that from a given begin on counts, which is
    exact if it is exponential.
    """
    from_given, to_given = outages.window_given
    at_h = outages.failed_at_h
    ends_h = np.diff(at_h, prepend=0.0) if from_given else np.diff(at_h)
    open_h = outages.window_h - at_h[-1:] if to_given else np.zeros(0)
    ended = np.append(np.ones(len(ends_h), dtype=bool), np.zeros(len(open_h), dtype=bool))
    return lifetimes_of(np.append(ends_h, open_h), ended)


def repair_times(outages: Outages) -> Lifetimes:
    """Length of each outage of the window whose end is known, or censored as it was still down."""
    chosen = outages.in_window & outages.chosen & ~outages.guessed
    return lifetimes_of(outages.down_h[chosen], outages.ended[chosen], unit=outages.node[chosen])


def uptimes(outages: Outages, age: Age | None = None) -> Lifetimes:
    """How long each node stayed up, from the end of an outage to the start of the next.

    Censored at the end of the window, where the node leaves, and by outages of causes that were not
    chosen (competing risks: independent, and each renews the node). The first up-time counts from
    the installation, where that is known, seen from the entry on (left truncation).
    """
    outages = outages.where(outages.placed)  # where the node is unknown, no node's age is known
    order = by_node(outages)
    # each up-time begins at 0 or at the end of an outage, and ends at the next outage or never
    n_each = np.bincount(outages.node, minlength=outages.n_nodes) + 1
    is_first = np.zeros(n_each.sum(), dtype=bool)
    is_first[np.cumsum(n_each) - n_each] = True
    last = np.append(is_first[1:], True)
    node = np.repeat(np.arange(outages.n_nodes, dtype=outages.node.dtype), n_each)
    if outages.lives is None:
        entry_h = None
        begin_h, until_h = np.zeros(len(node)), np.full(len(node), outages.window_h)
    else:
        born_h, enters_h, leaves_h = outages.lives
        entry_h = np.where(is_first, (enters_h - born_h)[node], 0.0)
        begin_h, until_h = enters_h[node], leaves_h[node]
    end_h = until_h.copy()
    begin_h[~is_first] = outages.end_h[order]
    end_h[~last] = outages.start_h[order]
    guessed = np.zeros(len(last), dtype=bool)
    guessed[~is_first] = outages.guessed[order]
    ended = ~last
    ended[~last] = outages.chosen[order]
    # under way at 0: no up-time before it; down at the end: none after it
    is_uptime = (end_h >= begin_h) & ~(last & (begin_h >= until_h))
    is_uptime &= ~(guessed & (end_h <= begin_h))  # closed by the next failure
    if age == "unknown":
        is_uptime &= ~is_first
    competed = ~(last | ended)
    until_h[competed] = end_h[competed]
    if entry_h is not None:
        begin_h -= entry_h
    end_h -= begin_h  # since the renewal, as all columns are
    until_h -= begin_h
    del outages, order, last, is_first, guessed, begin_h  # they are long, as are those below
    end_h = end_h[is_uptime]
    until_h = until_h[is_uptime]
    node = node[is_uptime]
    return lifetimes_of(
        end_h,
        ended[is_uptime],
        entry_h=None if entry_h is None else entry_h[is_uptime],
        limit_h=until_h,
        unit=node,
        competed=competed[is_uptime],
    )
