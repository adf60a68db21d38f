"""What a user says of a log reaches every reader, the command, Python and the scenario alike."""

from __future__ import annotations

import gzip
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import cprsim
from cprsim.errors import CprsimError
from cprsim.experiments.assemble import assemble, replay_of
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.failures.traces.spec import LogSpec
from cprsim.fitting.families import FAMILIES, fit
from cprsim.fitting.lifetimes import gaps
from cprsim.records import Cluster, Holds, Role
from cprsim.scenario.failures import TraceFailures
from cprsim.scenario.reading import load_scenario
from tests.failures.test_forms import (
    FORMS,
    GERMAN,
    N_OUTAGES,
    NODES,
    OUTAGES,
    PERIOD,
    frame,
    german,
    lines,
    parquet,
    plain,
    table,
    utc,
)
from tests.failures.test_small_logs import LIVES
from tests.failures.tidy import read
from tests.fitting.posterior_check import portrait_of
from tests.making import call

EACH_ONCE = list({one.node: one for one in OUTAGES[::-1]}.values())  # the first of each node
LEFT = "outage(s) left out that began while their node was not there"


def found(folder: Path, text: str, **said: object) -> Outages:
    (path := folder / "log.csv").write_text(text)
    return read(path, **said)


@pytest.mark.parametrize("column", ["exit", "removed", "Installed"])
def test_a_failure_at_the_exit_of_a_node_is_inside(tmp_path: Path, column: str) -> None:
    """Each node fails once and is taken out by that: its exit is the instant of its failure."""
    rows = [f"{one.node},{plain(one.start)}" for one in EACH_ONCE]
    (nodes := tmp_path / "nodes.csv").write_text(lines([f"node,{column}", *rows]))
    said = {"nodes": nodes, "period": ("2024-02-05", "2024-05-05")}
    log = found(tmp_path, table(plain, of=EACH_ONCE), **said)
    assert log.facts["n_nodes"] == ("read", f"the nodes' own dates ({nodes})")
    assert not any("no number of nodes" in note for note in log.notes)
    note = f"column(s) of nodes.csv not read: {column} (--column exit=NAME reads one)"
    assert (note in log.notes) == (column != "exit")
    log = found(tmp_path, table(plain, of=EACH_ONCE), columns={"exit": column}, **said)
    assert log.in_window.sum() == len(EACH_ONCE)
    assert log.lives is not None
    np.testing.assert_allclose(np.sort(log.lives[2]), log.start_h)


def test_an_error_that_ends_a_fit_says_what_was_left_out(tmp_path: Path) -> None:
    (nodes := tmp_path / "nodes.csv").write_text(
        lines(["node,entry", *(f"{node},2025-01-01" for node in NODES)])
    )
    with pytest.raises(CprsimError, match=rf"{N_OUTAGES} {LEFT}".replace("(s)", r"\(s\)")):
        found(tmp_path, table(plain), nodes=nodes, period=("2024-01-01", "2026-01-01"))


def test_maintenance_is_left_out_and_ends_up_times(tmp_path: Path) -> None:
    rows = table(plain, header="node,start,end,cause", more=",disk")
    planned = [one._replace(node=f"{one.node}b") for one in OUTAGES[::5]]
    rows += table(plain, header="", of=planned, more=",Planned maintenance")
    log = found(tmp_path, rows, not_cause="maintenance")
    assert log.chosen.sum() == N_OUTAGES
    n = len(OUTAGES[::5])
    assert (
        f"{n} outage(s) of a cause with 'maintenance' count as none, but end up-times" in log.notes
    )
    with pytest.raises(CprsimError, match="has a cause with 'fan'; there are: Planned main"):
        found(tmp_path, rows, not_cause="fan")


def test_a_period_is_written_as_the_log_writes_times(tmp_path: Path) -> None:
    text = table(german)
    log = found(tmp_path, text, date_format=GERMAN, period=("05.02.2024", "05.05.2024"))
    assert (log.origin, log.window_h) == ("2024-02-05T00:00:00", 90 * 24)
    log = found(tmp_path, text, date_format=GERMAN, period=("05.02.2024", None), tz="Asia/Tokyo")
    assert log.origin == "2024-02-05T00:00:00+09:00"


@pytest.mark.parametrize("form", ["a DST jump", "journalctl -k", "kubectl get events", "up"])
def test_times_are_printed_in_the_zone_of_the_log(tmp_path: Path, form: str) -> None:
    (log := tmp_path / "log").write_text(str(FORMS[form].content()))
    zone = "01" if form in ("a DST jump", "journalctl -k") else "00"
    assert read(log, period=("2024-02-05", None)).origin == f"2024-02-05T{zone}:00:00+{zone}:00"


def test_repeats_are_said_merged_where_a_log_has_no_ends_and_can_be_kept(tmp_path: Path) -> None:
    said = "begin within a minute of another on the same node"
    text = lines(["node,start", *(f"{one.node},{utc(one.start)}" for one in OUTAGES)])
    late = "".join(f"{one.node},{utc(one.start)[:-1]}.5Z\n" for one in OUTAGES)
    merged = found(tmp_path, text + late)
    assert merged.n_outages == N_OUTAGES
    assert f"{N_OUTAGES} of {2 * N_OUTAGES} {said}: merged into one" in str(merged.notes)
    assert found(tmp_path, text + late, coalesce="0 s").n_outages == 2 * N_OUTAGES
    flapping = "node,start,end\na,1,1.001\na,1.002,3\nb,5,6\n"
    assert f"1 of 3 {said}: --coalesce" in str(found(tmp_path, flapping, time_unit="h").notes)


def test_an_unknown_unit_is_refused_also_where_times_are_dates(tmp_path: Path) -> None:
    (log := tmp_path / "log.csv").write_text(table(plain))
    (costs := tmp_path / "costs.csv").write_text("kind,start,end\nsave,2024-01-01,2024-01-02\n")
    for path in (log, costs):
        with pytest.raises(CprsimError, match="time_unit: 'xyz' should be 'ms', 's', 'min', 'h'"):
            cprsim.fit(path, time_unit="xyz")


# ------------------------------------------------------------------------------ one description


def test_options_keywords_and_the_section_are_the_fields_of_the_spec() -> None:
    names = {one.name for one in fields(LogSpec)}
    assert names <= set(TraceFailures.model_fields)
    source = Path(cprsim.api.fit.__file__).read_text("utf-8")
    assert all(
        f"``{name}``" in source and f"\n    {name} : " in cprsim.fit.__doc__ for name in names
    )
    shown = call("fit", "--help").stdout
    for one in fields(LogSpec):
        assert (one.metadata["shell"]["option"] or f"--{one.name.replace('_', '-')}") in shown
    with pytest.raises(CprsimError, match="No such file"):
        cprsim.fit("none.csv", **dict.fromkeys(names))


@pytest.mark.parametrize(
    "form",
    ["ISO 8601", "JSON lines", "Parquet", "sacctmgr show event", "sacct", "kubectl get events",
     "journalctl -k", "up"],
)  # fmt: skip
def test_what_fit_reads_run_replays(tmp_path: Path, form: str) -> None:
    content = FORMS[form].content()
    (log := tmp_path / "log").write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    begin, end = PERIOD.split("..")
    (scenario := tmp_path / "scenario.yaml").write_text(
        "job: {useful: 50 h}\ncluster: {emb_ps: 2}\ncosts: {save: 5 min, load: 3 min}\n"
        f"failures: {{kind: trace, file: log, nodes: 60, period: {{from: {begin}, to: {end}}}}}\n"
        "recovery: [full]\nsimulation: {replications: 5}\n"
    )
    replayed = assemble(load_scenario(scenario)).failures.outages  # type: ignore[union-attr]
    assert replayed.in_window.sum() == N_OUTAGES
    np.testing.assert_array_equal(
        replayed.start_h, read(log, period=(begin, end), n_nodes=60).start_h
    )
    expected = Replay(replayed).expected(Cluster((Role("emb_ps", 2, Holds.SHARD),)), 50.0)
    assert expected.mtbf_h == pytest.approx(replayed.window_h / N_OUTAGES * 60 / 2, 1e-3)


def test_a_window_wider_than_the_log_reaches_fit_and_replay(tmp_path: Path) -> None:
    """Three failures within 90 days of a year in which 50 nodes were watched."""
    rows = "a,2024-02-01,2024-02-02\nb,2024-03-03,2024-03-04\na,2024-05-01,2024-05-02\n"
    year_h = 365 * 24
    log = found(tmp_path, f"node,start,end\n{rows}", nodes=50, period=("2024-01-01", "2024-12-31"))
    expected = Replay(log).expected(Cluster((Role("emb_ps", 10, Holds.SHARD),)), 100.0)
    assert expected.mtbf_h == pytest.approx(year_h / 3 * 50 / 10)
    assert fit(FAMILIES["exponential"], gaps(log)).mean.mean == pytest.approx(year_h / 3)
    assert portrait_of(log).mean_gap_h == pytest.approx(year_h / 3)
    own = found(tmp_path, f"node,start,end\n{rows}", nodes=50)  # the gaps alone are known
    assert fit(FAMILIES["exponential"], gaps(own)).mean.mean == pytest.approx(45 * 24)


def test_a_replay_of_dated_nodes_has_only_nodes_that_are_there(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text(LIVES)
    said = {
        "kind": "trace", "file": str(path), "format": "tidy", "nodes": "dates",
        "period": {"from": "2024-01-01", "to": "2024-02-01"},
    }  # fmt: skip
    dated = replay_of(TraceFailures.model_validate(said), path).outages
    assert dated.lives is not None
    assert dated.lives[2].tolist() == [31 * 24, 17 * 24, 31 * 24]
    whole = replay_of(TraceFailures.model_validate(said | {"nodes": 4}), path).outages
    assert whole.lives is None


OPENED: list[str] = []
sys.addaudithook(lambda event, about: OPENED.append(str(about[0])) if event == "open" else None)


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.parquet"])
def test_a_fit_opens_its_log_once(tmp_path: Path, name: str) -> None:
    text = table(plain, header="node,start,end,installed", more=",2023-12-01").encode()
    contents = {"log.csv": text, "log.csv.gz": gzip.compress(text), "log.parquet": parquet(frame())}
    (path := tmp_path / name).write_bytes(contents[name])
    OPENED.clear()
    cprsim.fit(path, nodes=None if name == "log.parquet" else "dates", bootstrap=0)
    assert OPENED.count(str(path)) == 1
