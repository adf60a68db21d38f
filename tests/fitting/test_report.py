"""What is said of a whole log: how often a job fails, how sure, what contradicts, from where."""

from functools import partial
from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cprsim
from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.job.distributions import with_mean
from cprsim.logs.fit import correlated_fit, goodness
from cprsim.logs.fit.correlated_fit import fit_frailty
from cprsim.logs.fit.fragments import failures_fragment, job_fragment
from cprsim.logs.fit.lifetimes import lifetimes_of
from cprsim.logs.fit.report import fit_failures
from tests.fitting.logs import gaps_on_random_nodes, lemons, log_of, outages, write_log

quick = partial(fit_failures, n_bootstrap=0)


def short() -> Outages:
    """Ten days of five nodes that fail every six hours or so."""
    at_h = np.cumsum(np.random.default_rng(1).exponential(6.0, 38))
    return log_of(at_h, 240.0, np.arange(38) % 5, 5)


def poisson(seed: int, window_h: float = 4000.0, n_nodes: int = 20, rate_per_h: float = 0.05):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    at_h = np.sort(rng.random(rng.poisson(rate_per_h * window_h)) * window_h)
    return log_of(at_h, window_h, rng.integers(n_nodes, size=len(at_h)), n_nodes, 1e-3, given=True)


def pairs() -> Outages:
    """A Poisson log in which a fifth of the failures strike a second node."""
    log = poisson(1)
    twice = np.arange(0, log.n_outages, 5)
    at_h = np.append(log.start_h, log.start_h[twice])
    node = np.append(log.node, (log.node[twice] + 1) % 20)
    return log_of(at_h, 4000.0, node, 20, 1e-3, given=True)


# ------------------------------------------------------------------------------- the answer


def test_the_answer_is_the_jobs_share_of_the_failures_with_an_interval() -> None:
    log = poisson(1)
    fitted, n = quick(log, n_job_nodes=5), log.n_outages
    mtbf_h, (how_often, how_sure) = fitted.mtbf_h, fitted.answer
    assert mtbf_h.mean == pytest.approx(4000 / n * 20 / 5)
    assert mtbf_h.low <= mtbf_h.mean * exp(-1.96 / sqrt(n)) * 1.001
    assert mtbf_h.low < 80 < mtbf_h.high
    assert how_often.startswith("A job on 5 of the 20 nodes meets a failure every ")
    assert f"from {n} failures" in how_sure


DIFFER, TOGETHER = "nodes differ (the worst 10% have ", "nodes fail together ("
LOGS = {  # and which of the sentences are said of them
    "few": (lambda: log_of(np.array([0.0, 30.0, 90.0]), 100.0), ["from only 3 failures"]),
    "short": (short, ["do not bunch, which a log under 8 weeks can't tell"]),
    "even": (lambda: poisson(2), ["Nothing in the log contradicts the fit."]),
    "unequal": (lambda: lemons(1, mean_h=30.0, others_h=3000.0, shape=0.8), [DIFFER]),
    "pairs": (pairs, [TOGETHER, " times, up to 2 at once)"]),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_said_of_a_log(name: str) -> None:
    log, said = LOGS[name]
    fitted = quick(log())
    text = " ".join([*fitted.answer, *fitted.remarks])
    assert [sentence for sentence in said if sentence not in text] == []
    assert [one for one in (DIFFER, TOGETHER) if one in text and one not in said] == []
    assert "(1 times a Poisson variance)" not in text


def test_numbers_of_nodes_that_differ_are_answers() -> None:
    """A share, no logit; and nothing of factors of which the log says nothing."""
    alike = quick(poisson(4)).correlated
    assert alike.left_out == ["gamma", "lemons", "lemons and gamma"]
    fitted = quick(lemons(1, mean_h=30.0, others_h=3000.0, shape=0.8))
    rows = pd.DataFrame(fitted.frames["parameters"]).query("times == 'nodes'")
    share = rows.query("parameter == 'lemon_share' and family == 'lemons'").iloc[0]
    assert 0 < share["value_low"] < 3 / 60 < share["value_high"] < 1
    shapes = rows.query("parameter == 'frailty_shape'")
    assert (shapes["value_high"] < 1e6 * shapes["value_low"]).all()


def test_what_is_all_the_same_is_said() -> None:
    with pytest.raises(ParameterError, match=r"has 4 failures, at one instant"):
        quick(outages(*((node, 0, 1) for node in range(4))))
    rows = [(i % 5, i * 1.37, i * 1.37 + 1) for i in range(200)]  # but for rounding
    fitted = quick(outages(*rows, n_nodes=5, window_h=274.0))
    assert "piecewise" in [name for name, _ in fitted.repairs.ranking.failed]


def test_one_end_far_off_ends_in_an_answer_without_warnings(
    recwarn: pytest.WarningsRecorder,
) -> None:
    """It was a LinAlgError after three RuntimeWarnings."""
    rows = [(0, 0, 1), (1, 4, 5), (0, 8, 649_999), (2, 10, 11)]
    assert failures_fragment(quick(outages(*rows, n_nodes=3, window_h=649_999.0))).sections
    assert not [one for one in recwarn if one.category is RuntimeWarning]


def test_logs_of_one_node_and_without_ends() -> None:
    at_h = np.cumsum(np.random.default_rng(2).exponential(50.0, 30))
    fitted = quick(log_of(at_h, at_h[-1] + 1, down_h=1.0))
    by_name = {one.family: one for one in fitted.gaps.ranking.judged}
    assert by_name["exponential"].mean.low < 50 < by_name["exponential"].mean.high
    fitted = quick(outages(*((node, at, np.nan) for node, at in enumerate((1, 9, 30, 77)))))
    assert fitted.repairs.ranking is None
    assert "no failure was observed" in fitted.repairs.why_not
    assert "no repair times" in str(failures_fragment(fitted))
    assert any("only 3 gaps" in warning for warning in fitted.warnings)


def test_what_befalls_a_node_that_is_down_changes_nothing() -> None:
    """Neither headline nor gaps nor fragment nor replay: the node had failed already."""
    rng, rows, inside = np.random.default_rng(5), [], []
    for node in range(8):
        at_h = rng.exponential(50.0)
        while at_h < 3000:
            rows.append((node, at_h, at_h + 4))
            inside += [(node, at_h + 1, at_h + 3), (node, at_h + 2, at_h + 2)]
            at_h += 4 + rng.exponential(50.0)
    said = []
    for more in ([], inside):
        log = outages(*rows, *more, window_h=3100.0)
        fitted = quick(log)
        said.append((fitted.mtbf_h, str(failures_fragment(fitted)), Replay(log).notes[0]))
    assert said[0] == said[1]
    merged = f"{len(inside)} outages of nodes that were down already"
    assert str(log.notes[-1]) == f"{merged}, merged into the outage under way"


def test_none_fits_is_said_wherever_the_best_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goodness, "_p_value", lambda *_: 0.005)
    fitted = fit_failures(short(), n_bootstrap=1)
    assert fitted.frames["times"][0]["none_fits"]
    assert "gaps: none fits, every family is rejected" in fitted.warnings
    said = "# none fits: of the gaps, every family's p-value is below 0.01"
    assert said in str(job_fragment(fitted))
    assert fitted.contradictions[0].startswith("no family fits the gaps")


def test_large_logs_are_thinned_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goodness, "MOST_FITTED", 500)
    monkeypatch.setattr(goodness, "MOST_RESAMPLED", 100)
    monkeypatch.setattr(correlated_fit, "MOST_FITTED", 900)
    rng = np.random.default_rng(5)
    fitted = fit_failures(gaps_on_random_nodes(rng.exponential(7.0, 2001), 20), n_bootstrap=3)
    ranking = fitted.gaps.ranking
    assert (ranking.fitted_every, ranking.resampled_every) == (4, 5)
    assert ranking.best.n_observed == 500
    assert ranking.best.mean.mean == pytest.approx(7.0, rel=0.15)
    assert "gaps: fitted to every 4th of 2000 times, for speed" in fitted.warnings
    assert "gaps: p-values by 100 of the 2000 times, for speed" in fitted.warnings
    node = np.repeat(np.arange(300), 6)  # of nodes that may differ every n-th whole
    lives = lifetimes_of(rng.weibull(0.8, 1800) * np.repeat(rng.gamma(2, 50, 300), 6), unit=node)
    assert fit_frailty(lives)[0].n_observed == 900
    assert np.array_equal(np.unique(lives.of_units(2).unit), np.arange(0, 300, 2))


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
    said = observed(log, time_unit="h", nodes=9, period="0..240", age="unknown")
    assert said["value"].tolist()[:3] == [9, "0 h", "240 h"]
    assert set(said["source"]) == {"given"}
    assert said["how"].tolist() == ["--nodes", "--period", "--period", "--age"]
    one = observed(log, time_unit="h", node="n3").loc["n_nodes"]
    assert (one["value"], one["how"]) == (1, "--node")


# ---------------------------------------------------------------------------- real logs, presets


@pytest.fixture
def presets() -> pd.DataFrame:
    return cprsim.init(listed=True).frames["presets"].set_index("name")


def test_presets_are_simulable_and_what_was_published(presets: pd.DataFrame) -> None:
    for one in presets.itertuples():
        shape = None if pd.isna(one.shape) else one.shape
        assert with_mean(one.family, one.mean_h, shape).mean_h == pytest.approx(one.mean_h)
        assert one.source
        assert one.note
    assert presets["mean_h"]["kokolis-rsc1"] == pytest.approx(24_000 / 6.5)  # 6.50 in 1000 days
    assert presets["mean_h"]["llama3"] == pytest.approx(3.093, abs=1e-3)


def test_fitted_presets_are_what_the_logs_say(presets: pd.DataFrame, failure_logs: Path) -> None:
    lanl: dict[str, Any] = {"system": 2, "period": "2000-01-01..2006-01-01"}
    for name, file, asked in (
        ("infinitehbd", "infinitehbd/fault_trace.json", {"nodes": 400}),
        ("lanl-system-2", "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz", lanl),
    ):
        preset = presets.loc[name]
        found = cprsim.fit(failure_logs / file, bootstrap=0, **asked).frames["parameters"]
        numbers = found.set_index(["times", "family", "parameter"])["value"]["gaps"]
        for number in ("mean_h", "shape"):
            assert numbers[preset["family"], number] == pytest.approx(preset[number], rel=1e-3)


def test_each_uptime_is_a_row_that_other_libraries_take(tmp_path: Path) -> None:
    log = tmp_path / "failures.csv"
    log.write_text("node,start,end\na,10,20\na,50,60\nb,30,40\n")
    rows = cprsim.fit(log, time_unit="h", nodes=3, period="0..100", bootstrap=0).rows["uptimes"]
    found = sorted(rows[["node", "hours", "failed"]].itertuples(index=False, name=None))
    assert found == [
        ("2", 100, False), ("a", 10, True), ("a", 30, True), ("a", 40, False),
        ("b", 30, True), ("b", 60, False),
    ]  # fmt: skip
