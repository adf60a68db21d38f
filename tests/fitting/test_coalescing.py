"""Repeats of one node within a window are one failure, and how many were merged is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages, outages_of
from cprsim.fitting.coalescing import coalesced, failures_by_window, n_failures
from cprsim.plots.save import save_figure
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
    assert n_failures(log(ROWS), 0.5) == 4


def test_no_window_merges_only_what_touches_and_other_nodes_stay() -> None:
    assert coalesced(log(ROWS), 0.0).n_outages == 7
    assert coalesced(log([(0, 1, 2), (0, 2, 3), (1, 2, 3)]), 0.0).n_outages == 2
    assert coalesced(log(ROWS), 1e3).n_outages == 2
    with pytest.raises(ParameterError, match="a time from 0 on"):
        coalesced(log(ROWS), -1.0)


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
    by_window = {one.within_h: one for one in failures_by_window(bursts(1), (0.0, 0.15, 1.0))}
    assert by_window[0.0].n_failures == 1200
    raw, right = by_window[0.0].uptime_shape, by_window[0.15].uptime_shape
    assert raw is not None
    assert raw.high < 0.6
    assert by_window[0.15].n_failures == 300
    assert right is not None
    assert abs(right.mean - 1.5) < 4 * right.standard_error
    assert by_window[1.0].n_failures >= 295


def test_the_command_coalesces_says_so_and_draws_the_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_the_choice(figure: Figure, stem: Path, formats: Sequence[str]) -> list[Path]:
        return save_figure(figure, stem, formats) if stem.name == "fit-coalescing" else []

    monkeypatch.setattr("cprsim.plots.save.save_figure", of_the_choice)
    path = tmp_path / "log.csv"
    rows = [f"n{node},{start + 24 * node},{end + 24 * node}" for node, start, end in ROWS]
    path.write_text("\n".join(["node,start,end", *rows]) + "\n")
    arguments = ("fit", path, "--time-unit", "h", "--bootstrap", 0, "--coalesce", "30 min")
    shown = call(*arguments, "--out", tmp_path / "drawn")
    assert shown.exit_code == 0, shown.output
    assert "note: 3 failure(s) within 0.5 h of one of the same node merged into it" in shown.stdout
    assert (tmp_path / "drawn/fit-coalescing.svg").exists()
    assert call(*arguments[:-1], "soon").exit_code == 2
