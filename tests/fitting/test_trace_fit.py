"""A whole log fitted: the fragment that a scenario takes, logs that say little, presets."""

from __future__ import annotations

from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest
import yaml

import cprsim
from cprsim.errors import ParameterError
from cprsim.experiments.assemble import assemble
from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.distributions import with_mean
from cprsim.failures.presets import PRESETS, preset
from cprsim.failures.replay import Replay
from cprsim.failures.traces import read_infinitehbd, read_lanl
from cprsim.fitting.families import FAMILIES, fit
from cprsim.fitting.fragments import correlated_fragment, fragment, job_fragment
from cprsim.fitting.lifetimes import gaps
from cprsim.fitting.trace_fit import TraceFit, fit_trace, verdict
from cprsim.records import Cluster, Holds, Role
from cprsim.scenario.reading import load_scenario
from tests.failures.tidy import read_tidy
from tests.fitting.logs import log_of, write_log


def log(folder: Path, rows: list[tuple[str, float, float]]) -> Path:
    path = folder / "log.csv"
    path.write_text(
        "node,start,end\n" + "".join(f"{n},{float(s)!r},{float(e)!r}\n" for n, s, e in rows)
    )
    return path


@pytest.fixture
def fitted(tmp_path: Path) -> TraceFit:
    """Twenty nodes with gamma gaps of the cluster, shape 0.6 and mean 20 h, and some pairs."""
    rng = np.random.default_rng(1)
    at_h = np.cumsum(rng.gamma(0.6, 20 / 0.6, 400))
    rows = [(f"n{rng.integers(20)}", float(at), float(at + rng.lognormal(0.0, 1.0))) for at in at_h]
    rows += [(f"n{i}", float(at_h[i]), float(at_h[i] + 2)) for i in range(20, 30)]
    return fit_trace(read_tidy(log(tmp_path, rows), time_unit="h"), n_bootstrap=9)


def test_the_fragment_is_yaml_that_gives_the_fit_back(fitted: TraceFit) -> None:
    text = job_fragment(fitted, "a synthetic log")
    section = yaml.safe_load(text)["failures"]
    assert section["kind"] == "job"
    shape = section.get("shape", section.get("sigma"))
    again = with_mean(section["family"], float(section["mtbf"].removesuffix(" h")), shape)
    assert fitted.gaps.ranking is not None
    best = fitted.gaps.ranking.best.fit
    assert section["family"] == best.family
    assert again.mean_h == pytest.approx(best.distribution.mean_h, rel=1e-5)
    assert best.mean.low < 20.0 < best.mean.high
    assert text.startswith("# fitted to a synthetic log\n")
    low_h, high_h = (float(end.removesuffix(" h")) for end in section["mtbf_95"])
    assert (low_h, high_h) == pytest.approx((best.mean.low, best.mean.high), rel=1e-3)
    assert section["spread_95"][0] < shape < section["spread_95"][1]


def test_the_correlated_fragment_is_the_fit_in_a_scenario(fitted: TraceFit, tmp_path: Path) -> None:
    assert fitted.correlated is not None
    scenario = tmp_path / "correlated.yaml"
    scenario.write_text(
        "job: {useful: 50 h}\ncluster: {trainers: 2, emb_ps: 4}\nrecovery: [full]\n"
        "costs: {save: 5 min, load: 3 min, reschedule: 2 min}\n"
        "simulation: {replications: 10}\n" + correlated_fragment(fitted, "a synthetic log")
    )
    read, meant = assemble(load_scenario(scenario)).failures, fitted.correlated.source()
    assert isinstance(read, CorrelatedNodes)
    cluster = Cluster((Role("emb_ps", 4, Holds.SHARD), Role("trainer", 2, Holds.REPLICA)))
    ours, theirs = (source.expected(cluster, 50.0) for source in (read, meant))
    assert ours.mtbf_h == pytest.approx(theirs.mtbf_h, rel=1e-4)
    assert ours.n_shards_together == pytest.approx(theirs.n_shards_together, rel=1e-4)
    assert read.start == meant.start
    assert read.watched_h == pytest.approx(meant.watched_h, rel=1e-4)


def test_groups_repairs_and_trend_are_reported(fitted: TraceFit) -> None:
    assert fitted.together.larger.tolist() == [2] * 10
    assert fitted.repairs.ranking is not None
    assert fitted.repairs.ranking.best.fit.family == "lognormal"
    assert not fitted.trend.differs
    assert fitted.correlated is not None
    assert fitted.correlated.shocks is not None
    assert fitted.correlated.shocks.sizes == (2,)


def test_logs_of_one_node_and_of_three_failures(tmp_path: Path) -> None:
    starts = np.cumsum(np.random.default_rng(2).exponential(50.0, 30))
    for rows in (
        [("a", s, s + 1) for s in starts],
        [("a", 0.0, 1.0), ("b", 30.0, 31.0), ("a", 90.0, 95.0)],
    ):
        fitted = fit_trace(read_tidy(log(tmp_path, rows), time_unit="h"), n_bootstrap=0)
        assert fitted.gaps.ranking is not None
        by_name = {judged.fit.family: judged.fit for judged in fitted.gaps.ranking.judged}
        mean = by_name["exponential"].mean
        assert mean.low < 50 < mean.high
    assert mean.high / mean.low > 10
    assert any("only 2 gaps" in warning for warning in fitted.warnings)


def test_what_is_all_the_same_is_said(tmp_path: Path) -> None:
    rows = [(name, 5.0, 6.0) for name in "abcd"]
    outages = read_tidy(log(tmp_path, rows), time_unit="h", period=(5, 105))
    with pytest.raises(ParameterError, match=r"its 4 failure\(s\) all begin at the same"):
        fit_trace(outages, n_bootstrap=0)
    rows = [(f"n{i % 5}", i * 1.37, i * 1.37 + 1) for i in range(200)]  # but for rounding
    fitted = fit_trace(read_tidy(log(tmp_path, rows), time_unit="h"), n_bootstrap=0)
    assert fitted.repairs.ranking is not None
    assert "piecewise" in [name for name, _ in fitted.repairs.ranking.failed]


def test_a_log_without_ends_has_no_repairs_but_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("node,start\n" + "".join(f"n{i},{at}\n" for i, at in enumerate((1, 9, 30, 77))))
    fitted = fit_trace(read_tidy(path, time_unit="h"), n_bootstrap=0)
    assert fitted.repairs.ranking is None
    assert "no failure was observed" in fitted.repairs.why_not
    assert "no repair times" in fragment(fitted, "a log without ends")


def test_what_befalls_a_node_that_is_down_changes_nothing(tmp_path: Path) -> None:
    """Neither headline nor gaps nor fragment nor replay: the node had failed already."""
    rng = np.random.default_rng(5)
    rows, inside = [], []
    for node in range(8):
        at_h = rng.exponential(50.0)
        while at_h < 3000:
            rows.append(f"n{node},{at_h},{at_h + 4}")
            inside += [f"n{node},{at_h + 1},{at_h + 3}", f"n{node},{at_h + 2},{at_h + 2}"]
            inside.append(f"n{node},{at_h},")
            at_h += 4 + rng.exponential(50.0)
    path, said = tmp_path / "log.csv", []
    for more in ([], inside):
        path.write_text("\n".join(["node,start,end", *rows, *more]) + "\n")
        outages = read_tidy(path, time_unit="h", period=(0, 3100), n_nodes=8)
        fitted = fit_trace(outages, n_bootstrap=0)
        said.append(
            (verdict(fitted, 8).mtbf_h, fragment(fitted, "log.csv"), Replay(outages).notes[0])
        )
    assert said[0] == said[1]
    merged = f"{len(inside)} outage(s) of nodes that were down already"
    assert outages.notes[-1] == f"{merged}, merged into the outage under way"


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
    path = write_log(tmp_path / "log.csv", poisson_log(2, 0.05, 2000.0))
    fitted = cprsim.fit(path, time_unit="h", bootstrap=0)
    shown = " ".join(str(fitted).split())
    assert shown.startswith("A job on 20 of the 20 nodes meets a failure every ")
    assert (
        "does not say how many nodes there are, when it begins and when it ends: that is inferred"
        in shown
    )
    mtbf_h = fitted.values["mtbf_h"]
    assert mtbf_h.low < mtbf_h.mean < mtbf_h.high


def test_infinitehbd_as_a_whole(failure_logs: Path) -> None:
    outages = read_infinitehbd(failure_logs / "infinitehbd/fault_trace.json", n_nodes=400)
    fitted = fit_trace(outages, n_bootstrap=19)
    assert fitted.gaps.ranking is not None
    best = fitted.gaps.ranking.best
    assert best.fit.family == "gamma"
    assert best.p_value > 0.05
    assert {judged.p_value for judged in fitted.gaps.ranking.judged[2:]} == {1 / 20}
    text = job_fragment(fitted, "InfiniteHBD")
    assert yaml.safe_load(text)["failures"]["shape"] == 0.489694
    section = yaml.safe_load(fragment(fitted, "InfiniteHBD"))["failures"]
    assert section["kind"] == "correlated"
    assert section["shocks"]["sizes"] == {2: 19, 3: 5, 4: 2, 6: 1, 8: 2}
    assert section["shocks"]["nodes"] == 400


def test_presets_are_simulable_and_say_where_they_come_from() -> None:
    for one in PRESETS:
        assert preset(one.name).distribution.mean_h == pytest.approx(one.mean_h)
        assert one.source
        assert one.note
    assert preset("kokolis-rsc1").mean_h == pytest.approx(24_000 / 6.5)  # 6.50 in 1000 node-days
    assert preset("llama3").mean_h == pytest.approx(3.093, abs=1e-3)
    with pytest.raises(ParameterError, match="there is no preset 'crp'; there are cpr-frequent"):
        preset("crp")


def test_fitted_presets_are_what_the_logs_say(failure_logs: Path) -> None:
    hbd = read_infinitehbd(failure_logs / "infinitehbd/fault_trace.json", n_nodes=400)
    file = failure_logs / "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
    lanl = read_lanl(file, system=2, period=("2000-01-01", "2006-01-01"))
    for name, outages in (("infinitehbd", hbd), ("lanl-system-2", lanl)):
        kept = preset(name)
        again = fit(FAMILIES[kept.family], gaps(outages))
        assert again.mean.mean == pytest.approx(kept.mean_h, rel=1e-3)
        assert again.parameter("shape").mean == pytest.approx(kept.shape, rel=1e-3)
