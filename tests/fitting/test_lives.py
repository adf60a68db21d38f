"""Nodes that join and leave: fits with a known truth, files of nodes, LANL's own dates."""

from __future__ import annotations

from dataclasses import replace
from math import gamma
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import ParameterError, TraceError
from cprsim.failures.outages import Outages, with_lives
from cprsim.fitting.families import WEIBULL, fit
from cprsim.fitting.lifetimes import FirstUptime, uptimes
from tests.failures.tidy import read, read_lanl
from tests.fitting.logs import log_of, outages

LANL_FILE = "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
WINDOW_H = 5000.0


def fleet(seed: int, *, n_nodes: int = 300, shape: float = 2.9, mean_h: float = 1500.0):  # type: ignore[no-untyped-def]
    """Nodes installed between -1,000 and 4,000 h that stay for 500 to 3,000 h; failing ones are
    renewed. Those that failed before the observation are not in it, as their age is not known.
    """
    rng = np.random.default_rng(seed)
    born = rng.uniform(-1000, 4000, n_nodes)
    leaves = np.minimum(born + rng.uniform(500, 3000, n_nodes), WINDOW_H)
    scale = mean_h / gamma(1 + 1 / shape)
    at = born[:, None] + np.cumsum(scale * rng.weibull(shape, (n_nodes, 30)), axis=1)
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
    assert [note.split(" ", 1)[0] for note in told.notes] == ["2", "1", "1"]
    assert told.of_node("c").lives == (50.0, 50.0, 80.0)
    assert uptimes(told, FirstUptime.UNKNOWN).n == 2


def lives(folder: Path, nodes: str, **said: str) -> tuple[Outages, list[list[float]]]:
    """A log of one failure of node a, and of its nodes installation, entry and exit [h]."""
    log, table = folder / "log.csv", folder / "nodes.csv"
    log.write_text("node,start,end\na,2024-05-01 01:00,2024-05-01 02:00\n")
    table.write_text(nodes)
    period = ("2024-05-01", "2024-06-01")
    found = read(log, nodes=table, period=period, **said)
    assert found.lives is not None
    return found, [column.tolist() for column in found.lives]


def test_a_file_of_nodes_is_read_on_the_clock_of_the_log(tmp_path: Path) -> None:
    text = "node;installed;entry;exit\na;2024-01-01;;\nb;;2024-05-15;2024-05-20\nc;;;\n"
    found, (born, enters, leaves) = lives(tmp_path, text)
    assert born == [-121 * 24, 14 * 24, 0]
    assert enters == [0, 14 * 24, 0]
    assert leaves == [31 * 24, 19 * 24, 31 * 24]
    assert not any("number of nodes" in note for note in found.notes)
    assert found.facts["n_nodes"][0] == "read"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("node,exit\na,2024-05-02\na,2024-05-03\n", "nodes.csv:3: node: 'a' stands in another row"),
        ("node,exit\na,soon\n", "nodes.csv:2: exit: 'soon' is no ISO 8601"),
        ("node,entry,exit\na,2024-05-09,2024-05-03\n", "nodes.csv:2: exit: '2024-05-03': the node"),
        ("node,exit\na,17\nb,18\n", "nodes.csv:2: time_unit: the times are numbers"),
        ("host,exit\na,2024-05-02\n", "there is no column 'node'"),
    ],
)
def test_bad_files_of_nodes_end_in_one_message(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(TraceError) as caught:
        lives(tmp_path, text)
    assert complaint in str(caught.value)


def test_a_node_of_which_the_file_says_nothing_is_named() -> None:
    log, names, lives = fleet(1, n_nodes=20)
    with pytest.raises(ParameterError, match="names node 'n000'"):
        with_lives(log, names[1:], tuple(one[1:] for one in lives))


def lanl(folder: Path, system: int) -> tuple[Outages, Outages]:
    return tuple(read_lanl(folder / LANL_FILE, system=system, nodes=n) for n in (None, "dates"))


def test_lanls_system_16_was_watched_until_it_was_decommissioned(failure_logs: Path) -> None:
    log, told = lanl(failure_logs, 16)
    # all 16 nodes left at the end of September 2002, three years before the file ends
    begin = np.datetime64(told.origin)
    hours = (np.datetime64("2002-10-01") - begin) / np.timedelta64(1, "h")
    assert told.lives is not None
    np.testing.assert_allclose(told.lives[2], hours)
    assert told.window_h == pytest.approx(hours)  # nothing was watched after that
    plain, dated = (fit(WEIBULL, uptimes(one)).parameters[0].mean for one in (log, told))
    assert plain == pytest.approx(0.502, abs=5e-4)
    assert dated == pytest.approx(0.558, abs=5e-4)
