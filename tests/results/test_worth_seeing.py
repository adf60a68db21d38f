"""Which replications are named as worth a look: counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cprsim
from cprsim.results.run import judged_by, load_result, worth_seeing
from tests.making import small_scenario, undrawing


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    with undrawing():
        run = cprsim.run(small_scenario("partial, full"), folder=tmp_path_factory.mktemp("worth"))
    return load_result(run.folder)


def with_walls(result, walls, finished=None):
    """The result with other wall times of full recovery."""
    rows = result.replications.copy()
    mine = rows["strategy"] == "full"
    rows.loc[mine, "wall_h"] = np.asarray(walls, float)
    if finished is not None:
        rows.loc[mine, "finished"] = finished
    return replace(result, replications=rows)


def test_the_overhead_of_plain_full_recovery_orders_them(result) -> None:
    assert judged_by(result) == "full"
    walls = 100 - np.arange(20)  # the longest first: replication 0 is the worst
    assert worth_seeing(with_walls(result, walls)) == {"median": 10, "p95": 1, "worst": 0}


def test_what_did_not_finish_is_left_aside(result) -> None:
    finished = [True] * 10 + [False] * 10
    named = worth_seeing(with_walls(result, np.arange(20), finished))
    assert named == {"median": 4, "p95": 9, "worst": 9}
    assert judged_by(with_walls(result, np.arange(20), [False] * 20)) == "partial"
    none = result.replications.assign(finished=False)
    assert worth_seeing(replace(result, replications=none)) == {}
