"""Logs whose ends are missing, and windows that are wider than the log: no failure is lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cprsim.errors import TraceError
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.fitting.families import FAMILIES, fit
from cprsim.fitting.lifetimes import gaps, repair_times, uptimes
from cprsim.records import Cluster, Holds, Role
from tests.failures.tidy import read_tidy
from tests.fitting.posterior_check import portrait_of

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


# node, start and end of rows; options; starts, ends, which were seen to end; a note
CASES: dict[str, tuple[str, dict[str, Any], list[float], list[float], list[bool], str]] = {
    "closed by the next failure": (
        "a,10,\nb,20,22\na,30,31\nb,60,\na,70,\nc,99,", {"n_nodes": 3},
        [10, 20, 30, 60, 70, 99], [30, 22, 31, 100, 100, 100],
        [False, True, True, False, False, False],
        "1 outage(s) without an end, closed by the next failure of the node",
    ),
    "a given repair, which does not swallow the next failure": (
        "a,10,\na,11,\nb,20,\na,40,", {"repair_h": 2.0}, [10, 11, 20, 40], [11, 13, 22, 42],
        [False] * 4, "1 outage(s) without an end, of these cut at the node's next failure",
    ),
    "outside the period": (
        "a,1,2\nb,20,30\na,90,91", {"period": (10, 80)}, [10], [20], [True],
        "1 outage(s) from the end of the period on left out",
    ),
    "within another": (
        "b,20,30\nb,25,26", {}, [20], [30], [True],
        "1 outage(s) of nodes that were down already, merged into the outage under way",
    ),
    "at one instant": (
        "a,5,6\na,5,6\nb,5,6", {}, [5, 5], [6, 6], [True, True],
        "1 outage(s) of nodes that were down already, merged into the outage under way",
    ),
    "with an end, and without": (
        "a,10,\na,10,12\na,40,\na,60,61\nb,70,71", {}, [10, 40, 60, 70], [12, 60, 61, 71],
        [True, False, True, True], "",
    ),
    "zero is an end in hours of another zero": (
        "a,-1,0\na,9,12", {"period": (-2, 98)}, [1, 11], [2, 14], [True, True], "",
    ),
    "words for no end": (
        "a,1,NULL\nb,2,-", {}, [1, 2], [100, 100], [False, False],
        "2 end(s) such as NULL or - taken for none",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_ends_that_are_missing_and_outages_that_do_not_count(tmp_path: Path, case: str) -> None:
    rows, said, start_h, end_h, ended, note = CASES[case]
    (path := tmp_path / "log.csv").write_text(f"node,start,end\n{rows}\n")
    log = read_tidy(path, **{"time_unit": "h", "period": (0, 100)} | said)
    assert log.start_h.tolist() == start_h
    assert log.end_h.tolist() == end_h
    assert log.ended.tolist() == ended
    assert note in (*log.notes, "")


@pytest.mark.parametrize(
    ("ends", "note"),
    [
        (("9999-12-31", "9999-12-31T00:00"), "the year 9999"),
        (("0001-01-01", "1970-01-01"), "0, 1970-01-01 or the year 1"),
        (("0", "0"), "0, 1970-01-01 or the year 1"),
    ],
)
def test_dates_that_stand_for_no_end(tmp_path: Path, ends: tuple[str, str], note: str) -> None:
    rows = f"a,2024-01-01,2024-01-02\na,2024-01-10,{ends[0]}\nb,2024-01-12,{ends[1]}\n"
    if ends[0] == "0":
        rows = "a,1704067200,1704153600\na,1704844800,0\nb,1705017600,0\n"
    (path := tmp_path / "log.csv").write_text(f"node,start,end\n{rows}")
    log = read_tidy(path)
    assert log.ended.tolist() == [True, False, False]
    assert f"2 end(s) such as {note} taken for none".replace("such as the year", "in the year") in (
        log.notes
    )


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


def test_an_outage_that_begins_when_one_of_a_given_length_ends_is_a_failure(tmp_path: Path) -> None:
    """Whatever the sum of a date and a length rounds to."""
    path = tmp_path / "log.csv"
    begins = [datetime(2024, 1, 1) + timedelta(minutes=7 * i) for i in range(2000)]
    rows = "".join(f"a,{at:%Y-%m-%d %H:%M},7 min\n" for at in begins)
    path.write_text(f"node,start,duration\n{rows}")
    assert read_tidy(path).n_outages == 2000
