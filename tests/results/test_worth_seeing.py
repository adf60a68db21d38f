"""Which replications are named as worth a look: counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cprsim.experiments.pipeline import Outcome
from cprsim.results.run import judged_by, worth_seeing
from tests.results import conftest as made


@pytest.fixture
def with_walls(write):
    """The result with other wall times of full recovery, the second of two strategies."""
    strategies = [made.strategy(policy, [1] * 20, [0] * 20) for policy in (made.CPR, made.FULL)]
    result = write(outcome=Outcome(made.USEFUL_H, made.CLUSTER, tuple(strategies)))

    def changed(walls, finished=True):
        rows = result.replications.copy()
        full = rows["strategy"] == "full"
        rows.loc[full, "wall_h"] = np.asarray(walls, float)
        rows.loc[full, "finished"] = finished
        return replace(result, replications=rows)

    return changed


def test_the_overhead_of_plain_full_recovery_orders_them(with_walls) -> None:
    result = with_walls(100 - np.arange(20))  # the longest first: replication 0 is the worst
    assert judged_by(result) == "full"
    assert worth_seeing(result) == {"median": 10, "p95": 1, "worst": 0}


def test_what_did_not_finish_is_left_aside(with_walls) -> None:
    finished = [True] * 10 + [False] * 10
    named = worth_seeing(with_walls(np.arange(20), finished))
    assert named == {"median": 4, "p95": 9, "worst": 9}
    never = with_walls(np.arange(20), finished=False)
    assert judged_by(never) == "cpr"
    none = never.replications.assign(finished=False)
    assert worth_seeing(replace(never, replications=none)) == {}
