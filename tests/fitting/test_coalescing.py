"""Repeats of one node within a window are one failure, and how many were merged is said."""

import numpy as np

from cprsim.failures.outages import Outages, brought_together, coalesced
from cprsim.logs.fit.families import WEIBULL, fit
from cprsim.logs.fit.lifetimes import uptimes
from cprsim.logs.fit.observation import failure_groups
from tests.fitting.logs import log_of, outages

ROWS = [(0, 1, 1), (0, 1.5, 1.5), (0, 2.0, 2.2), (0, 9, 9), (1, 1.5, 1.5), (1, 5, 6), (1, 6.4, 7)]


def test_a_chain_of_repeats_is_one_failure_from_the_first_to_the_last() -> None:
    merged = coalesced(outages(*ROWS), 0.5)
    rows = sorted(zip(merged.node.tolist(), merged.start_h.tolist(), merged.end_h.tolist(),
                      strict=True))  # fmt: skip
    assert rows == [(0, 1.0, 2.2), (0, 9.0, 9.0), (1, 1.5, 1.5), (1, 5.0, 7.0)]
    assert str(merged.notes[-1]) == "3 failures within 0.5 h of one of the same node merged into it"


def test_an_open_end_stays_open_where_it_is_merged() -> None:
    merged = coalesced(outages((0, 1, 2), (0, 2.1, np.nan), (1, 5, 6)), 0.5)
    assert merged.ended.tolist() == [False, True]
    assert merged.end_h.tolist() == [100.0, 6.0]


def test_overlaps_are_merged_where_nodes_times_outages_exceed_32_bits() -> None:
    """Of each of 40,000 nodes: an outage of 9 h, and one within it."""
    node = np.repeat(np.arange(40_000, dtype=np.int32), 2)
    start_h, length_h = np.tile([1.0, 2.0], 40_000), np.tile([9.0, 1.0], 40_000)
    merged = outages(*zip(node, start_h, start_h + length_h, strict=True))
    assert len(node) * int(node[-1]) > 2**31
    assert len(merged.node) == 40_000
    assert set(merged.end_h) == {10.0}


def bursts(seed: int, *, n: int = 300, shape: float = 1.5) -> Outages:
    """One node of Weibull gaps, mean 100 h; each failure repeats three times within minutes."""
    rng = np.random.default_rng(seed)
    first = np.cumsum(100 * rng.weibull(shape, n))
    at_h = (first[:, None] + np.append(0.0, np.sort(rng.random(3) * 0.1))).ravel()
    return log_of(at_h, float(at_h[-1]) + 1)


def test_the_right_window_finds_the_failures_and_the_shape_behind_bursts() -> None:
    whole, right = (uptimes(one) for one in (bursts(1), coalesced(bursts(1), 0.15)))
    assert fit(WEIBULL, whole).parameters[0].high < 0.6
    shape = fit(WEIBULL, right).parameters[0]
    assert right.n_observed == 300
    assert abs(shape.mean - 1.5) < 4 * shape.standard_error


def test_failures_of_nodes_near_in_time_are_one_event() -> None:
    rows = [(0, 1.0, 2.0), (1, 1.02, 3.0), (2, 1.05, 1.5), (0, 5.0, 6.0), (1, 7.0, 8.0)]
    near = brought_together(outages(*rows), 1 / 30)
    assert failure_groups(outages(*rows)).max() == 1
    assert failure_groups(near).tolist() == [3, 1, 1]  # in a chain
    assert near.n_outages == 5
    assert str(near.notes[-1]).startswith("2 failures within 0.03333 h of the one before")
