"""Rates that change over a log: models by hand, the right one chosen, the log from now on."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from math import log
from pathlib import Path

import numpy as np
import pytest

from cprsim.failures.outages import Outages
from cprsim.fitting.correlated_fit import fit_correlated
from cprsim.fitting.posterior_check import check_by_simulation, check_through_window
from cprsim.fitting.rates import LOG_LINEAR, SMALLEST_BINS, best_pieces, rates, since
from cprsim.records import Floats
from cprsim.scenario.failures import ChangingFailures
from cprsim.scenario.yaml_text import read_document
from tests.fitting.logs import log_of, write_log
from tests.making import call
from tests.scenario.writing import scenario

WINDOW_H = 10_000.0
SLOPE = -1.2  # of the logarithm of the ramp's rate over the log
RATIO, STEP_AT = 2.5, 0.6


def changing(seed: int, n: int, rate: Callable[[Floats], Floats]) -> Outages:
    """About n failures whose rate over the log is `rate` of the place from 0 to 1."""
    rng = np.random.default_rng(seed)
    grid = rate(np.linspace(0, 1, 1001))
    drawn = rng.random(rng.poisson(n * grid.max() / grid.mean()))
    kept = drawn[rng.random(len(drawn)) * grid.max() < rate(drawn)]
    return log_of(np.sort(kept) * WINDOW_H, WINDOW_H, given=True)


def ramp(at: Floats) -> Floats:
    """A rate that falls to 30 %."""
    return np.exp(SLOPE * at)


def step(at: Floats) -> Floats:
    """A rate that is 2.5 times as high from three fifths on."""
    return np.where(at < STEP_AT, 1.0, RATIO)


def now_per_h(n: int, rate: Callable[[Floats], Floats]) -> float:
    """The true rate at the end of `changing` [1/h]."""
    grid = rate(np.linspace(0, 1, 100_001))
    return float(n / WINDOW_H * grid[-1] / grid.mean())


def test_the_best_pieces_are_those_of_a_search_of_all() -> None:
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.repeat([2.0, 6.0, 1.0], [9, 8, 10])).astype(np.float64)
    hours = rng.uniform(0.5, 1.5, len(counts))

    def likelihood(borders: tuple[int, ...]) -> float:
        pieces = zip((0, *borders), (*borders, len(counts)), strict=True)
        sums = [(counts[a:b].sum(), hours[a:b].sum()) for a, b in pieces]
        return sum(n * log(n / h) if n else 0.0 for n, h in sums)

    possible = [
        borders for borders in combinations(range(len(counts)), 2)
        if min(np.diff([0, *borders, len(counts)])) >= SMALLEST_BINS
    ]  # fmt: skip
    assert best_pieces(counts, hours, 3).tolist() == [0, *max(possible, key=likelihood)]


@pytest.mark.parametrize(("rate", "model"), [(ramp, LOG_LINEAR), (step, "2 pieces")])
def test_the_model_that_is_true_is_chosen_and_knows_the_rate_at_the_end(
    rate: Callable[[Floats], Floats], model: str
) -> None:
    found = rates(changing(3, 600, rate))
    assert found.name == model
    assert found.now_per_h.low < now_per_h(600, rate) < found.now_per_h.high


def test_a_rate_that_does_not_change_is_mostly_said_to_be_constant() -> None:
    found = [rates(changing(seed, 300, np.ones_like)).changes for seed in range(40)]
    assert np.mean(found) < 0.25  # 8 % are expected: above it once in 3,000


def test_bursts_widen_the_interval() -> None:
    at_h = np.sort(np.random.default_rng(5).uniform(0, WINDOW_H, 60))
    bursts = np.sort((at_h[:, None] + np.linspace(0, 20, 5)).ravel())
    wide = rates(log_of(bursts, WINDOW_H, given=True), "constant")
    plain = rates(changing(4, 300, np.ones_like), "constant")
    assert wide.dispersion > 2.5
    width, poisson = (one.now_per_h.high / one.now_per_h.low for one in (wide, plain))
    assert width > 1.3 * poisson


def test_the_last_piece_is_a_log_of_its_own() -> None:
    log_ = log_of(
        np.array([10.0, 50.0, 80.0]), 100.0, np.array([0.0, 1.0, 0.0]), 2, 15.0, given=True
    )  # fmt: skip
    last = since(log_, 60.0)
    assert (last.origin, last.window_h, last.window_given) == ("60 h", 40.0, (True, True))
    assert last.start_h.tolist() == [-10.0, 20.0]
    assert last.in_window.tolist() == [False, True]


def test_the_fragment_says_whether_it_is_of_the_window_or_from_now_on(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.csv", changing(3, 600, step))
    asked = ("fit", path, "--time-unit", "h", "--from", 0, "--to", WINDOW_H, "--bootstrap", 0)
    whole, now = (json.loads(call(*asked, *more, "--json").stdout) for more in ((), ("--now",)))
    assert whole["rates"]["model"] == "2 pieces"
    assert "# simulates the whole window of the log, whose rate changes" in whole["fragment"]
    assert "# simulates from now on, the rate of the log's end (2 pieces):" in now["fragment"]
    assert "(inferred: the last piece of a rate that changes)" in now["fragment"]
    mtbf_h = [float(one["fragment"].split("mtbf: ")[1].split()[0]) for one in (whole, now)]
    assert mtbf_h[1] == pytest.approx(1 / now_per_h(600, step), rel=0.15)
    assert mtbf_h[1] < 0.75 * mtbf_h[0]
    ramped = write_log(tmp_path / "ramp.csv", changing(3, 600, ramp))
    text = json.loads(call("fit", ramped, *asked[2:], "--now", "--json").stdout)["fragment"]
    assert "(log-linear)" in text
    assert "family: exponential" in text
    assert float(text.split("mtbf: ")[1].split()[0]) == pytest.approx(
        1 / now_per_h(600, ramp), rel=0.25
    )


@pytest.mark.parametrize(("rate", "model"), [(ramp, LOG_LINEAR), (step, "2 pieces")])
def test_the_fragment_through_the_window_has_the_rate_as_it_changes(
    tmp_path: Path, rate: Callable[[Floats], Floats], model: str
) -> None:
    path = write_log(tmp_path / "log.csv", changing(3, 600, rate))
    asked = ("fit", path, "--time-unit", "h", "--from", 0, "--to", WINDOW_H, "--bootstrap", 0)
    said = json.loads(call(*asked, "--through-window", "--circle", "--json").stdout)
    assert f"its rate as it changes ({model})" in said["fragment"]
    written = read_document(said["fragment"], "").data["failures"]
    section = scenario(failures={**written, "nodes": None}).failures
    assert isinstance(section, ChangingFailures)
    course, grid = section.course, np.linspace(0, 1, 1001)
    log = changing(3, 600, rate)
    assert course.per_window == pytest.approx(log.n_outages, rel=1e-3)
    truth = np.append(0, np.cumsum(rate((grid[1:] + grid[:-1]) / 2)))
    error = np.sqrt(600 * 0.25)  # of a share of 600 failures
    assert np.abs(course.passed(grid[:-1] * WINDOW_H) - 600 * truth[:-1] / truth[-1]).max() < (
        4 * error
    )
    circle = {row["name"]: row for row in said["circle"]}
    assert circle["mean_gap_h"]["inside"]
    assert circle["weekly_dispersion"]["inside"]


def test_a_rate_that_changes_widens_the_weeks_of_the_circle() -> None:
    log = changing(3, 2000, ramp)
    course = rates(log).course
    through = check_through_window(log, course, n=100)
    steady = check_by_simulation(log, fit_correlated(log), n=100)
    weekly = [next(row for row in rows if row.name == "weekly_dispersion") for rows in
              (through, steady)]  # fmt: skip
    assert weekly[0].inside
    assert not weekly[1].inside


def test_what_can_not_be_said_of_rates(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.csv", changing(3, 20, np.ones_like))
    asked = ("fit", path, "--time-unit", "h", "--bootstrap", 0, "--now")
    assert "30 are needed to tell how their rate changes" in call(*asked).stdout
    refused = call(*asked, "--by", "cause")
    assert refused.exit_code == 2
    assert "--now: goes without --by" in refused.stderr
    both = call(*asked, "--through-window")
    assert (both.exit_code, "give one of them" in both.stderr) == (2, True)
