"""Metrics against numbers worked out by hand, and intervals against scipy's."""

import re
from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cprsim.job.policy import Tax
from cprsim.results.metrics import (
    FINISHED,
    METRICS,
    PERCENT,
    differences,
    percentiles,
    replication_rows,
    summarise,
)
from cprsim.results.pipeline import Outcome
from tests.results import conftest as made

DOCS = Path(__file__).parents[2] / "docs" / "concepts.md"


def test_hours_become_shares_of_useful_time(outcome):
    full = summarise(outcome)["full"]
    assert full["overhead_fraction"].mean == pytest.approx(0.25)  # (1.5 + 2.5 + 3.5) / 3 / 10
    assert full["lost_fraction"].mean == pytest.approx(0.2)
    assert full["save_fraction"].mean == pytest.approx(0.05)
    assert full["load_fraction"].mean == 0
    assert full["overhead_h"].mean == pytest.approx(2.5)
    assert full["overhead_node_h"].mean == pytest.approx(2.5 * 6)
    assert full["ettr"].mean == pytest.approx((10 / 11.5 + 10 / 12.5 + 10 / 13.5) / 3)
    assert full["failures"].mean == 1
    assert full["saves"].mean == 4


def test_nodes_beside_the_jobs_are_paid_by_the_hour():
    spared = replace(made.CLUSTER, n_spares=2)
    taxed = replace(made.NONE, name="taxed", tax=Tax(nodes=3.0))
    strategies = (
        made.strategy(taxed, [1, 1], [0, 0]),
        made.strategy(made.FULL, [1, 1], [1, 1]),
    )
    found = summarise(Outcome(made.USEFUL_H, spared, strategies))
    # 10 h of work on 6 nodes, in 11 h on 9 and in 12 h on 6; 2 spares stand by
    assert found["taxed"]["overhead_node_h"].mean == pytest.approx(11 * 9 - 10 * 6)
    assert found["full"]["overhead_node_h"].mean == pytest.approx(2 * 6)
    assert found["taxed"]["ettr_paid"].mean == pytest.approx(10 * 6 / (11 * 11))
    assert found["full"]["ettr_paid"].mean == pytest.approx(10 * 6 / (12 * 8))
    assert found["full"]["ettr"].mean == pytest.approx(10 / 12)
    alone = summarise(Outcome(made.USEFUL_H, spared, strategies[1:]))
    assert alone["full"]["ettr_paid"].mean == found["full"]["ettr_paid"].mean


def test_pls_adds_up_what_each_lost_shard_went_back_by(outcome):
    rows = replication_rows(outcome).set_index(["strategy", "replication"])
    assert rows.loc["cpr", "pls"].tolist() == pytest.approx([0.25, 0.0, 0.05])
    assert rows.loc["cpr", "pls_net"].tolist() == pytest.approx([0.15, 0.0, 0.05])
    assert rows.loc["full", "pls"].tolist() == [0, 0, 0]


def test_means_over_the_lucky_replications_alone_are_not_given():
    one = made.strategy(made.FULL, [1, 1, 1, 1], [0, 0, 0, 900], finished=[True, True, True, False])
    other = made.strategy(made.CPR, [1, 1, 1, 1], [0, 0, 0, 0])
    found = summarise(Outcome(made.USEFUL_H, made.CLUSTER, (one, other)))
    assert found["full"][FINISHED].mean == 0.75
    assert all(isnan(found["full"][quantity].mean) for quantity in METRICS)
    assert found["cpr"]["save_fraction"].mean == pytest.approx(0.1)


def test_differences_within_a_run_are_paired(outcome):
    found = differences(replication_rows(outcome), outcome.cluster.n_nodes, "full")
    assert [*found] == ["cpr"]
    assert found["cpr"]["overhead_fraction"].mean == pytest.approx(0.01 - 0.25)
    save = found["cpr"]["save_fraction"]
    assert (save.low, save.high) == pytest.approx((-0.04, -0.04))  # the same in every pair


def test_the_docs_define_every_metric_and_no_other():
    section = DOCS.read_text("utf-8").partition("\n## Metrics\n")[2].partition("\n## ")[0]
    defined = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(defined) == sorted([*METRICS, FINISHED])


def test_the_interval_of_a_percentile_covers_it_as_often_as_it_says():
    found = percentiles(np.arange(1.0, 41.0))  # each value is its rank
    assert found.value[50] == 20.5  # half-way between two
    low, high = np.nan_to_num(found.low, nan=0.0), np.nan_to_num(found.high, nan=41.0)
    covered = stats.binom.cdf(high - 1, 40, PERCENT / 100) - stats.binom.cdf(
        low - 1, 40, PERCENT / 100
    )
    assert (covered >= 0.95).all()
    assert covered.min() < 0.97  # no wider than it needs to be
