"""Most likely hazards that are constant between some ages."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.piecewise import PiecewiseHazard
from cprsim.fitting.families import Fit
from cprsim.fitting.lifetimes import Lifetimes
from cprsim.fitting.likelihood import NotConvergedError, Parameter
from cprsim.records import Floats

N_PIECES = 5
FEWEST_ENDS = 4  # of each piece, below which there are fewer pieces


def fit_piecewise(lifetimes: Lifetimes, n_pieces: int = N_PIECES) -> Fit:
    """Most likely hazards of pieces that hold equally many of the observed ends.

    Exact: each hazard is the piece's ends over the time spent in it. AIC and BIC count the borders
    too, as they come from the same data.

    Raises
    ------
    ParameterError
        where no end was observed.
    NotConvergedError
        where the ends are too few, or too much the same, for two pieces.
    """
    if lifetimes.n_observed == 0:
        raise ParameterError("no failure was observed: nothing can be fitted")
    ends_h = np.sort(lifetimes.duration_h[lifetimes.observed])
    n_pieces = min(n_pieces, len(ends_h) // FEWEST_ENDS)
    borders = ends_h[[len(ends_h) * i // n_pieces for i in range(1, n_pieces)]]
    from_h = np.append(0.0, np.unique(borders))
    n_ends = np.histogram(ends_h, np.append(from_h, np.inf))[0]
    at_risk_h = lifetimes.at_risk_h(np.append(from_h, np.inf))
    # times that differ by rounding alone leave no time between them
    if len(from_h) < 2 or (n_ends == 0).any() or (at_risk_h <= 1e-9 * lifetimes.total_h).any():
        raise NotConvergedError("piecewise: too few different times for two pieces")
    rates = n_ends / at_risk_h
    distribution = PiecewiseHazard(tuple(from_h.tolist()), tuple(rates.tolist()))
    log_likelihood = float((n_ends * np.log(rates)).sum() - n_ends.sum())
    errors = 1 / np.sqrt(n_ends)  # of the logarithms
    parameters = tuple(
        Parameter.of_search(f"hazard_from_{begin:.4g}_h", log(rate), error, error, logarithm=True)
        for begin, rate, error in zip(from_h, rates, errors, strict=True)
    )
    n_numbers = len(rates) + len(from_h) - 1
    mean_error = _log_mean_error(distribution, errors)
    mean = Parameter.of_search(
        "mean_h", log(distribution.mean_h), mean_error, mean_error, logarithm=True
    )
    return Fit("piecewise", distribution, log_likelihood, n_numbers, len(ends_h), parameters, mean)


def _log_mean_error(distribution: PiecewiseHazard, errors: Floats) -> float:
    """Standard error of the mean's logarithm, by the delta method on each hazard's logarithm."""
    step, squared = 1e-4, 0.0
    for piece, error in enumerate(errors):
        moved = np.zeros(len(errors))
        moved[piece] = step
        up, down = (
            PiecewiseHazard(
                distribution.from_h, tuple(distribution.rates_per_h * np.exp(by))
            ).mean_h
            for by in (moved, -moved)
        )
        squared += (log(up / down) / (2 * step) * error) ** 2
    return sqrt(squared)
