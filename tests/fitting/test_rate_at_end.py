"""The rate at the end of a log: against all segmentations one by one, and against integration."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import comb, exp, inf, lgamma, log

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import norm

from cprsim.fitting.rate_at_end import RISE_SD, FittedRate, _evidence, _last_piece, rate_at_end
from cprsim.fitting.rates import _line, _log_linear

PRIOR_H = 2.0


def counts_of(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.poisson(4.0, n).astype(np.float64), rng.uniform(0.5, 2.0, n)


def test_last_pieces_weigh_as_much_as_all_their_segmentations() -> None:
    n, h = counts_of(3, 9)

    def evidence(first: int, end: int) -> float:
        number, time = n[first:end].sum(), h[first:end].sum()
        return log(PRIOR_H) + lgamma(1 + number) - (1 + number) * log(PRIOR_H + time)

    wanted: dict[int, float] = {}
    for k in (1, 2, 3):
        possible = [
            one for cut in combinations(range(1, 9), k - 1)
            if min(np.diff(one := (0, *cut, 9))) >= 2
        ]  # fmt: skip
        assert len(possible) == comb(9 - k - 1, k - 1)
        for one in possible:
            weight = exp(sum(evidence(*piece) for piece in pairwise(one)))
            share = 1 / 3 if k == 1 else 1 / 6
            wanted[one[-2]] = wanted.get(one[-2], 0.0) + share * weight / len(possible)
    number, time, weight = _last_piece(n, h, PRIOR_H, 3, 2)
    np.testing.assert_allclose(np.exp(weight), [wanted[k] for k in sorted(wanted)])
    np.testing.assert_allclose(number, [n[k:].sum() for k in sorted(wanted)])
    np.testing.assert_allclose(time, [h[k:].sum() for k in sorted(wanted)])


def test_the_evidence_of_a_line_is_its_integral() -> None:
    n, h = counts_of(4, 40)
    prior_h = float(h.sum() / n.sum())
    place = (np.arange(40) + 0.5) / 40 - 0.5

    def density(rise: float, middle: float) -> float:
        log_rate = middle + rise * place
        likely = float((n * log_rate - h * np.exp(log_rate)).sum()) - shift
        prior = prior_h * exp(middle - prior_h * exp(middle)) * norm.pdf(rise, 0, RISE_SD)
        return float(exp(likely) * prior)

    line = FittedRate(*_line(n, h), _log_linear(n, h) * h)
    shift = float((n * np.log(line.expected / h) - line.expected).sum())
    middle, rise = line.at
    whole, _ = dblquad(density, middle - 0.6, middle + 0.6, rise - 2, rise + 2)
    assert _evidence(n, h, line, prior_h) == pytest.approx(log(whole / 3) + shift, abs=0.03)


def test_many_failures_leave_the_rate_of_the_course_that_they_show() -> None:
    hours = np.full(120, 10.0)
    for course in (np.repeat([1.0, 3.0], [70, 50]), np.exp(1.5 * np.linspace(-0.5, 0.5, 120))):
        counts = np.round(1000 * course * hours)
        line = FittedRate(*_line(counts, hours), _log_linear(counts, hours) * hours)
        found = rate_at_end(counts, hours, line, 1.0, most=5, smallest=6)
        assert found.mean == pytest.approx(1000 * course[-1], rel=0.01)
        assert found.high / found.low < 1.01
        wider = rate_at_end(counts, hours, line, 100.0, most=5, smallest=6)
        assert log(wider.high / wider.low) > 5 * log(found.high / found.low) > -inf
