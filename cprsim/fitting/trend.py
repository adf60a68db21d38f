"""Whether failures come as often at all times of a log: a test that sees any trend or hump.

What is assumed where there is no trend: the gaps between failures may be of any distribution (not
only exponential), and any order of them is as likely as any other. Failures that come in bursts
break this; hence blocks of successive gaps are shuffled, which keeps bursts whole that are short
beside a block (a twentieth of the failures or less). Bursts that last longer are taken for a trend.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from cprsim.failures.outages import Outages
from cprsim.failures.streams import stream
from cprsim.records import Floats, Ints

P_ALARM = 0.05  # below it a trend is warned of: the share of false alarms
N_SHUFFLED = 999
N_BLOCKS = 20  # of successive gaps, at least; fewer than twice as many
FEWEST_GAPS = 6  # below which nothing can be told
SMALLEST_PIECE = 0.1  # share of the failures that each piece of the log holds at least
SILENT = 3.0  # how many times the longest gap a time without failures at an end lasts
SEED = 0


@dataclass(frozen=True, slots=True)
class Trend:
    """Whether failures come as often at all times of a log.

    Two statistics are held against those of shuffled logs: Laplace's, the distance of the mean
    instant from the middle, which sees a rate that rises or falls; and the likelihood ratio of
    three pieces with a rate each, which sees a rate that rises and falls again. The p-value is
    that of the smaller of the two, among the smaller ones of shuffled logs.
    """

    first_half: int  # groups of failures
    second_half: int
    p_value: float  # NaN where there are too few gaps
    laplace_z: float  # over its error for gaps of this spread (Lewis & Robinson 1974)
    p_laplace: float
    p_pieces: float
    borders_h: tuple[float, ...]  # (4,) of the most likely pieces, both ends included
    rates_per_h: tuple[float, ...]  # (3,)

    @property
    def differs(self) -> bool:
        """Whether there is a trend, at `P_ALARM`."""
        return self.p_value < P_ALARM

    def in_words(self) -> str:
        """The pieces of the log and what speaks for them."""
        rates = " then ".join(f"{24 * rate:.3g}" for rate in self.rates_per_h)
        days = " and ".join(f"day {border_h / 24:.4g}" for border_h in self.borders_h[1:-1])
        return (
            f"a trend that no distribution here describes: {rates} failures a day, with borders at "
            f"{days} (p {self.p_value:.2g}; false in {P_ALARM:.0%} of logs without a trend)"
        )


def trend(outages: Outages) -> Trend:
    """Look for a trend in the instants at which nodes of the cluster failed.

    Parameters
    ----------
    outages : of the log; nodes that fail at the same instant count once

    Notes
    -----
    The test is conditional on the gaps, those before the first and after the last failure
    included (see `silences` for those that are long), and random in the shuffled logs, whose seed
    is fixed.
    """
    at_h = np.unique(outages.failed_at_h)
    n_first = int((at_h < outages.window_h / 2).sum())
    gaps_h = np.diff(at_h, prepend=0.0, append=outages.window_h)
    inner_h = gaps_h[1:-1]
    if len(inner_h) < FEWEST_GAPS:
        nan = float("nan")
        return Trend(n_first, len(at_h) - n_first, nan, nan, nan, nan, (), ())
    # a log that begins or ends with a failure, or with a silence, has no gap there to shuffle
    whole = (gaps_h > 0) & (gaps_h <= SILENT * inner_h.max())
    first_h, last_h = (
        (0.0 if whole[0] else gaps_h[0]),
        outages.window_h - (0.0 if whole[-1] else gaps_h[-1]),
    )
    tested_h = gaps_h[(0 if whole[0] else 1) : (None if whole[-1] else -1)]
    blocks = _Blocks.of(tested_h)
    orders = blocks.shuffled(stream(SEED, 0, "fit/trend"))
    p_each = _p_values(np.stack([blocks.laplace(orders), blocks.pieces(orders)[0]]))
    smaller = p_each.min(axis=0)
    first, last = blocks.pieces(orders[:1])[1][0]
    starts_h, n_before = blocks.begins(orders[0])
    inner = (float(first_h + starts_h[first]), float(first_h + starts_h[last]))
    borders_h = (float(first_h), *inner, float(last_h))
    counts = np.diff([0, n_before[first], n_before[last], len(tested_h)])
    return Trend(
        first_half=n_first,
        second_half=len(at_h) - n_first,
        p_value=float((smaller <= smaller[0]).mean()),
        laplace_z=_lewis_robinson(at_h, inner_h, outages.window_h),
        p_laplace=float(p_each[0, 0]),
        p_pieces=float(p_each[1, 0]),
        borders_h=borders_h,
        rates_per_h=tuple((counts / np.diff(borders_h)).tolist()),
    )


def silences(outages: Outages) -> list[str]:
    """What to ask where nothing fails at a given end of the window for longer than anywhere else.

    An end that is the log's own first or last instant has no silence of its own.
    """
    at_h = np.unique(outages.failed_at_h)
    if len(at_h) <= FEWEST_GAPS:
        return []
    longest_h = float(np.diff(at_h).max())
    ends = (("first", at_h[0]), ("last", outages.window_h - at_h[-1]))
    given = outages.window_given
    return [
        f"no failure in the {which} {silent_h:.5g} h of the window, where the longest gap between "
        f"failures is {longest_h:.4g} h: was it watched then? --period says so otherwise"
        for (which, silent_h), is_given in zip(ends, given, strict=True)
        if is_given and silent_h > SILENT * longest_h
    ]


def _lewis_robinson(at_h: Floats, inner_h: Floats, window_h: float) -> float:
    """Laplace's statistic over the gaps' standard deviation in units of their mean."""
    spread = float(inner_h.std(ddof=1) / inner_h.mean())
    return float((at_h.mean() / window_h - 0.5) * sqrt(12 * len(at_h)) / max(spread, 1e-9))


def _p_values(statistics: Floats) -> Floats:
    """Share of the columns that are as large, for each entry of each row."""
    ordered = np.sort(statistics, axis=1)
    n = statistics.shape[1]
    below = [
        np.searchsorted(row, values * (1 - 1e-12), side="left")
        for row, values in zip(ordered, statistics, strict=True)
    ]
    return np.asarray((n - np.stack(below)) / n, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Successive gaps in blocks of as many; what is left over stays at the end."""

    n_each: int
    length_h: Floats  # (n_blocks,)
    rest_h: float
    n_rest: int

    @classmethod
    def of(cls, gaps_h: Floats) -> _Blocks:
        n_each = max(1, len(gaps_h) // N_BLOCKS)
        n_blocks = len(gaps_h) // n_each
        whole = gaps_h[: n_blocks * n_each].reshape(n_blocks, n_each)
        rest = gaps_h[n_blocks * n_each :]
        return cls(n_each, whole.sum(axis=1), float(rest.sum()), len(rest))

    @property
    def n(self) -> int:
        return len(self.length_h)

    def shuffled(self, rng: np.random.Generator) -> Ints:
        """Orders of the blocks, the true one first, (1 + N_SHUFFLED, n_blocks)."""
        orders = np.tile(np.arange(self.n), (1 + N_SHUFFLED, 1))
        orders[1:] = rng.permuted(orders[1:], axis=1)
        return orders

    def begins(self, orders: Ints) -> tuple[Floats, Ints]:
        """When each block begins [h], and how many gaps lie before it; the end too, (..., n+1)."""
        lengths_h = self.length_h[orders]
        before = np.concatenate([np.zeros((*orders.shape[:-1], 1)), lengths_h], axis=-1)
        return np.cumsum(before, axis=-1), np.arange(self.n + 1) * self.n_each

    def laplace(self, orders: Ints) -> Floats:
        """Distance of the mean begin of a block from its mean over all orders, (n_orders,)."""
        places = np.arange(self.n)[::-1] - (self.n - 1) / 2  # how often a block comes before others
        return np.asarray(np.abs(self.length_h[orders] @ places), dtype=np.float64)

    def pieces(self, orders: Ints) -> tuple[Floats, Ints]:
        """Log-likelihood ratio of the best three pieces, and the two blocks where they meet.

        Returns
        -------
        (n_orders,) ratios; (n_orders, 2) numbers of blocks
        """
        at_h, n_before = self.begins(orders)
        n_gaps = int(n_before[-1]) + self.n_rest
        total_h = at_h[:, -1] + self.rest_h
        smallest = max(SMALLEST_PIECE * n_gaps, 1)
        i, j = np.triu_indices(self.n + 1, 1)
        enough = np.minimum(
            np.minimum(n_before[i], n_before[j] - n_before[i]), n_gaps - n_before[j]
        )
        i, j = i[enough >= smallest], j[enough >= smallest]
        # the whole log-likelihood for each pair is a sum of three terms of one piece each
        ratio = (
            _term(n_before[i], at_h[:, i])
            + _term(n_before[j] - n_before[i], at_h[:, j] - at_h[:, i])
            + _term(n_gaps - n_before[j], total_h[:, None] - at_h[:, j])
        )
        best = ratio.argmax(axis=1)
        whole = n_gaps * np.log(n_gaps / total_h)
        return ratio[np.arange(len(best)), best] - whole, np.stack([i[best], j[best]], axis=1)


def _term(n: Ints, time_h: Floats) -> Floats:
    return np.asarray(n * np.log(n / np.maximum(time_h, 1e-300)), dtype=np.float64)
