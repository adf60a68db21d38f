"""The rate at the end of a log whatever its course: constant, log-linear, or in pieces anywhere.

Each of the three has a third of the prior weight, that of pieces spread evenly over their number
and then over all places of their borders; the evidence of all places is summed exactly, one piece
after the other (Fearnhead 2006, Statistics and Computing 16; Barry and Hartigan 1993; both
recalled). Rates have an exponential prior with the log's mean rate, and the rise of a log-linear
one over the log a normal prior in its logarithm; its evidence is Laplace's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaln, logsumexp, ndtr

from cprsim.estimate import Estimate, How
from cprsim.records import Floats

RISE_SD = 1.5  # prior of the rise of a log-linear rate over the log, in its logarithm
SHARE = np.log(1 / 3)  # of each kind of course
TOLD = (0.025, 0.5, 0.975)
WITHIN, STEPS = 5.0, 4001  # of the logarithm of the rate about that of its mean


class FittedRate(NamedTuple):
    """A log-linear rate, fitted."""

    at: Floats  # (2,) logarithm of the rate in the middle [1/h], and its rise over the log
    information: Floats  # (2, 2) of both
    expected: Floats  # (n_bins,) counts


def rate_at_end(
    counts: Floats, hours: Floats, line: FittedRate, wider: float, *, most: int, smallest: int
) -> Estimate:
    """Median and central 95 % of the rate at the end of the log [1/h].

    Parameters
    ----------
    counts, hours : (n_bins,) failures and time of each bin, in order
    line : the log-linear rate of these counts
    wider : variance over mean of the counts, which makes so many of them worth one
    most, smallest : pieces at most, and bins of each at least
    """
    n, h = counts / wider, hours / wider
    prior_h = float(h.sum() / n.sum())
    last_n, last_h, weight = _last_piece(n, h, prior_h, most, smallest)
    line = FittedRate(line.at, line.information / wider, line.expected / wider)
    of_line = _evidence(n, h, line, prior_h)
    total = np.logaddexp(logsumexp(weight), of_line)
    log_rate = np.linspace(-WITHIN, WITHIN, STEPS) - np.log(prior_h)
    of_pieces = gammainc(1 + last_n, np.exp(log_rate)[:, None] * (prior_h + last_h))
    end = np.array([1.0, 0.5])
    error = np.sqrt(end @ np.linalg.inv(line.information) @ end)
    below = of_pieces @ np.exp(weight - total)
    below += np.exp(of_line - total) * ndtr((log_rate - end @ line.at) / error)
    low, median, high = np.exp(np.interp(TOLD, below, log_rate))
    return Estimate(float(median), float(low), float(high), round(counts.sum()), How.POSTERIOR)


def _last_piece(
    n: Floats, h: Floats, prior_h: float, most: int, smallest: int
) -> tuple[Floats, Floats, Floats]:
    """Failures and time of each possible last piece, and the logarithm of its weight."""
    passed = [np.append(0.0, np.cumsum(each)) for each in (n, h)]
    number, time = (each[None, :] - each[:, None] for each in passed)
    place = np.arange(len(n) + 1)
    fits = place[None, :] - place[:, None] >= smallest
    with np.errstate(invalid="ignore", divide="ignore"):
        of_piece = np.log(prior_h) + gammaln(1 + number) - (1 + number) * np.log(prior_h + time)
    of_piece = np.where(fits, of_piece, -np.inf)
    allowed = np.where(fits, 0.0, -np.inf)
    before = ways = np.where(place == 0, 0.0, -np.inf)  # of all segmentations up to a place
    weight = np.full(len(place), -np.inf)
    for k in range(1, most + 1):
        share = SHARE if k == 1 else SHARE - np.log(most - 1)
        n_ways = logsumexp(ways + allowed[:, -1])
        if np.isfinite(n_ways):
            weight = np.logaddexp(weight, before + of_piece[:, -1] - n_ways + share)
        before = logsumexp(before[:, None] + of_piece, axis=0)
        ways = logsumexp(ways[:, None] + allowed, axis=0)
    known = np.isfinite(weight)
    return number[known, -1], time[known, -1], weight[known]


def _evidence(n: Floats, h: Floats, line: FittedRate, prior_h: float) -> float:
    """Logarithm of the evidence of a log-linear rate, up to what is common to all."""
    likelihood = float((n * np.log(line.expected / h) - line.expected).sum())
    level = np.log(prior_h) + line.at[0] - prior_h * np.exp(line.at[0])
    prior = level - (line.at[1] / RISE_SD) ** 2 / 2 - np.log(2 * np.pi * RISE_SD**2) / 2
    volume = np.log(2 * np.pi) - np.linalg.slogdet(line.information)[1] / 2
    return float(SHARE + likelihood + prior + volume)
