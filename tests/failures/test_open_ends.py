"""Logs whose ends are missing, and windows that are wider than the log: no failure is lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import TraceError
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.fitting.correlated_fit import fit_correlated
from cprsim.fitting.families import FAMILIES, fit
from cprsim.fitting.lifetimes import gaps, repair_times, uptimes
from cprsim.records import Cluster, Holds, Role
from tests.failures.tidy import read_tidy
from tests.fitting.posterior_check import check_by_simulation, portrait_of

N_NODES, WINDOW_H, UP_H, REPAIR_H = 12, 4000.0, 100.0, 5.0
CLUSTER = Cluster((Role("emb_ps", N_NODES, Holds.SHARD),))


def simulated() -> list[tuple[str, float, float]]:
    """Outages of known nodes: exponential up-times of 100 h and repairs of 5 h."""
    rng = np.random.default_rng(8)
    rows = []
    for node in range(N_NODES):
        at_h = rng.exponential(UP_H)
        while at_h < WINDOW_H:
            end_h = at_h + rng.exponential(REPAIR_H)
            rows.append((f"n{node:02}", at_h, end_h))
            at_h = end_h + rng.exponential(UP_H)
    return rows


ROWS = simulated()


def every_end(row: int, end_h: float) -> str:
    return f",{end_h!r}"


def five_per_cent_empty(row: int, end_h: float) -> str:
    return "," if row % 20 == 3 else f",{end_h!r}"


def no_column(row: int, end_h: float) -> str:
    return ""


def read(folder: Path, end: Callable[[int, float], str], **more: float) -> Outages:
    path = folder / "log.csv"
    header = "node,start" if end is no_column else "node,start,end"
    lines = [f"{name},{at_h!r}{end(i, end_h)}" for i, (name, at_h, end_h) in enumerate(ROWS)]
    path.write_text("\n".join([header, *lines]) + "\n")
    return read_tidy(path, time_unit="h", period=(0, WINDOW_H), n_nodes=N_NODES, **more)


@pytest.mark.parametrize("end", [every_end, five_per_cent_empty, no_column])
def test_a_log_replays_as_many_failures_per_job_as_it_has(
    tmp_path: Path, end: Callable[[int, float], str]
) -> None:
    source = Replay(read(tmp_path, end))
    truth = len(ROWS) * 200 / WINDOW_H
    assert 200 / source.expected(CLUSTER, 200.0).mtbf_h == pytest.approx(truth)
    chunk = next(source.draw(CLUSTER, 1, 0, 500, [200.0]))
    counted = np.bincount(chunk.replication, minlength=500)
    assert abs(counted.mean() - truth) <= 4 * counted.std() / math.sqrt(500)


@pytest.mark.parametrize("end", [five_per_cent_empty, no_column])
def test_up_times_and_repairs_are_fitted_from_what_the_log_knows(
    tmp_path: Path, end: Callable[[int, float], str]
) -> None:
    outages = read(tmp_path, end)
    up = fit(FAMILIES["exponential"], uptimes(outages)).mean
    # where no end is known an up-time runs from failure to failure
    truth = UP_H if end is five_per_cent_empty else UP_H + REPAIR_H
    assert abs(up.mean - truth) <= 4 * up.standard_error
    assert uptimes(outages).n_zero == 0
    repairs = repair_times(outages)
    if end is no_column:
        assert repairs.n == 0
        return
    mean = fit(FAMILIES["exponential"], repairs).mean
    assert abs(mean.mean - REPAIR_H) <= 4 * mean.standard_error
    assert repairs.n >= 0.9 * len(ROWS)


def test_points_in_time_go_through_the_circle_as_through_the_replay(tmp_path: Path) -> None:
    outages = read(tmp_path, no_column)
    mean_gap = check_by_simulation(outages, fit_correlated(outages), n=100)[0]
    assert mean_gap.trace == pytest.approx(WINDOW_H / len(ROWS))
    assert mean_gap.inside
    replayed_h = Replay(outages).expected(CLUSTER, 200.0).mtbf_h
    assert replayed_h == pytest.approx(mean_gap.trace)


def test_what_is_closed_and_what_stays_open_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("node,start,end\na,10,\nb,20,22\na,30,31\nb,60,\na,70,\nc,99,\n")
    outages = read_tidy(path, time_unit="h", period=(0, 100), n_nodes=3)
    assert outages.end_h.tolist() == [30, 22, 31, 100, 100, 100]
    assert outages.ended.tolist() == [False, True, True, False, False, False]
    assert outages.guessed.tolist() == [True, False, False, False, False, False]
    assert outages.n_outages == 6
    assert outages.notes == (
        "1 outage(s) without an end, closed by the next failure of the node",
        "3 outage(s) without an end, still under way at the end of the observation",
    )


def test_a_repair_time_can_be_given_and_does_not_swallow_the_next_failure(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("node,start\na,10\na,11\nb,20\na,40\n")
    outages = read_tidy(path, time_unit="h", period=(0, 100), repair_h=2.0)
    np.testing.assert_allclose(outages.down_h, [1, 2, 2, 2])
    assert outages.n_outages == 4
    assert repair_times(outages).n == 0  # nobody saw them
    assert "4 outage(s) without an end, taken to last 2 h" in outages.notes
    assert "1 outage(s) without an end, of these cut at the node's next failure" in outages.notes
    points = read_tidy(path, time_unit="h", period=(0, 100))
    assert points.down_h.tolist() == [0, 0, 0, 0]
    assert "4 outage(s) without an end, taken as points in time" in points.notes


def test_outages_that_are_left_out_or_merged_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("node,start,end\na,1,2\nb,20,30\nb,25,26\na,90,91\n")
    notes = read_tidy(path, time_unit="h", period=(10, 80), n_nodes=2).notes
    assert notes == (
        "1 outage(s) from the end of the period on left out",
        "1 outage(s) outside the observation left out",
        "1 outage(s) of nodes that were down already, merged into the outage under way",
    )


@pytest.mark.parametrize(
    ("ends", "note"),
    [
        (("9999-12-31", "9999-12-31T00:00"), "the year 9999"),
        (("0001-01-01", "1970-01-01"), "0, 1970-01-01 or the year 1"),
        (("NULL", "-"), "NULL or -"),
    ],
)
def test_words_and_dates_that_stand_for_no_end(
    tmp_path: Path, ends: tuple[str, str], note: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        f"node,start,end\na,2024-01-01,2024-01-02\na,2024-01-10,{ends[0]}\n"
        f"b,2024-01-12,{ends[1]}\na,2024-01-20,2024-01-21\n"
    )
    outages = read_tidy(path)
    assert outages.ended.tolist() == [True, False, False, True]
    assert outages.window_h == 20 * 24
    (said,) = (one for one in outages.notes if note in one)
    assert said.startswith("2 end(s) ")
    assert said.endswith(" taken for none")


def test_zero_is_an_end_where_hours_do_not_count_from_1970(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("node,start,end\na,1714557600,0\na,1714730400,1714734000\n")
    assert read_tidy(path).guessed.tolist() == [True, False]
    path.write_text("node,start,end\na,-1,0\na,9,12\n")
    assert read_tidy(path, time_unit="h").end_h.tolist() == [1.0, 13.0]


# --------------------------------------------------------------------------------- the window


@pytest.fixture
def rare(tmp_path: Path) -> Path:
    """Three failures within 90 days of a year in which 50 nodes were watched."""
    path = tmp_path / "rare.csv"
    path.write_text(
        "node,start,end\na,2024-02-01,2024-02-02\nb,2024-03-03,2024-03-04\na,2024-05-01,2024-05-02\n"
    )
    return path


def test_the_window_that_was_observed_reaches_the_replay(rare: Path) -> None:
    outages = read_tidy(rare, n_nodes=50, period=("2024-01-01", "2024-12-31"))
    cluster = Cluster((Role("emb_ps", 10, Holds.SHARD),))
    assert Replay(outages).expected(cluster, 100.0).mtbf_h == pytest.approx(365 * 24 / 3 * 50 / 10)


def test_the_mean_gap_is_that_of_the_window_and_not_of_the_failures_in_it(rare: Path) -> None:
    outages = read_tidy(rare, n_nodes=50, period=("2024-01-01", "2024-12-31"))
    mean_h = fit(FAMILIES["exponential"], gaps(outages)).mean.mean
    assert mean_h == pytest.approx(365 * 24 / 3)
    assert portrait_of(outages).mean_gap_h == pytest.approx(365 * 24 / 3)
    own = read_tidy(rare, n_nodes=50)  # nobody said how long: the gaps alone are known
    assert fit(FAMILIES["exponential"], gaps(own)).mean.mean == pytest.approx(45 * 24)
    assert "no whole period given" in own.notes[0]


def test_a_window_beyond_the_year_2262_is_refused_or_used_as_any_other(rare: Path) -> None:
    with pytest.raises(TraceError, match="the period ends before it begins"):
        read_tidy(rare, period=("2262-04-12", None))
    with pytest.raises(TraceError, match="no outage begins within the period"):
        read_tidy(rare, period=("2262-04-12", "2262-04-13"))


# ----------------------------------------------------------------------------- rows said twice


def test_rows_of_a_node_at_one_instant_are_one_failure(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "node,disk,start,end,note\na,sda,5,6,\na,sdb,5,6,\na,sda,5,6,\na,sda,5,6,x\nb,sda,5,6,\n"
    )
    outages = read_tidy(path, time_unit="h", period=(0, 10))
    assert outages.n_outages == 2
    assert (
        "3 outage(s) of nodes that were down already, merged into the outage under way"
        in outages.notes
    )
    assert gaps(outages).n_zero == 1


def test_a_row_with_an_end_and_one_without_are_one_outage_with_that_end(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("node,start,end\na,10,\na,10,12\na,40,\na,60,61\nb,70,71\n")
    outages = read_tidy(path, time_unit="h", period=(0, 100))
    assert outages.start_h.tolist() == [10, 40, 60, 70]
    assert outages.end_h.tolist() == [12, 60, 61, 71]
    assert outages.guessed.tolist() == [False, True, False, False]


def test_an_outage_that_begins_when_one_of_a_given_length_ends_is_a_failure(tmp_path: Path) -> None:
    """Whatever the sum of a date and a length rounds to."""
    path = tmp_path / "log.csv"
    begins = [datetime(2024, 1, 1) + timedelta(minutes=7 * i) for i in range(2000)]
    rows = "".join(f"a,{at:%Y-%m-%d %H:%M},7 min\n" for at in begins)
    path.write_text(f"node,start,duration\n{rows}")
    assert read_tidy(path).n_outages == 2000
