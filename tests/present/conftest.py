"""A selection that nobody simulated."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf
from pathlib import Path

from cprsim.records import Estimate
from cprsim.recovery.policy import RELOAD, ROLL_BACK
from cprsim.results.folder import ResultTarget
from cprsim.results.identity import Identity
from cprsim.selector.choice import Candidate, Selection, write_selection
from cprsim.selector.limit import PLS, Limit
from cprsim.selector.option import strategy as option_of
from tests.making import paper_policy


def candidate(strategy, interval_h, overhead, pls, *, keeps=True, rule=""):
    """Known to a tenth of each number."""

    def spread(mean):
        return Estimate(mean, 0.9 * mean, 1.1 * mean, 100)

    way = ROLL_BACK if strategy == "full" else RELOAD
    return Candidate(
        strategy=strategy,
        policy=paper_policy(strategy, way, interval_h, rule or "selected"),
        n_saves=0 if interval_h == inf else int(20 / interval_h),
        finished_fraction=1.0,
        overhead=spread(overhead),
        pls=spread(pls),
        loss=spread(pls),
        held=1.1 * pls,
        keeps=keeps,
        benefit=spread(0.12 - overhead),
        beyond_fraction=0.0,
        rule=rule,
        entry=option_of(strategy).entry_at(interval_h, 20.0),
    )


def made_selection(parent) -> Path:
    """The folder of a selection that nobody simulated."""
    full = candidate("full", 1.25, 0.12, 0.0)
    partial = candidate("partial", 5.0, 0.0225, 0.07)
    selection = Selection(
        useful_h=20.0,
        n_replications=100,
        limit=Limit(PLS, 0.1),
        curve=None,
        full=full,
        best={"partial": partial, "cpr-ssu": None},
        formula=(candidate("partial", 8.0, 0.018, 0.1, keeps=False, rule="cpr"),),
        front={"partial": (candidate("partial", inf, 0.01, 0.3, keeps=False), partial)},
        recommended="partial",
    )
    return kept_selection(parent, selection).path


def kept_selection(parent, selection) -> Selection:
    """A selection in a folder of its own."""
    identity = Identity("small-select", "name: small\n", {})
    about = {"command": ["cprsim", "select"], "seed": 1}
    target = ResultTarget(parent, identity, datetime.now(UTC), about)
    return write_selection(target, selection, lambda *_: None)
