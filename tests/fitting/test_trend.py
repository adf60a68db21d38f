"""The test for a trend: seldom wrong where there is none, and seldom blind."""

from collections.abc import Callable

import numpy as np
import pytest

from cprsim.job.records import Floats
from cprsim.logs.fit import trend as trends
from cprsim.logs.fit.trend import P_ALARM, silences, trend
from tests.fitting.logs import log_of

pytestmark = pytest.mark.long

WINDOW_H = 10_000.0
Draw = Callable[[np.random.Generator, int], Floats]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the shuffled logs: the p-values are coarser, as right, and sooner there."""
    monkeypatch.setattr(trends, "N_SHUFFLED", 199)


def renewals(gaps: Callable[[np.random.Generator, int], Floats]) -> Draw:
    """Instants of a renewal process long under way, gaps with a mean of 1."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        at = np.cumsum(gaps(rng, 3 * n + 60)) - 30 - 20 * rng.random()
        return at * WINDOW_H / n

    return draw


def poisson(rng: np.random.Generator, n: int) -> Floats:
    return np.sort(rng.random(rng.poisson(n))) * WINDOW_H


def bursts(rng: np.random.Generator, n: int) -> Floats:
    """Four failures a burst on average, all within about a five-hundredth of the log."""
    begin = rng.random(rng.poisson(n / 4))
    size = rng.poisson(4, len(begin))
    return np.sort(np.repeat(begin, size) + rng.exponential(2e-3, size.sum())) * WINDOW_H


def by_rate(rate: Callable[[Floats], Floats], of: Draw = poisson) -> Draw:
    """A process whose rate follows a function of the share of the window."""
    share = np.linspace(0, 1, 3001)
    passed = np.cumsum(rate(share))

    def draw(rng: np.random.Generator, n: int) -> Floats:
        u = of(rng, n) / WINDOW_H
        return np.interp(u[(u >= 0) & (u < 1)], passed / passed[-1], share) * WINDOW_H

    return draw


def hump(at: Floats) -> Floats:
    return np.where((at > 1 / 3) & (at < 2 / 3), 5.0, 1.0)


IRREGULAR = renewals(lambda rng, m: rng.gamma(0.5, 2.0, m))
TRENDS: dict[str, Draw] = {
    "Poisson": poisson,
    "Weibull gaps, shape 3": renewals(lambda rng, m: rng.weibull(3.0, m) / 0.893),
    "gamma gaps, shape 0.5": IRREGULAR,
    "Weibull gaps, shape 0.4": renewals(lambda rng, m: rng.weibull(0.4, m) / 3.323),
    "bursts of 4 within 0.2 % of the log": bursts,
    "5 times as often in the middle third": by_rate(hump),
    "5 times as often in the middle third, gaps of shape 0.5": by_rate(hump, IRREGULAR),
    "5 times as often in the outer fifths": by_rate(
        lambda at: np.where((at > 0.2) & (at < 0.8), 1.0, 5.0)
    ),
    "falling to a fifth": by_rate(lambda at: 5.0**-at),
}


@pytest.mark.parametrize("name", TRENDS)
def test_false_alarms_are_as_rare_as_promised_and_trends_of_a_factor_of_five_seen(
    name: str,
) -> None:
    is_steady = name in list(TRENDS)[:5]
    n, n_logs = (120, 200) if is_steady else (300, 50)
    rng = np.random.default_rng(n_logs)
    logs = (log_of(TRENDS[name](rng, n), WINDOW_H) for _ in range(n_logs))
    share = np.mean([trend(log).differs for log in logs])
    if is_steady:
        assert share <= P_ALARM + 3 * np.sqrt(P_ALARM * (1 - P_ALARM) / n_logs)
        assert share >= 0.01 or name != "Poisson"  # not by never saying anything
    else:
        assert share >= 0.9


def test_it_says_where_the_rate_changes_and_by_how_much() -> None:
    draw = TRENDS["5 times as often in the middle third"]
    found = trend(log_of(draw(np.random.default_rng(4), 900), WINDOW_H))
    assert found.borders_h[0] == 0.0
    assert found.borders_h[3] == WINDOW_H
    assert found.borders_h[1] == pytest.approx(WINDOW_H / 3, rel=0.1)
    assert found.borders_h[2] == pytest.approx(2 * WINDOW_H / 3, rel=0.1)
    first, middle, last = found.rates_per_h
    assert 3.5 < middle / first < 7
    assert 3.5 < middle / last < 7
    n = np.dot(found.rates_per_h, np.diff(found.borders_h))
    assert n == pytest.approx(found.first_half + found.second_half, abs=1.5)
    assert "false in 5% of logs without a trend" in found.in_words()
    few = trend(log_of(np.array([1.0, 5.0, 8.0]), 10.0))
    assert np.isnan(few.p_value)
    assert not few.differs


def test_a_silence_at_an_end_of_the_window_is_asked_about() -> None:
    at_h = np.sort(np.random.default_rng(5).random(200)) * WINDOW_H / 2
    early, late = (log_of(at_h + by_h, WINDOW_H, given=True) for by_h in (0.0, WINDOW_H / 2))
    for log, question in ((early, "no failure in the last 5"), (late, "no failure in the first 5")):
        (said,) = silences(log)
        assert said.startswith(question)
        assert not trend(log).differs  # between the failures there is none
        assert np.allclose(np.diff(trend(log).borders_h).sum(), WINDOW_H / 2, rtol=0.01)
    assert silences(log_of(2 * at_h, WINDOW_H, given=True)) == []
    assert silences(log_of(at_h, WINDOW_H)) == []  # the log's own last instant ends the window
