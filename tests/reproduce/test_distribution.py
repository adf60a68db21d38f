"""One MTBF for failures of five forms, and what is said where the logs are not there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.failures.correlated import CorrelatedNodes, Shocks
from cprsim.failures.distributions import Weibull
from cprsim.failures.frailty import Lemons
from cprsim.failures.outages import Outages, outages_of
from cprsim.failures.replay import Replay
from cprsim.failures.sources import Start
from cprsim.records import Cluster, Holds, Role
from cprsim.reproduce import STUDIES, distribution
from cprsim.reproduce.distribution import Overheads, five_forms, stretched, with_mtbf
from cprsim.reproduce.study import Effort, Work
from tests.making import SCENARIOS, call

CLUSTER = Cluster((Role("emb_ps", 4, Holds.SHARD), Role("trainer", 16, Holds.REPLICA)))


@pytest.fixture
def outages() -> Outages:
    """Single failures of 20 nodes every 12.5 h and pairs every 100 h, over 2,500 h."""
    rng = np.random.default_rng(4)
    singles_h, pairs_h = rng.uniform(0, 2500, 200), rng.uniform(0, 2500, 25)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in pairs_h])
    node = np.concatenate([rng.integers(20, size=200), pairs.ravel()])
    start_h = np.concatenate([singles_h, np.repeat(pairs_h, 2)])
    return outages_of(
        node, start_h, start_h + 0.01, ("",) * len(node),
        n_nodes=20, window_h=2500.0, origin="0 h",
    )  # fmt: skip


def test_all_forms_have_the_mtbf_of_the_log_drawn_and_expected(outages: Outages) -> None:
    forms = dict(five_forms(Replay(outages), CLUSTER, 200.0))
    assert len(forms) == 5
    n, mtbf_h = 400, 2500.0 / 225
    for source in forms.values():
        assert source.expected(CLUSTER, 200.0).mtbf_h == pytest.approx(mtbf_h, rel=0.005)
        trace = next(source.draw(CLUSTER, 3, 0, n, [200.0]))
        counts = np.bincount(trace.replication, minlength=n)
        assert abs(counts.mean() - 200.0 / mtbf_h) <= 4 * counts.std() / np.sqrt(n) + 0.1


def test_stretched_time_leaves_everything_else_as_it_was() -> None:
    source = CorrelatedNodes(
        Weibull.from_mean(300.0, 0.6),
        frailty=Lemons(0.1, 5.0),
        shocks=Shocks(0.01, (2, 4), (0.5, 0.5), 40),
        start=Start.FRESH,
        watched_h=1000.0,
    )
    twice = stretched(source, 2.0)
    mtbf_h = source.expected(CLUSTER, 100.0).mtbf_h
    assert twice.expected(CLUSTER, 200.0).mtbf_h == pytest.approx(2 * mtbf_h, rel=1e-9)
    assert replace(twice, shocks=None).frailty == source.frailty
    brought = with_mtbf(source, CLUSTER, 200.0, 7.0)
    assert brought.expected(CLUSTER, 200.0).mtbf_h == pytest.approx(7.0, rel=1e-8)


def test_the_interval_of_a_percentile_covers_it() -> None:
    rng = np.random.default_rng(7)
    truth = np.log(10.0)  # of the exponential distribution with mean 1
    found = [Overheads.of(rng.exponential(size=500)).p90 for _ in range(400)]
    covered = np.mean([one.low <= truth <= one.high for one in found])
    assert 0.95 - 4 * 0.011 <= covered <= 1.0 - 0.011
    assert all(one.low <= one.mean <= one.high for one in found)


def test_without_the_logs_it_says_where_they_come_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CPRSIM_DATA", raising=False)
    asked = call("reproduce", "distribution")
    assert asked.exit_code == 2
    assert "CPRSIM_DATA is not set" in asked.output
    assert "InfiniteHBD" in asked.output
    assert "CFDR" in asked.output
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    assert "lacks" in distribution.missing()


def test_all_leaves_it_out_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CPRSIM_DATA", raising=False)
    few = {name: STUDIES[name] for name in ("distribution", "fig-overheads")}
    monkeypatch.setattr("cprsim.reproduce.STUDIES", few)
    options = ["--scenarios", str(SCENARIOS), "--out", str(tmp_path), "--workers", "1"]
    everything = call("reproduce", *options)
    assert everything.exit_code == 0
    (line,) = (line for line in everything.stderr.splitlines() if "left out" in line)
    assert line.startswith("distribution is left out: CPRSIM_DATA is not set")
    assert "fig-overheads" in everything.stdout


def test_the_table_on_the_logs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if distribution.missing():
        pytest.skip(distribution.missing())
    few = [part.replace("2000}", "20}") for part in distribution.JOB]
    monkeypatch.setattr(distribution, "JOB", few)
    work = Work(distribution.STUDY, Effort.FULL, SCENARIOS, tmp_path, "of the test")
    (listing,) = distribution.STUDY.make(work).listings
    assert [row[0] for row in listing.rows if row[0]] == ["InfiniteHBD", "LANL"]
    assert len(listing.rows) == 10
    assert "gamma, shape 0.490" in {row[1] for row in listing.rows}  # a known answer of the log
    # 200 h / 15.9 h and 200 h / 16.2 h of useful time, and some more while recovering
    assert all(9 < float(row[2]) < 18 for row in listing.rows)
