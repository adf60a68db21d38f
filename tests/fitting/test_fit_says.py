"""What ``fit`` says of its own numbers: their origin, what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cprsim
from cprsim.failures.outages import Outages
from cprsim.fitting import goodness
from cprsim.fitting.correlated_fit import fit_frailty
from cprsim.fitting.goodness import P_REJECTED, rank
from cprsim.fitting.lifetimes import lifetimes_of
from cprsim.fitting.trace_fit import fit_trace
from tests.fitting.logs import gaps_on_random_nodes, log_of, write_log

pytestmark = pytest.mark.long


def short() -> Outages:
    """Ten days of five nodes that fail every six hours or so."""
    at_h = np.cumsum(np.random.default_rng(1).exponential(6.0, 38))
    return log_of(at_h, 240.0, np.arange(38) % 5, 5)


# -------------------------------------------------------------------------------------- none fits


def test_where_every_family_is_rejected_none_fits() -> None:
    rng = np.random.default_rng(3)  # gaps of about 1, 2, 4 and so on to 256 h, and nothing between
    gaps_h = rng.choice(2.0 ** np.arange(9), 150) * (1 + 0.01 * rng.random(150))
    ranking = rank(lifetimes_of(gaps_h), n_bootstrap=101)
    assert len(ranking.judged) == 5
    assert all(judged.p_value < P_REJECTED for judged in ranking.judged)
    assert ranking.none_fits
    drawn_h = np.random.default_rng(4).weibull(0.6, 80)
    one_does = rank(lifetimes_of(drawn_h), n_bootstrap=119, families=["exponential", "weibull"])
    assert not one_does.none_fits
    assert min(judged.p_value for judged in one_does.judged) < P_REJECTED  # the exponential is
    assert not rank(lifetimes_of(drawn_h), n_bootstrap=0).none_fits  # nothing was tested


def test_none_fits_is_said_wherever_the_best_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goodness, "_p_value", lambda *_: 0.005)
    log = write_log(tmp_path / "log.csv", short())
    fitted = cprsim.fit(log, time_unit="h", bootstrap=1)
    assert fitted.frames["times"]["none_fits"][0]
    assert "gaps: none fits, every family is rejected" in fitted.values["warnings"]
    said = fitted.values["job_fragment"]
    assert "# none fits: of the gaps, every family's p-value is below 0.01" in said
    assert "What does not fit: no family fits the gaps" in str(fitted)


# ------------------------------------------------------------------------------- large logs, time


def test_large_logs_are_thinned_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goodness, "MOST_FITTED", 500)
    monkeypatch.setattr(goodness, "MOST_RESAMPLED", 100)
    outages = gaps_on_random_nodes(np.random.default_rng(5).exponential(7.0, 2001), 20)
    fitted = fit_trace(outages, n_bootstrap=3)
    assert fitted.gaps.ranking is not None
    ranking = fitted.gaps.ranking
    assert (ranking.fitted_every, ranking.resampled_every) == (4, 5)
    assert ranking.best.fit.n_observed == 500
    assert ranking.best.fit.mean.mean == pytest.approx(7.0, rel=0.15)
    assert "gaps: fitted to every 4th of 2000 times, for speed" in fitted.warnings
    assert "gaps: p-values by 100 of the 2000 times, for speed" in fitted.warnings


def test_of_many_nodes_every_nth_is_fitted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from cprsim.fitting import correlated_fit

    rng = np.random.default_rng(6)
    node = np.repeat(np.arange(300), 6)
    lives = lifetimes_of(rng.weibull(0.8, 1800) * np.repeat(rng.gamma(2, 50, 300), 6), unit=node)
    monkeypatch.setattr(correlated_fit, "MOST_FITTED", 900)
    some, whole = fit_frailty(lives), fit_frailty(lives.of_units(1))
    assert some[0].fitted_every == 2 == whole[0].fitted_every
    assert np.array_equal(np.unique(lives.of_units(2).unit), np.arange(0, 300, 2))
    assert lives.of_units(2).n == 900


# --------------------------------------------------------------------------- where it comes from


def observed(log: Path, **asked: Any) -> pd.DataFrame:
    fitted = cprsim.fit(log, bootstrap=0, **asked)
    return fitted.frames["observation"].set_index("fact")


def test_nodes_window_and_ages_are_named_with_their_origin(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", short())
    bare = observed(log, time_unit="h")
    assert bare.loc["n_nodes", "value"] == 5
    assert set(bare["source"]) == {"inferred"}
    assert "never failed are missing" in bare.loc["n_nodes", "how"]
    asked = {"time_unit": "h", "nodes": 9, "period": "0..240", "age": "unknown"}
    said = observed(log, **asked)
    assert said["value"].tolist()[:3] == [9, "0 h", "240 h"]
    assert set(said["source"]) == {"given"}
    assert said["how"].tolist() == ["--nodes", "--period", "--period", "--age"]
    fitted = cprsim.fit(log, bootstrap=0, **asked)
    assert fitted.values["window_h"] == 240
    assert "# window: 240 h, from 0 h (given: --period) to 240 h" in fitted.values["fragment"]
    one = observed(log, time_unit="h", node="n3").loc["n_nodes"]
    assert (one["value"], one["how"]) == (1, "--node")


def test_what_a_format_says_is_read_not_inferred(tmp_path: Path) -> None:
    events = [
        {"node_id": node, "event_time": day, "event_type": f"fault_{kind}", "fault_type": "x"}
        for node, day in (("a", 1.0), ("b", 2.0), ("a", 3.5), ("b", 6.25), ("a", 8.0))
        for kind, day in (("start", day), ("end", day + 0.1))
    ]
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps(events))
    assert observed(trace)["source"].tolist()[1:3] == ["read", "inferred"]


# --------------------------------------------------------------------------------- unknown ages


def worn_and_replaced(seed: int, shape: float) -> Outages:
    """Forty nodes that have been up and renewed for long when the log begins."""
    rng = np.random.default_rng(seed)
    at_h = np.cumsum(100 * rng.weibull(shape, (40, 60)), axis=1) - 2000.0
    return log_of(at_h.ravel(), 300.0, np.repeat(np.arange(40), 60), 40)


def test_ages_that_matter_and_are_not_known_are_warned_of(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", worn_and_replaced(1, shape=5.0))
    asked: dict[str, Any] = {"time_unit": "h", "period": "0..300", "bootstrap": 0}
    fitted = cprsim.fit(log, **asked)
    (warning,) = [one for one in fitted.values["warnings"] if "ages" in one]
    assert "say which with --age new or --age unknown" in warning
    assert warning[1:] in " ".join(str(fitted).split())
    for age in ("new", "unknown"):  # then they are known
        said = cprsim.fit(log, age=age, **asked).values["warnings"]
        assert not [one for one in said if "ages" in one]
    warned = sum(
        any("ages" in warning for warning in fit_trace(outages, n_bootstrap=0).warnings)
        for outages in (worn_and_replaced(seed, shape=1.0) for seed in range(10))
    )
    assert warned <= 1  # where they do not matter
