"""Metrics against numbers worked out by hand, and intervals against scipy's."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isnan, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cprsim.estimate import Estimate
from cprsim.experiments.pipeline import Outcome
from cprsim.results import METRICS, differences, summarise
from cprsim.results.metrics import FINISHED, spreads
from cprsim.results.rows import replication_rows

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_hours_become_shares_of_useful_time(outcome):
    full = spreads(summarise(outcome))["full"]
    assert full["overhead_fraction"].mean == pytest.approx(0.25)  # (1.5 + 2.5 + 3.5) / 3 / 10
    assert full["lost"].mean == pytest.approx(0.2)
    assert full["save"].mean == pytest.approx(0.05)
    assert full["load"].mean == 0
    assert full["overhead_h"].mean == pytest.approx(2.5)
    assert full["overhead_node_h"].mean == pytest.approx(2.5 * 6)
    assert full["ettr"].mean == pytest.approx((10 / 11.5 + 10 / 12.5 + 10 / 13.5) / 3)
    assert full["failures"].mean == 1
    assert full["saves"].mean == 4


def test_nodes_beside_the_jobs_are_paid_by_the_hour(made):
    spared = replace(made.cluster, n_spares=2)
    strategies = (
        made.strategy(made.taxed(nodes=3.0), [1, 1], [0, 0]),
        made.strategy(made.full, [1, 1], [1, 1]),
    )
    found = spreads(summarise(Outcome(made.useful_h, spared, strategies)))
    # 10 h of work on 6 nodes, in 11 h on 9 and in 12 h on 6; 2 spares stand by
    assert found["taxed"]["overhead_node_h"].mean == pytest.approx(11 * 9 - 10 * 6)
    assert found["full"]["overhead_node_h"].mean == pytest.approx(2 * 6)
    assert found["taxed"]["ettr_paid"].mean == pytest.approx(10 * 6 / (11 * 11))
    assert found["full"]["ettr_paid"].mean == pytest.approx(10 * 6 / (12 * 8))
    assert found["full"]["ettr"].mean == pytest.approx(10 / 12)


def test_only_results_with_nodes_beside_the_jobs_name_them(made, outcome):
    rows = replication_rows(outcome)
    assert not {"extra_nodes", "spare_nodes"} & set(rows)
    found = spreads(summarise(outcome))["full"]
    assert found["ettr_paid"] == found["ettr"]
    taxed = Outcome(made.useful_h, made.cluster, (made.strategy(made.taxed(), [1], [0]),))
    assert replication_rows(taxed)["extra_nodes"].tolist() == [3.0]
    spared = replace(outcome, cluster=replace(made.cluster, n_spares=1))
    assert set(replication_rows(spared)["spare_nodes"]) == {1.0}


def test_pls_adds_up_what_each_lost_shard_went_back_by(outcome):
    rows = replication_rows(outcome).set_index(["strategy", "replication"])
    assert rows.loc["cpr", "pls"].tolist() == pytest.approx([0.25, 0.0, 0.05])
    assert rows.loc["cpr", "pls_net"].tolist() == pytest.approx([0.15, 0.0, 0.05])
    assert rows.loc["full", "pls"].tolist() == [0, 0, 0]


def test_the_interval_is_students(outcome):
    overhead = spreads(summarise(outcome))["full"]["overhead_fraction"]
    half = 4.302652729911275 * 0.1 / sqrt(3)  # t(0.975, 2), standard deviation 0.1
    assert overhead.half_width == pytest.approx(half)
    assert overhead.low == pytest.approx(0.25 - half)


def test_one_replication_has_a_mean_and_no_interval():
    mean, low, high = Estimate.of_mean(np.array([0.3])).triple
    assert mean == 0.3
    assert isnan(low)
    assert isnan(high)


def test_equal_values_have_an_interval_without_width():
    assert Estimate.of_mean(np.full(4, 0.25)).triple == (0.25, 0.25, 0.25)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=50))
def test_intervals_of_means_are_scipys(values):
    array = np.array(values)
    _, low, high = Estimate.of_mean(array).triple
    spread = stats.sem(array)
    if spread > 1e-9:
        expected = stats.t.interval(0.95, len(array) - 1, loc=array.mean(), scale=spread)
        assert (low, high) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_of_shares_are_clopper_and_pearsons(case):
    n_yes, n = case
    exact = stats.binomtest(n_yes, n).proportion_ci(0.95, method="exact")
    assert Estimate.of_share(n_yes, n).triple[1:] == pytest.approx(
        (exact.low, exact.high), abs=1e-9
    )


def test_means_over_the_lucky_replications_alone_are_not_given(made):
    one = made.strategy(made.full, [1, 1, 1, 1], [0, 0, 0, 900], finished=[True, True, True, False])
    other = made.strategy(made.cpr, [1, 1, 1, 1], [0, 0, 0, 0])
    found = spreads(summarise(Outcome(made.useful_h, made.cluster, (one, other))))
    assert found["full"][FINISHED].mean == 0.75
    assert all(isnan(found["full"][quantity].mean) for quantity in METRICS)
    assert found["cpr"]["save"].mean == pytest.approx(0.1)


def test_the_order_of_strategies_changes_no_number(outcome):
    turned = replace(outcome, strategies=outcome.strategies[::-1])
    found = [
        summarise(one).set_index(["strategy", "quantity"]).sort_index() for one in (turned, outcome)
    ]
    pd.testing.assert_frame_equal(*found, check_exact=True)


def test_parts_of_overhead_add_up_to_it(outcome):
    for mine in spreads(summarise(outcome)).values():
        parts = ("save", "load", "lost", "detect", "wait", "reschedule")
        assert sum(mine[p].mean for p in parts) == pytest.approx(mine["overhead_fraction"].mean)


def test_differences_within_a_run_are_paired(outcome):
    table = differences(replication_rows(outcome), outcome.cluster.n_nodes, "full")
    overhead = table[table["quantity"] == "overhead_fraction"].iloc[0]
    assert overhead["strategy"] == "cpr"
    assert overhead["mean"] == pytest.approx(0.01 - 0.25)
    lost = table[table["quantity"] == "save"].iloc[0]
    assert (lost["low"], lost["high"]) == pytest.approx((-0.04, -0.04))  # the same in every pair


def test_the_docs_define_every_metric_and_no_other():
    headings = re.findall(r"^###? ([a-z_]+)$", DOCS.read_text("utf-8"), re.MULTILINE)
    assert set(headings) == {*METRICS, FINISHED}
