"""What is done bin after bin of a log; compiled."""

from __future__ import annotations

import numpy as np

from cprsim.compiling import compiled, part
from cprsim.records import Floats

ROUNDING = 1e-9  # of the mean of a bin

# A hidden Markov chain, whose state is the factor on a rate: from bin to bin it stays, or is drawn
# anew. In all functions:
#   count : (n_bins,) Poisson numbers, the bin's mean times the factor expected
#   mean : (n_bins,) expected where the factor is 1
#   factor, weight : (n_factors,) its values above 0, and their probabilities
#   p_change : of another draw between neighbouring bins


@part
def _seen(count: float, mean: float, factor: Floats) -> tuple[Floats, float]:
    """Likelihood of a bin for each factor over the largest, and the logarithm of that.

    But for terms without parameters.
    """
    found = count * np.log(factor) - factor * mean
    largest = found.max()
    return np.exp(found - largest), largest


@part
def _alike(count: Floats, mean: Floats, k: int) -> bool:
    """Whether a bin is as the one before, but for rounding; most of a piece of a course are."""
    return bool(count[k] == count[k - 1] and abs(mean[k] - mean[k - 1]) <= ROUNDING * mean[k])


@compiled
def log_likelihoods(
    count: Floats, mean: Floats, factor: Floats, weight: Floats, p_change: float
) -> Floats:
    """Log-likelihood of each bin given those before it, (n_bins,): the forward recursion."""
    believed = weight.copy()  # in each factor, given the bins before
    each = np.full(len(count), -np.inf)
    seen, largest = _seen(count[0], mean[0], factor)
    for k in range(len(count)):
        if k > 0 and not _alike(count, mean, k):
            seen, largest = _seen(count[k], mean[k], factor)
        likely = 0.0
        for i in range(len(factor)):
            believed[i] = (believed[i] * (1.0 - p_change) + weight[i] * p_change) * seen[i]
            likely += believed[i]
        if not likely > 0.0:
            break
        believed /= likely
        each[k] = np.log(likely) + largest
    return each


@compiled
def means_given_all(
    count: Floats, mean: Floats, factor: Floats, weight: Floats, p_change: float
) -> Floats:
    """Mean of the factor in each bin, given all bins, (n_bins,): forward, then backward."""
    n_bins, n_factors = len(count), len(factor)
    forward = np.empty((n_bins, n_factors))
    believed = weight.copy()
    for k in range(n_bins):
        seen, _ = _seen(count[k], mean[k], factor)
        believed = (believed * (1.0 - p_change) + weight * p_change) * seen
        believed /= believed.sum()
        forward[k] = believed
    found, after = np.empty(n_bins), np.ones(n_factors)
    for k in range(n_bins - 1, -1, -1):
        given = forward[k] * after
        found[k] = (given * factor).sum() / given.sum()
        seen, _ = _seen(count[k], mean[k], factor)
        after = after * seen
        after = after * (1.0 - p_change) + (after * weight).sum() * p_change
        after /= after.max()
    return found
