"""What a user says of a log reaches every reader, the command, Python and the scenario alike."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import cprsim.commands.fit
from cprsim.errors import CprsimError, ScenarioError
from cprsim.failures.outages import Outages
from cprsim.logs.formats import read_log
from cprsim.logs.spec import LogSpec
from cprsim.results.identity import identity_of
from cprsim.scenario.assemble import replay_of
from cprsim.scenario.failures import TraceFailures
from cprsim.scenario.reading import checked_data
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
    if column != "exit":
        with pytest.raises(CprsimError, match=f"{column}: may say when nodes joined or left"):
            outages_in(tmp_path, table(plain, of=EACH_ONCE), **said)
    log = outages_in(tmp_path, table(plain, of=EACH_ONCE), columns={"exit": column}, **said)
    assert log.in_window.sum() == len(EACH_ONCE)
    assert log.facts["n_nodes"] == ("read", f"the nodes' own dates ({nodes})")
    np.testing.assert_allclose(np.sort(log.lives[2]), log.start_h)


def test_an_error_that_ends_a_fit_says_what_was_left_out(tmp_path: Path) -> None:
    (nodes := tmp_path / "nodes.csv").write_text(
        lines(["node,entry", *(f"{node},2025-01-01" for node in NODES)])
    )
    left_out = rf"{len(OUTAGES)} outages left out that began while their node was not there"
    with pytest.raises(CprsimError, match=left_out):
        outages_in(tmp_path, table(plain), nodes=nodes, period=("2024-01-01", "2026-01-01"))


# ------------------------------------------------------------------------------ one description


def test_options_keywords_and_the_section_are_the_fields_of_the_spec() -> None:
    names = {one.name for one in fields(LogSpec)}
    assert names <= set(TraceFailures.model_fields)
    source = Path(cprsim.commands.fit.__file__).read_text("utf-8")
    assert all(
        f"``{name}``" in source and f"\n    {name} : " in cprsim.fit.__doc__ for name in names
    )
    with pytest.raises(CprsimError, match="No such file"):
        cprsim.fit("none.csv", **dict.fromkeys(names))


LOG = """node,start,end,cause
12,2024-03-02T03:00:00,2024-03-02T05:00:00,79
7,2024-03-04T10:00:00,2024-03-04T11:00:00,disk
12,2024-03-04T10:00:20,2024-03-04T14:00:00,disk
7,2024-03-09T10:00:00,,79
12,2024-03-15T17:00:00,2024-03-15T19:00:00,fan
"""
WHY = LOG.replace("cause", "why")
LENGTHS = """node,start,duration
a,2024-03-02T03:00:00,7200
b,2024-03-05T03:00:00,3600
a,2024-03-09T10:00:00,1800
"""
NUMBERS = "node,start,end\na,1000,1010\nb,2000,2020\na,3000,3100\n"
GERMAN = "node,start\na,02.03.2024 03:00\nb,05.03.2024 03:00\na,09.03.2024 10:00\n"
EPOCH = "node,start\na,1709348400\nb,1709607600\na,1709978400\n"
FLAGS = "node,start,end,flag\n" + "".join(
    f"n{day % 2},2024-03-{day:02}T03:00:00,2024-03-{day:02}T05:00:00,{day % 3 > 0:d}\n"
    for day in range(1, 9)
)
STATES = "node,start,state\n" + "".join(
    f"n{day % 2},2024-03-{day:02}T0{hour}:00:00,{state}\n"
    for day in range(1, 9)
    for hour, state in ((3, "broken"), (5, "fine"))
)
MARCH = {"period": "2024-03-01..2024-04-01"}
OF_MARCH = {"period": {"from": "2024-03-01", "to": "2024-04-01"}}
CAUSE, IN_S = {"columns": {"cause": "why"}}, {"time_unit": "s"}
JOB = {
    "name": "small", "job": {"useful": "9 h"}, "recovery": ["full"],
    "cluster": {"emb_ps": 1, "trainers": 1},
    "costs": dict.fromkeys(("save", "load", "detect", "reschedule"), "1 s"),
    "simulation": {"seed": 1, "replications": 2},
}  # fmt: skip
SAME = {  # by what is tried: the log, the options of `fit`, the keys of a scenario
    "format": (LOG, {"format": "tidy"}, {"format": "tidy"}),
    "nodes": (LOG, {"nodes": "nodes.csv", **MARCH}, {"nodes": "nodes.csv", **OF_MARCH}),
    "nodes, a number": (LOG, {"nodes": 9}, {"nodes": 9}),
    "nodes of the log": (LIVES, {"nodes": "dates"}, {"nodes": "dates"}),
    "period": (LOG, MARCH, OF_MARCH),
    "period from": (LOG, {"period": "2024-03-04.."}, {"period": {"from": "2024-03-04"}}),
    "period of dates beside a unit": (LENGTHS, {**IN_S, **MARCH}, {**IN_S, **OF_MARCH}),
    "period of numbers": (NUMBERS, {**IN_S, "period": "500..4000"},
                          {**IN_S, "period": {"from": 500, "to": 4000}}),
    "period since 1970": (EPOCH, {"period": "1709337600..1710000000"},
                          {"period": {"from": 1709337600, "to": 1710000000}}),
    "columns": (WHY, CAUSE, CAUSE),
    "columns as texts": (WHY, {"columns": ["cause=why"]}, CAUSE),
    "time_unit": (NUMBERS, {"time_unit": "min"}, {"time_unit": "min"}),
    "date_format": (GERMAN, {"date_format": "%d.%m.%Y %H:%M", "period": "01.03.2024..2024-04-01"},
                    {"date_format": "%d.%m.%Y %H:%M",
                     "period": {"from": "01.03.2024", "to": "2024-04-01"}}),
    "tz": (LOG, {"tz": "America/New_York"}, {"tz": "America/New_York"}),
    "repair": (GERMAN.replace(" ", "T"), {"date_format": "%d.%m.%YT%H:%M", "repair": "2 h"},
               {"date_format": "%d.%m.%YT%H:%M", "repair": "120 min"}),
    "coalesce": (LOG, {"coalesce": "5 days"}, {"coalesce": "120 h"}),
    "together": (LOG, {"together": "1 min"}, {"together": "60 s"}),
    "cause": (WHY, {**CAUSE, "cause": "79"}, {**CAUSE, "cause": "79"}),
    "not_cause": (WHY, {**CAUSE, "not_cause": "fan"}, {**CAUSE, "not_cause": "fan"}),
    "node": (LOG, {"node": "12"}, {"node": "12"}),
    "ignore": (FLAGS, {"ignore": ["flag"]}, {"ignore": ["flag"]}),
    "down": (STATES, {"down": "broken"}, {"down": "broken"}),
}  # fmt: skip
OPTIONS = {one.name for one in fields(LogSpec)}


def test_each_option_of_fit_is_tried_as_a_key_of_a_scenario() -> None:
    assert {"system", *(name.split(",")[0].split()[0] for name in SAME)} >= OPTIONS


@pytest.mark.parametrize(
    "name", [name for name, (_, said, _) in SAME.items() if {*said} <= OPTIONS]
)
def test_a_scenario_replays_what_fit_reads_with_the_same_options(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, options, keys = SAME[name]
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(text)
    entries = "".join(f"{node},2024-02-{node:02},\n" for node in (7, 9, 12))
    Path("nodes.csv").write_text(f"node,entry,exit\n{entries}")
    log = read_log(Path("log.csv"), LogSpec(**options))
    log = log.where(log.chosen)
    section = {"kind": "trace", "file": "log.csv", **keys}
    replayed = checked_data({**JOB, "failures": section}, tmp_path / "scenario.yaml")
    assert isinstance(replayed.scenario.failures, TraceFailures)
    source = replay_of(replayed.scenario.failures, replayed.trace_path, replayed.nodes_path)
    for number in ("start_h", "end_h", "node", "window_h", "n_nodes"):
        np.testing.assert_array_equal(getattr(source.outages, number), getattr(log, number))


def test_another_table_of_nodes_is_another_result(tmp_path: Path) -> None:
    section = {"kind": "trace", "file": "log.csv", "nodes": "nodes.csv"}
    data = {**JOB, "failures": section}
    (tmp_path / "log.csv").write_text(LOG)
    digests = set()
    for entry in ("2024-02-01", "2024-02-02"):
        (tmp_path / "nodes.csv").write_text(f"node,entry\n7,{entry}\n12,{entry}\n")
        digests.add(identity_of(checked_data(data, tmp_path / "scenario.yaml")).digest)
    assert len(digests) == 2
    (tmp_path / "nodes.csv").unlink()
    with pytest.raises(ScenarioError, match=r"failures\.nodes.*is not there.*their number"):
        checked_data(data, tmp_path / "scenario.yaml")
