"""What a user says of a log reaches every reader, the command, Python and the scenario alike."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import cprsim
from cprsim.errors import CprsimError
from cprsim.experiments.assemble import replay_of
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.failures.traces.spec import LogSpec
from cprsim.fitting.families import FAMILIES, fit
from cprsim.fitting.lifetimes import gaps
from cprsim.records import Cluster, Holds, Role
from cprsim.scenario.failures import TraceFailures
from tests.failures.test_forms import NODES, OUTAGES, PERIOD, lines, plain, table
from tests.failures.test_small_logs import LIVES
from tests.failures.tidy import read

EACH_ONCE = list({one.node: one for one in OUTAGES[::-1]}.values())  # the first of each node


def outages_in(folder: Path, text: str, **said: object) -> Outages:
    (path := folder / "log.csv").write_text(text)
    return read(path, **said)


@pytest.mark.parametrize("column", ["exit", "removed", "Installed"])
def test_a_failure_at_the_exit_of_a_node_is_inside(tmp_path: Path, column: str) -> None:
    """Each node fails once and is taken out by that: its exit is the instant of its failure."""
    rows = [f"{one.node},{plain(one.start)}" for one in EACH_ONCE]
    (nodes := tmp_path / "nodes.csv").write_text(lines([f"node,{column}", *rows]))
    said = {"nodes": nodes, "period": PERIOD}
    log = outages_in(tmp_path, table(plain, of=EACH_ONCE), **said)
    assert log.facts["n_nodes"] == ("read", f"the nodes' own dates ({nodes})")
    assert not any("no number of nodes" in str(note) for note in log.notes)
    note = f"column(s) of nodes.csv not read: {column} (--column exit=NAME reads one)"
    assert (note in map(str, log.notes)) == (column != "exit")
    log = outages_in(tmp_path, table(plain, of=EACH_ONCE), columns={"exit": column}, **said)
    assert log.in_window.sum() == len(EACH_ONCE)
    assert log.lives is not None
    np.testing.assert_allclose(np.sort(log.lives[2]), log.start_h)


def test_an_error_that_ends_a_fit_says_what_was_left_out(tmp_path: Path) -> None:
    (nodes := tmp_path / "nodes.csv").write_text(
        lines(["node,entry", *(f"{node},2025-01-01" for node in NODES)])
    )
    left_out = rf"{len(OUTAGES)} outage\(s\) left out that began while their node was not there"
    with pytest.raises(CprsimError, match=left_out):
        outages_in(tmp_path, table(plain), nodes=nodes, period=("2024-01-01", "2026-01-01"))


# ------------------------------------------------------------------------------ one description


def test_options_keywords_and_the_section_are_the_fields_of_the_spec() -> None:
    names = {one.name for one in fields(LogSpec)}
    assert names <= set(TraceFailures.model_fields)
    source = Path(cprsim.api.fit.__file__).read_text("utf-8")
    assert all(
        f"``{name}``" in source and f"\n    {name} : " in cprsim.fit.__doc__ for name in names
    )
    with pytest.raises(CprsimError, match="No such file"):
        cprsim.fit("none.csv", **dict.fromkeys(names))


def test_what_fit_reads_run_replays(tmp_path: Path) -> None:
    log = outages_in(tmp_path, LIVES, period=("2024-01-01", "2024-02-01"), nodes="dates")
    period = {"from": "2024-01-01", "to": "2024-02-01"}
    section = {"kind": "trace", "file": "log.csv", "nodes": "dates", "period": period}
    replayed = replay_of(TraceFailures.model_validate(section), tmp_path / "log.csv").outages
    np.testing.assert_array_equal(replayed.start_h, log.start_h)
    assert log.lives is not None
    np.testing.assert_array_equal(replayed.lives, log.lives)
    assert log.lives[2].tolist() == [31 * 24, 17 * 24, 31 * 24]


def test_a_window_wider_than_the_log_reaches_fit_and_replay(tmp_path: Path) -> None:
    """Three failures within 90 days of a year in which 50 nodes were watched."""
    rows = "a,2024-02-01,2024-02-02\nb,2024-03-03,2024-03-04\na,2024-05-01,2024-05-02\n"
    year_h = 365 * 24
    log = outages_in(
        tmp_path, f"node,start,end\n{rows}", nodes=50, period=("2024-01-01", "2024-12-31")
    )
    expected = Replay(log).expected(Cluster((Role("emb_ps", 10, Holds.SHARD),)), 100.0)
    assert expected.mtbf_h == pytest.approx(year_h / 3 * 50 / 10)
    assert fit(FAMILIES["exponential"], gaps(log)).mean.mean == pytest.approx(year_h / 3)
    own = outages_in(tmp_path, f"node,start,end\n{rows}", nodes=50)  # the gaps alone are known
    assert fit(FAMILIES["exponential"], gaps(own)).mean.mean == pytest.approx(45 * 24)
