"""Made-up outcomes: the shape of real ones, numbers that can be checked by hand."""

from datetime import UTC, datetime

import numpy as np
import pytest

from cprsim.job.policy import RELOAD, RESTART, ROLL_BACK
from cprsim.job.records import PARTS, Cluster, CostBreakdown, Decision, Holds, Role, ShardLoss
from cprsim.results.folder import ResultTarget
from cprsim.results.identity import Identity
from cprsim.results.pipeline import Outcome, StrategyOutcome
from cprsim.results.run import Result, write_result
from tests.making import paper_policy
from tests.simulators import job_of, logged

CLUSTER = Cluster((Role("trainer", 2, Holds.REPLICA), Role("emb_ps", 4, Holds.SHARD)))
USEFUL_H = 10.0
DECISION = Decision("partial", 8.0, 2.0, 0.02, float("inf"), 0.1)
FULL = paper_policy("full", ROLL_BACK, 2.0, "young")
CPR = paper_policy("cpr", RELOAD, 8.0, "cpr", DECISION)
NONE = paper_policy("none", RESTART, float("inf"), "never saves")


def strategy(policy, save_h, lost_h, *, losses=(), finished=None):
    """A strategy that saves and loses the given hours in each replication, and nothing else."""
    save_h, lost_h = np.asarray(save_h, float), np.asarray(lost_h, float)
    n, hours = len(save_h), {"save": save_h, "lost": lost_h}
    costs = CostBreakdown(
        replication=np.arange(n),
        finished=np.ones(n, bool) if finished is None else np.asarray(finished),
        wall_h=USEFUL_H + save_h + lost_h,
        useful_h=np.full(n, USEFUL_H),
        parts=PARTS,
        hours=np.column_stack([hours.get(part, np.zeros(n)) for part in PARTS]),
        n_failures=np.full(n, 1),
        n_saves=np.full(n, 4),
    )
    columns = list(zip(*losses, strict=True)) or [()] * 6
    types = (np.int64, float, np.int64, float, float, float)
    lost = ShardLoss(*(np.array(c, t) for c, t in zip(columns, types, strict=True)))
    return StrategyOutcome(policy, costs, lost)


@pytest.fixture
def outcome():
    """Full loses 1, 2 and 3 h; cpr 0.1 h each, and shards in replications 0 and 2."""
    losses = [  # replication, progress, slot, since save, since reload, share
        (0, 6.0, 2, 4.0, 4.0, 0.25),
        (0, 8.0, 2, 6.0, 2.0, 0.25),
        (2, 5.0, 3, 2.0, 2.0, 0.25),
    ]
    strategies = (
        strategy(FULL, [0.5, 0.5, 0.5], [1.0, 2.0, 3.0]),
        strategy(CPR, [0.1, 0.1, 0.1], [0.0, 0.0, 0.0], losses=losses),
    )
    return Outcome(useful_h=USEFUL_H, cluster=CLUSTER, strategies=strategies)


@pytest.fixture
def logbook():
    return dict.fromkeys(("full", "cpr"), logged(job_of(ROLL_BACK), []))


@pytest.fixture
def write(outcome, logbook, tmp_path):
    """Write the result into a folder of results and read it back; parts can be exchanged."""
    made_up = Identity("made up", "name: made up\nseed: 1\n", {})
    command = {"command": ["cprsim", "run"], "seed": 1}

    def _write(root=tmp_path / "results", identity=made_up, about=command, **changed) -> Result:
        parts = {
            "outcome": outcome, "logs": logbook, "replication": 0, "failures_digest": "same"
        } | changed  # fmt: skip
        return write_result(ResultTarget(root, identity, datetime.now(UTC), about), **parts)

    return _write
