"""Fragments: a scenario takes each of them, scaled to the job, and says what is extrapolated."""

from pathlib import Path

import numpy as np
import pytest
import yaml

import cprsim
from cprsim.errors import CprsimError, ParameterError, ScenarioError
from cprsim.failures import limits
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.job.distributions import Exponential, Gamma, LogNormal, PiecewiseHazard, Weibull
from cprsim.job.records import Cluster, Floats, Holds, Role
from cprsim.logs.fit.fragments import failures_fragment, job_fragment, stretched
from cprsim.logs.fit.observation import share_of_job
from cprsim.logs.fit.report import Fitted, fit_failures
from cprsim.results import pipeline
from cprsim.scenario.assemble import Experiment
from cprsim.scenario.cluster import ClusterSection
from tests.fitting.logs import assembled, gaps_on_random_nodes, lemons, log_of, write_log

pytestmark = pytest.mark.long


def scenario(text: str, n_nodes: int, useful_h: float) -> Experiment:
    """A job of so many servers and useful hours that fails as a fragment says."""
    return assembled(
        text, f"job.useful={useful_h!r} h", f"cluster={{trainers: 0, emb_ps: {n_nodes}}}",
        "costs={save: 0 h, load: 0 h, reschedule: 0 h}", "simulation={seed: 1, replications: 2}",
        "recovery=[{strategy: partial, interval: 5000 h}]",
    )  # fmt: skip


def fitted(outages: Outages, n_job: int | None = None) -> Fitted:
    return fit_failures(outages, origin="a log", n_job_nodes=n_job, n_bootstrap=0)


def run(experiment: Experiment) -> Floats:
    """Failures of each replication."""
    return pipeline.simulate(experiment).strategies[0].costs.n_failures


# --------------------------------------------------------------------- whatever fit writes runs


def drawn(kind: str) -> Outages:
    """A log of some kind and scale."""
    rng = np.random.default_rng(KINDS.index(kind))
    n, scale = int(rng.integers(8, 150)), float(10 ** rng.uniform(-1.5, 3.5))
    if kind == "lemons":
        spread = float(10 ** rng.uniform(1, 6))
        return lemons(int(rng.integers(1000)), mean_h=100.0, others_h=100 * spread, shape=0.4)
    gaps_h = {
        "exponential": lambda: rng.exponential(1.0, n),
        "weibull": lambda: rng.weibull(0.3, n),
        "gamma": lambda: rng.gamma(0.08, 1.0, n),
        "lognormal": lambda: rng.lognormal(0.0, 4.5, n),
        "regular": lambda: 1 + 1e-3 * rng.random(n),
        "piecewise": lambda: np.where(
            rng.random(n) < 0.5, rng.exponential(0.01, n), 1 + rng.exponential(1.0, n)
        ),
        "groups": lambda: np.where(rng.random(n) < 0.3, 0.0, rng.exponential(1.0, n)),
        "few": lambda: rng.exponential(1.0, 4),
    }[kind]()
    return gaps_on_random_nodes(np.maximum(gaps_h, 0.0) * scale, 12, int(rng.integers(1000)))


KINDS = (
    "exponential", "weibull", "gamma", "lognormal", "regular", "piecewise", "groups", "lemons",
    "few",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_fragment_loads_and_runs_and_reads_as_its_data(kind: str) -> None:
    log = drawn(kind)
    useful_h = min(max(3 * log.window_h / log.n_outages, 1e-3), 1e4)
    for n_job in (log.n_nodes, 3):
        said = fitted(log, n_job)
        for one in (failures_fragment(said), job_fragment(said)):
            text = str(one)
            assert yaml.safe_load(text) == one.sections
            assert len(run(scenario(text, n_job, useful_h))) == 2
            for line in text.splitlines():
                if "cluster, with spares: repair: " in line:
                    repair = line.partition("repair: ")[2].partition("; none")[0]
                    cluster = {"emb_ps": 1, "trainers": 0, "spares": 1}
                    ClusterSection.model_validate(cluster | {"repair": yaml.safe_load(repair)})


def test_nodes_that_no_scenario_takes_give_way_and_it_is_said() -> None:
    """Three nodes that fail all the time beside others that hardly do, hazards falling fast."""
    said = fitted(lemons(2, mean_h=300.0, others_h=3e9, shape=0.3))
    assert said.correlated.forms[0].distribution.mean_h > 1e8  # hours: no scenario takes that
    assert "not lemons: the mean" in str(failures_fragment(said))
    scenario(str(failures_fragment(said)), 60, 50.0)
    rng = np.random.default_rng(3)
    said = fitted(gaps_on_random_nodes(rng.weibull(400.0, 500), 5))
    assert said.gaps.family == "weibull"  # with a shape of about 400
    assert "# not weibull: the shape" in str(job_fragment(said))
    scenario(str(job_fragment(said)), 5, 100.0)


@pytest.mark.parametrize(
    ("numbers", "bound", "beyond"),
    [
        ("family: exponential, mtbf: {!r} h", limits.MTBF_H[1], 1.01),
        ("family: gamma, mtbf: 1 h, shape: {!r}", limits.SHAPE[0], 1 / 1.01),
        ("family: gamma, mtbf: 1 h, shape: {!r}", limits.SHAPE[1], 1.01),
        ("family: lognormal, mtbf: 1 h, sigma: {!r}", limits.SIGMA[1], 1.01),
        ("family: piecewise, ages: [0 h], hazards: [{!r} failures/h]", limits.HAZARD_PER_H[0], 0.5),
    ],
)
def test_the_bounds_are_those_of_the_schema(numbers: str, bound: float, beyond: float) -> None:
    text = "failures: {{kind: job, role: any, " + numbers + "}}\n"
    scenario(text.format(bound), 4, 5.0)
    with pytest.raises(ScenarioError):
        scenario(text.format(bound * beyond), 4, 5.0)


def test_what_lies_beyond_the_bounds_is_not_written() -> None:
    for beyond in (Exponential(2e8), Gamma(0.09, 1.0), Weibull(101.0, 1.0), LogNormal(0.0, 3.71)):
        with pytest.raises(ParameterError, match="outside the bounds of a scenario"):
            limits.writable(beyond)
    with pytest.raises(ParameterError, match="the hazard 1e-09 failures/h lies outside"):
        limits.writable(PiecewiseHazard((0.0,), (1e-9,)))


def test_what_a_log_is_called_stays_within_its_comment() -> None:
    said = fit_failures(drawn("exponential"), "a\nfailures: {kind: none}\x1b[2J", n_bootstrap=0)
    for one in (failures_fragment(said), job_fragment(said)):
        assert str(one).splitlines()[0] == r"# fitted to a\nfailures: {kind: none}\x1b[2J"
        scenario(str(one), 12, 1.0)


# ------------------------------------------------------------------------------ scaled to a job


def test_pieces_are_scaled_to_the_share_of_the_job() -> None:
    rng = np.random.default_rng(5)  # gaps that only a hazard in pieces describes, mean about 4 h
    late_h = 3 + rng.exponential(4.0, 1500)
    log = gaps_on_random_nodes(
        np.where(rng.random(1500) < 0.5, rng.exponential(0.1, 1500), late_h), 96
    )
    for n_job in (8, 10):  # unscaled they fail 12 and 9.6 times too often
        said = fitted(log, n_job)
        text = str(job_fragment(said))
        assert "family: piecewise" in text
        assert f"# for a job on {n_job} of the 96 nodes of the log, whose share of the" in text
        assert said.job_share == pytest.approx(n_job / 96, rel=0.01)
        counts = run(scenario(text, n_job, 2000.0).simulated(replications=300))
        wanted = 2000.0 * n_job / 96 * 1500 / log.window_h
        error = counts.std(ddof=1) / np.sqrt(len(counts))
        # the rate of the log is itself known to within 3 %
        assert abs(counts.mean() - wanted) <= 4 * error + 0.05 * wanted


def test_a_group_strikes_a_part_of_the_nodes_as_a_replay_has_it() -> None:
    rng = np.random.default_rng(2)
    at_h = np.sort(rng.random(900)) * 3000
    sizes = rng.choice([1, 2, 5], 900, p=[0.7, 0.2, 0.1])
    node = np.concatenate([rng.choice(40, size, replace=False) for size in sizes])
    outages = log_of(np.repeat(at_h, sizes), 3000.0, node, 40)
    groups = fitted(outages).groups
    for n_job in (1, 8, 39, 40):
        cluster = Cluster((Role("node", n_job, Holds.NOTHING),))
        replayed_h = Replay(outages).expected(cluster, 50.0).mtbf_h
        share = share_of_job(groups, n_job, 40)
        assert 3000.0 / (900 * share) == pytest.approx(replayed_h, rel=1e-9)


def test_all_families_stretch_to_their_mean_and_keep_their_shape() -> None:
    pieces = PiecewiseHazard((0.0, 2.0), (0.5, 0.1))
    for one in (Exponential(3.0), Weibull(0.5, 2.0), Gamma(0.7, 2.0), LogNormal(0.3, 1.1), pieces):
        longer = stretched(one, 12.0)
        assert longer.mean_h == pytest.approx(12 * one.mean_h)
        assert longer.squared_cv == pytest.approx(one.squared_cv)
        assert stretched(one, 1.0) is one


def test_nodes_that_differ_need_no_scaling() -> None:
    log = lemons(1, mean_h=30.0, others_h=3000.0, shape=0.8)
    whole, part = (str(failures_fragment(fitted(log, n))) for n in (None, 8))
    assert "A job on 8 of 60 (0.1333 of the nodes)" in part
    assert "A job on 60 of 60\n" in whole
    said_h = float(part.partition("fails every ")[2].split()[0])
    counts = run(scenario(part, 8, 100.0).simulated(replications=300))
    error = counts.std(ddof=1) / np.sqrt(len(counts))
    assert abs(counts.mean() - 100 / said_h) <= 4 * error


# --------------------------------------------------------------------------- what is extrapolated


def test_a_mean_beyond_all_that_was_watched_is_called_extrapolated() -> None:
    log = lemons(1, mean_h=30.0, others_h=3e5, shape=0.8)
    said = fitted(log)
    assert said.uptimes.lifetimes.longest_h == 2000
    assert said.uptimes.lifetimes.hours_per_end == pytest.approx(120_000 / log.n_outages, rel=0.01)
    families = {(row["times"], row["family"]): row for row in said.frames["families"]}
    for fit in said.uptimes.ranking.judged:
        assert families["uptimes", fit.family]["extrapolated"] == (fit.mean.mean > 2000)
    assert families["nodes", said.correlated.forms[0].family]["extrapolated"]
    text = "is extrapolated: nothing was watched for longer than 2000 h;"
    assert text in str(failures_fragment(said))
    beyond = "uptimes: the mean is extrapolated beyond 2,000 h, the longest"
    assert any(beyond in warning for warning in said.warnings)
    known = fitted(gaps_on_random_nodes(np.random.default_rng(1).exponential(5, 200), 4))
    assert "extrapolated" not in str(failures_fragment(known))


# ------------------------------------------------------------------------------------- --save


def test_the_fragment_is_saved_to_a_new_file(tmp_path: Path) -> None:
    at_h = np.cumsum(np.random.default_rng(7).exponential(9.0, 60))
    log = write_log(tmp_path / "log.csv", log_of(at_h, 1e9, np.arange(60) % 6, 6))
    saved = tmp_path / "fragment.yaml"
    said = cprsim.fit(log, time_unit="h", bootstrap=0, job_nodes=3, save=saved)
    assert list(said.files) == [saved]
    text = saved.read_text()
    assert text == said.values["fragment"]
    for path in (saved, tmp_path, tmp_path / "nowhere" / "fragment.yaml"):
        with pytest.raises(CprsimError, match=str(path)):  # before the log is read
            cprsim.fit(tmp_path / "no log", save=path)
    assert saved.read_text() == text


def test_a_log_without_a_fragment_is_fitted_and_nothing_is_saved(tmp_path: Path) -> None:
    # all gaps alike: no family has a maximum but the exponential, whose mean no scenario takes
    log = write_log(tmp_path / "log.csv", log_of(np.arange(5) * 1e-4, 1.0))
    said = cprsim.fit(log, time_unit="h", bootstrap=0)
    assert said.values["fragment"] is None
    assert "no fitted family can stand" in said.values["why_no_fragment"]
    saved = tmp_path / "fragment.yaml"
    with pytest.raises(ParameterError, match=r"^save: there is no fragment to write: no"):
        cprsim.fit(log, time_unit="h", bootstrap=0, save=saved)
    assert not saved.exists()
