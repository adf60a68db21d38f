"""Repeats of one node within a window are one failure, and how many were merged is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cprsim.failures.coalescing import brought_together, coalesced
from cprsim.failures.outages import Outages, outages_of
from cprsim.fitting.families import WEIBULL, fit
from cprsim.fitting.lifetimes import uptimes
from cprsim.fitting.observation import togetherness
from tests.making import call


def log(rows: list[tuple[int, float, float]]) -> Outages:
    node, start_h, end_h = (np.array(column) for column in zip(*rows, strict=True))
    return outages_of(
        node, start_h.astype(float), end_h.astype(float), ("",) * len(rows), n_nodes=3,
        window_h=100.0, origin="0 h",
    )  # fmt: skip


ROWS = [(0, 1, 1), (0, 1.5, 1.5), (0, 2.0, 2.2), (0, 9, 9), (1, 1.5, 1.5), (1, 5, 6), (1, 6.4, 7)]


def test_a_chain_of_repeats_is_one_failure_from_the_first_to_the_last() -> None:
    merged = coalesced(log(ROWS), 0.5)
    rows = sorted(zip(merged.node.tolist(), merged.start_h.tolist(), merged.end_h.tolist(),
                      strict=True))  # fmt: skip
    assert rows == [(0, 1.0, 2.2), (0, 9.0, 9.0), (1, 1.5, 1.5), (1, 5.0, 7.0)]
    assert merged.notes[-1] == "3 failure(s) within 0.5 h of one of the same node merged into it"


def test_no_window_merges_only_what_touches_and_other_nodes_stay() -> None:
    assert coalesced(log(ROWS), 0.0).n_outages == 7
    assert coalesced(log([(0, 1, 2), (0, 2, 3), (1, 2, 3)]), 0.0).n_outages == 2
    assert coalesced(log(ROWS), 1e3).n_outages == 2


def test_an_open_end_stays_open_where_it_is_merged() -> None:
    merged = coalesced(log([(0, 1, 2), (0, 2.1, np.nan), (1, 5, 6)]), 0.5)
    assert merged.ended.tolist() == [False, True]
    assert merged.end_h.tolist() == [100.0, 6.0]


def bursts(seed: int, *, n: int = 300, shape: float = 1.5) -> Outages:
    """One node of Weibull gaps, mean 100 h; each failure repeats three times within minutes."""
    rng = np.random.default_rng(seed)
    first = np.cumsum(100 * rng.weibull(shape, n))
    at_h = (first[:, None] + np.append(0.0, np.sort(rng.random(3) * 0.1))).ravel()
    zeros = np.zeros(len(at_h), dtype=np.int64)
    return outages_of(
        zeros, at_h, at_h, ("",) * len(at_h), n_nodes=1, window_h=float(at_h[-1]) + 1, origin="0 h"
    )


def test_the_right_window_finds_the_failures_and_the_shape_behind_bursts() -> None:
    whole, right = (uptimes(one) for one in (bursts(1), coalesced(bursts(1), 0.15)))
    assert fit(WEIBULL, whole).parameters[0].high < 0.6
    shape = fit(WEIBULL, right).parameters[0]
    assert right.n_observed == 300
    assert abs(shape.mean - 1.5) < 4 * shape.standard_error


def test_failures_of_nodes_near_in_time_are_one_event() -> None:
    rows = [(0, 1.0, 2.0), (1, 1.02, 3.0), (2, 1.05, 1.5), (0, 5.0, 6.0), (1, 7.0, 8.0)]
    near = brought_together(log(rows), 1 / 30)
    assert togetherness(log(rows)).larger.size == 0
    assert togetherness(near).larger.tolist() == [3]  # in a chain
    assert near.n_outages == 5
    assert near.notes[-1].startswith("2 failure(s) within 0.03333 h of the one before")


def test_the_command_coalesces_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [f"n{node},{start + 24 * node},{end + 24 * node}" for node, start, end in ROWS]
    path.write_text("\n".join(["node,start,end", *rows]) + "\n")
    arguments = ("fit", path, "--time-unit", "h", "--bootstrap", 0, "--coalesce")
    shown = call(*arguments, "30 min", "-v")
    assert shown.exit_code == 0, shown.output
    assert "3 failure(s) within 0.5 h of one of the same node merged into it" in shown.stdout
    for options in (("soon",), ("1 h", "--together", "soon")):
        assert call(*arguments, *options).exit_code == 2
