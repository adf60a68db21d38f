"""The verdict, whether a rate has changed, and logs without names: by hand and with known truth."""

from __future__ import annotations

import json
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cprsim.errors import ParameterError
from cprsim.fitting.rate_change import change, p_values, power
from cprsim.fitting.trace_fit import fit_trace, verdict
from tests.fitting.logs import log_of, write_log
from tests.making import call


def poisson_log(seed: int, rate_per_h: float, window_h: float, n_nodes: int = 20):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    at_h = np.sort(rng.random(rng.poisson(rate_per_h * window_h)) * window_h)
    node = rng.integers(n_nodes, size=len(at_h))
    return log_of(at_h, window_h, node, n_nodes, 1e-3, given=True)


def test_the_verdict_is_the_jobs_share_of_the_failures_with_an_interval() -> None:
    log = poisson_log(1, 0.05, 4000.0)
    said = verdict(fit_trace(log, n_bootstrap=0), 5)
    n = log.n_outages
    assert said.mtbf_h.mean == pytest.approx(4000 / n * 20 / 5)
    assert said.mtbf_h.low <= said.mtbf_h.mean * exp(-1.96 / sqrt(n)) * 1.001
    assert said.mtbf_h.low < 80 < said.mtbf_h.high
    assert said.sentences[0].startswith("A job on 5 of the 20 nodes meets a failure every ")
    assert f"from {n} failures" in said.sentences[1]


def test_the_verdict_opens_the_output_and_names_what_does_not_fit(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", poisson_log(2, 0.05, 2000.0))
    shown = call("fit", log, "--time-unit", "h", "--bootstrap", 0)
    assert shown.stdout.startswith("A job on 20 of the 20 nodes meets a failure every ")
    third = shown.stdout.splitlines()[2]
    assert (
        "does not say how many nodes there are, when it begins and when it ends: that is inferred"
        in third
    )
    said = json.loads(call("fit", log, "--time-unit", "h", "--bootstrap", 0, "--json").stdout)
    assert said["verdict"]["sentences"][2] == third
    assert said["verdict"]["low_h"] < said["verdict"]["mtbf_of_job_h"] < said["verdict"]["high_h"]


def test_two_rates_are_compared_by_the_exact_conditional_test() -> None:
    one = change(10, 1000.0, 20, 1000.0)
    # by hand: 20 or more, or 10 or fewer, heads of 30 fair coins
    assert one.p_value == pytest.approx(2 * stats.binom.cdf(10, 30, 0.5))
    assert one.ratio.mean == pytest.approx(2)
    # Clopper and Pearson 1934: the bounds are quantiles of beta distributions
    low = stats.beta.ppf(0.025, 20, 11)
    assert one.ratio.low == pytest.approx(low / (1 - low))
    assert change(5, 100.0, 50, 1000.0).ratio.mean == pytest.approx(1.0)
    assert change(0, 100.0, 3, 100.0).ratio.mean == np.inf
    with pytest.raises(ParameterError, match="no failure before or since"):
        change(0, 1.0, 0, 1.0)


def test_the_power_is_the_share_of_simulated_logs_that_are_noticed() -> None:
    rng = np.random.default_rng(5)
    since = rng.poisson(2 * 30.0, 400)
    noticed = (p_values(30, since, 0.5) < 0.05).mean()
    told = power(30, 30.0, 0.5, 2.0)
    assert abs(noticed - told) < 4 * sqrt(told * (1 - told) / 400)
    assert power(30, 30.0, 0.5, 1.0) < 0.05 + 0.25  # the numbers before are as they were
    least = change(30, 1000.0, 30, 1000.0).least_noticed
    assert power(30, 30.0, 0.5, least) >= 0.8 > power(30, 30.0, 0.5, least / 1.06)


@pytest.mark.parametrize(("factor", "changed"), [(1.0, False), (3.0, True)])
def test_the_command_says_whether_the_rate_has_changed(
    tmp_path: Path, factor: float, changed: bool
) -> None:
    first = write_log(tmp_path / "first.csv", poisson_log(5, 0.05, 4000.0))
    options = ("--time-unit", "h", "--bootstrap", 0, "--nodes", 20, "--from", 0)
    result = tmp_path / "result.json"
    result.write_text(call("fit", first, *options, "--to", 4000, "--json").stdout)
    later = poisson_log(6, 0.05 * factor, 2000.0)
    rows = [f"n{node},{at + 4000!r},{at + 4000.001!r}," for node, at in
            zip(later.node.tolist(), later.start_h.tolist(), strict=True)]  # fmt: skip
    (tmp_path / "both.csv").write_text(first.read_text() + "\n".join(rows) + "\n")
    arguments = ("fit", tmp_path / "both.csv", *options, "--to", 6000, "--since-last", result)
    said = json.loads(call(*arguments, "--json").stdout)["since_last"]
    assert said["since"] == "4000 h"
    assert said["plain"]["n_since"] == len(rows)
    best = said["allowing_for_bunching"] or said["plain"]
    assert best["is_change"] is changed
    words = "the rate of failures has changed" if changed else "has not visibly changed"
    assert words in call(*arguments).stdout.splitlines()[3]


def test_what_is_no_earlier_result_is_refused(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", poisson_log(2, 0.05, 1000.0))
    for text in ("[]", "{}", "nonsense"):
        (tmp_path / "result.json").write_text(text)
        shown = call("fit", log, "--time-unit", "h", "--since-last", tmp_path / "result.json")
        assert shown.exit_code == 2
        assert "is no result of a fit" in shown.stderr
