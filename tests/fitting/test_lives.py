"""Nodes that join and leave: fits with a known truth, files of nodes, LANL's own dates."""

from dataclasses import replace
from math import gamma
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import ParameterError, TraceError
from cprsim.failures.outages import Outages, with_lives
from cprsim.job.records import Floats
from cprsim.logs.fit.families import WEIBULL, fit
from cprsim.logs.fit.lifetimes import uptimes
from tests.failures.tidy import read, read_lanl
from tests.fitting.logs import log_of, outages

WINDOW_H = 5000.0


Dates = tuple[Floats, Floats, Floats]  # installed, entered, left [h]


def fleet(seed: int, *, n_nodes: int = 300) -> tuple[Outages, tuple[str, ...], Dates]:
    """Nodes installed between -1,000 and 4,000 h that stay for 500 to 3,000 h; failing ones are
    renewed after Weibull times of shape 2.9 and mean 1,500 h. Those that failed before the
    observation are not in it, as their age is not known.
    """
    rng = np.random.default_rng(seed)
    born = rng.uniform(-1000, 4000, n_nodes)
    leaves = np.minimum(born + rng.uniform(500, 3000, n_nodes), WINDOW_H)
    scale = 1500.0 / gamma(1 + 1 / 2.9)
    at = born[:, None] + np.cumsum(scale * rng.weibull(2.9, (n_nodes, 30)), axis=1)
    kept = (at[:, 0] > 0) & (leaves > 0)
    born, leaves, at = born[kept], leaves[kept], at[kept]
    node, number = np.nonzero(at < leaves[:, None])
    names = tuple(f"n{place:03d}" for place in range(len(born)))
    log = log_of(at[node, number], WINDOW_H, node, len(born), given=True)
    return replace(log, node_names=names), names, (born, np.maximum(born, 0.0), leaves)


def test_a_fleet_that_changes_has_its_true_shape_only_where_that_is_said() -> None:
    log, *lives = fleet(4)
    naive = fit(WEIBULL, uptimes(log)).parameters[0]
    told = fit(WEIBULL, uptimes(with_lives(log, *lives)))
    shape = told.parameters[0]
    assert naive.high < 2.0
    assert abs(shape.mean - 2.9) < 4 * shape.standard_error
    assert abs(told.mean.mean - 1500) < 4 * told.mean.standard_error


def test_up_times_of_nodes_that_join_and_leave_by_hand() -> None:
    log = outages((0, 40, 50), (1, 30, 35), (1, 60, 61), n_nodes=3, node_names=("a", "b"))
    names = ("b", "a", "c", "gone")
    lives = (
        np.array([-20.0, 10.0, 50.0, -9.0]),
        np.array([0.0, 20.0, 50.0, -8.0]), np.array([55.0, np.inf, 80.0, -1.0]),
    )  # fmt: skip
    told = with_lives(log, names, lives)
    times = uptimes(told)
    rows = sorted(zip(times.entry_h.tolist(), times.duration_h.tolist(), times.observed.tolist(),
                      times.limit_h.tolist(), strict=True))  # fmt: skip
    assert rows == [
        (0.0, 20.0, False, 20.0),  # b from 35 to 55, where it leaves
        (0.0, 30.0, False, 30.0),  # c from 50 to 80
        (0.0, 50.0, False, 50.0),  # a from 50 to the end
        (10.0, 30.0, True, 90.0),  # a, installed at 10, watched from 20
        (20.0, 50.0, True, 75.0),  # b, 20 h old when the log begins
    ]
    assert told.node_names == ("b", "a", "c")
    assert told.n_nodes == 3
    assert [str(note).split(" ", 1)[0] for note in told.notes] == ["2", "1", "1"]
    assert told.of_node("c").lives == (50.0, 50.0, 80.0)
    assert uptimes(told, "unknown").n == 2


def log_with(folder: Path, nodes: str) -> Outages:
    """A log of one failure of node a, with a table of its nodes."""
    log, table = folder / "log.csv", folder / "nodes.csv"
    log.write_text("node,start,end\na,2024-05-01 01:00,2024-05-01 02:00\n")
    table.write_text(nodes)
    return read(log, nodes=table, period=("2024-05-01", "2024-06-01"))


def test_a_file_of_nodes_is_read_on_the_clock_of_the_log(tmp_path: Path) -> None:
    text = "node;installed;entry;exit\na;2024-01-01;;\nb;;2024-05-15;2024-05-20\nc;;;\n"
    log = log_with(tmp_path, text)
    born, enters, leaves = log.lives
    assert born.tolist() == [-121 * 24, 14 * 24, 0]
    assert enters.tolist() == [0, 14 * 24, 0]
    assert leaves.tolist() == [31 * 24, 19 * 24, 31 * 24]
    assert log.facts["n_nodes"][0] == "read"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("node,exit\na,2024-05-02\na,2024-05-03\n", "csv:3: node: 'a' stands in another row"),
        ("node,exit\na,soon\n", "csv:2: exit: 'soon' is no ISO 8601"),
        ("node,entry,exit\na,2024-05-09,2024-05-03\n", "csv:2: exit: '2024-05-03': the node"),
    ],
)
def test_bad_files_of_nodes_end_in_one_message(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(TraceError, match=complaint):
        log_with(tmp_path, text)


def test_a_node_of_which_the_file_says_nothing_is_named() -> None:
    log, names, dates = fleet(1, n_nodes=20)
    with pytest.raises(ParameterError, match="names node 'n000'"):
        with_lives(log, names[1:], tuple(column[1:] for column in dates))


def test_lanls_system_16_was_watched_until_it_was_decommissioned(failure_logs: Path) -> None:
    """All 16 nodes left at the end of September 2002, three years before the file ends."""
    file = failure_logs / "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
    plain, dated = (read_lanl(file, system=16, nodes=nodes) for nodes in (None, "dates"))
    hours = (np.datetime64("2002-10-01") - np.datetime64(dated.origin)) / np.timedelta64(1, "h")
    np.testing.assert_allclose(dated.lives[2], hours)
    assert dated.window_h == pytest.approx(hours)  # nothing was watched after that
    for log, shape in ((plain, 0.523), (dated, 0.586)):
        assert fit(WEIBULL, uptimes(log)).parameters[0].mean == pytest.approx(shape, abs=5e-4)
