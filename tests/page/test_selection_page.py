"""The page of a selection, from one made by hand: no simulation."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from math import inf

import pytest

from cprsim.page import page_of, render
from cprsim.records import OnFailure, RecoveryPolicy
from cprsim.results.identity import Identity
from cprsim.results.metrics import Spread
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.folder import write_selection
from cprsim.selector.limit import Limit, Quantity


def candidate(strategy, interval_h, overhead, pls, *, keeps=True, rule=""):
    """Known to a tenth of each number."""

    def spread(mean):
        return Spread(mean, 0.9 * mean, 1.1 * mean, 100)

    way = OnFailure.ROLL_BACK if strategy == "full" else OnFailure.RELOAD
    return Candidate(
        strategy=strategy,
        policy=RecoveryPolicy(strategy, way, interval_h, rule or "selected"),
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
    )


@pytest.fixture
def folder(tmp_path):
    full = candidate("full", 1.25, 0.12, 0.0)
    partial = candidate("partial", 5.0, 0.0225, 0.07)
    selection = Selection(
        useful_h=20.0,
        n_replications=100,
        limit=Limit(Quantity.PLS, 0.1),
        curve=None,
        full=full,
        best={"partial": partial, "cpr-ssu": None},
        formula=(candidate("partial", 8.0, 0.018, 0.1, keeps=False, rule="cpr"),),
        front={"partial": (candidate("partial", inf, 0.01, 0.3, keeps=False), partial)},
        chosen=partial,
    )
    return write_selection(
        tmp_path,
        Identity("small-select", "name: small\n", {}),
        selection,
        about={"command": ["cprsim", "select"], "seed": 1},
        started=datetime.now(UTC),
        draw=lambda folder: None,
    )


def test_the_page_of_a_selection_says_what_to_run_and_what_there_was_to_choose(folder):
    page = page_of([folder])
    assert page.title == "What to run: small"
    text = html.unescape(render(page)).replace("\N{NO-BREAK SPACE}", " ")
    assert "Recommended: partial, saving every 5 h." in text
    for said in (
        "partial (recommended)",
        "2.25 ± 0.23",
        "no interval that is worth its saves keeps the limit",
        "partial, cpr",
        "name: small",
    ):
        assert said in text
    rows = [row for row in text.split("<tr>") if "partial, cpr" in row]
    assert ">no<" in rows[0]
