"""Whether failures come as often at all times of a log: a test that sees any trend or hump.

The null hypothesis, no trend: the gaps between failures may be of any distribution (not only
exponential), and any order of them is as likely as any other. Failures that come in bursts break
this; hence blocks of successive gaps are shuffled, which keeps bursts whole that are short compared
with a block (a twentieth of the failures or less).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from cprsim.failures.outages import ROUNDING_H, Outages
from cprsim.failures.sources import stream
from cprsim.job.records import Floats, Ints

P_ALARM = 0.05  # below it a trend is warned of: the share of false alarms
N_SHUFFLED = 999
N_BLOCKS = 20  # of successive gaps, at least; fewer than twice as many
FEWEST_GAPS = 6  # below which nothing can be told
SMALLEST_PIECE = 0.1  # share of the failures that each piece of the log holds at least
SILENT_GAPS = 3.0  # how many times the longest gap a time without failures at an end lasts
SHUFFLE_SEED = 0


@dataclass(frozen=True, slots=True)
class Trend:
    """Whether failures come as often at all times: the smaller p of two, by shuffled logs.

    Laplace's sees a rate that rises or falls, the ratio of three pieces one that does both.
    """

    first_half: int  # groups of failures
    second_half: int
    p_value: float = nan  # NaN where there are too few gaps
    borders_h: tuple[float, ...] = ()  # (4,) of the most likely pieces, both ends included
    rates_per_h: tuple[float, ...] = ()  # (3,)

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
    """Look for a trend in the instants at which nodes failed, those of one instant counted once."""
    at_h, window_h = np.unique(outages.failed_at_h), outages.window_h
    halves = int((at_h < window_h / 2).sum()), int((at_h >= window_h / 2).sum())
    gaps_h = np.diff(at_h, prepend=0.0, append=window_h)
    inner_h = gaps_h[1:-1]
    if len(inner_h) < FEWEST_GAPS:
        return Trend(*halves)
    # a log that begins or ends with a failure, or with a silence, has no gap there to shuffle
    ends_h = gaps_h[[0, -1]]
    left_out = (ends_h <= ROUNDING_H) | (ends_h > SILENT_GAPS * inner_h.max())
    first_h, last_h = left_out * ends_h * (1, -1) + (0.0, window_h)
    tested_h = gaps_h[int(left_out[0]) : len(gaps_h) - int(left_out[1])]
    begins_h, n_before = _shuffled_blocks(tested_h)
    ratios, best = _three_pieces(begins_h, n_before, float(tested_h.sum()), len(tested_h))
    smaller = _p_values(np.stack([_laplace(begins_h), ratios])).min(axis=0)
    borders_h = np.array([first_h, *(first_h + begins_h[0, best]), last_h])
    counts = np.diff([0, *n_before[best], len(tested_h)])
    rates_per_h = tuple((counts / np.diff(borders_h)).tolist())
    p_value = float((smaller <= smaller[0]).mean())
    return Trend(*halves, p_value, tuple(borders_h.tolist()), rates_per_h)


def silences(outages: Outages) -> list[str]:
    """Return a question for each given end of the window that is too long without a failure."""
    at_h = np.unique(outages.failed_at_h)
    if len(at_h) <= FEWEST_GAPS:
        return []
    longest_h = float(np.diff(at_h).max())
    ends = (("first", at_h[0]), ("last", outages.window_h - at_h[-1]))
    return [
        f"no failure in the {end} {silent_h:.5g} h of the window, where the longest gap between "
        f"failures is {longest_h:.4g} h: was it watched then? --period says so otherwise"
        for (end, silent_h), is_given in zip(ends, outages.window_given, strict=True)
        if is_given and silent_h > SILENT_GAPS * longest_h
    ]


def _shuffled_blocks(gaps_h: Floats) -> tuple[Floats, Ints]:
    """When blocks of gaps begin and end [h] in each order, the true one first; the gaps before."""
    n_each = max(1, len(gaps_h) // N_BLOCKS)
    n = len(gaps_h) // n_each
    length_h = gaps_h[: n * n_each].reshape(n, n_each).sum(axis=1)
    orders = np.tile(np.arange(n), (1 + N_SHUFFLED, 1))
    orders[1:] = stream(SHUFFLE_SEED, 0, "fit/trend").permuted(orders[1:], axis=1)
    begins_h = np.cumsum(np.pad(length_h[orders], ((0, 0), (1, 0))), axis=1)
    return begins_h, np.arange(n + 1) * n_each


def _laplace(begins_h: Floats) -> Floats:
    """Distance of the mean begin of a block from its mean over all orders, (n_orders,)."""
    n = begins_h.shape[1] - 1
    places = np.arange(n)[::-1] - (n - 1) / 2  # how often a block comes before others
    return np.asarray(np.abs(np.diff(begins_h) @ places), dtype=np.float64)


def _three_pieces(
    begins_h: Floats, n_before: Ints, total_h: float, n_gaps: int
) -> tuple[Floats, Ints]:
    """Log-likelihood ratio of the best three pieces, (n_orders,), and their borders' blocks."""
    i, j = np.triu_indices(len(n_before), 1)
    n = np.stack([n_before[i], n_before[j] - n_before[i], n_gaps - n_before[j]])
    enough = n.min(axis=0) >= max(SMALLEST_PIECE * n_gaps, 1)
    i, j, n = i[enough], j[enough], n[:, enough]
    ratio = sum(
        count * np.log(count / np.maximum(length_h, 1e-300))
        for count, length_h in zip(
            n, (begins_h[:, i], begins_h[:, j] - begins_h[:, i], total_h - begins_h[:, j]),
            strict=True,
        )
    )  # fmt: skip
    best = int(ratio[0].argmax())
    return ratio.max(axis=1) - n_gaps * np.log(n_gaps / total_h), np.array([i[best], j[best]])


def _p_values(statistics: Floats) -> Floats:
    """Share of the columns that are as large, for each entry of each row."""
    as_large = statistics[:, None, :] >= statistics[:, :, None] * (1 - 1e-12)
    return np.asarray(as_large.mean(axis=2))
