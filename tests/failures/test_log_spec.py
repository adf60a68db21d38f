"""What a user says of a log reaches every reader; what can't be meant is refused at its line."""

from __future__ import annotations

import gzip
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cprsim
from cprsim.errors import CprsimError
from cprsim.failures.outages import Outages
from cprsim.failures.traces import formats
from cprsim.failures.traces.spec import LogSpec
from cprsim.scenario.failures import TraceFailures
from tests.failures.samples import PERIOD, ROWS, WRITERS
from tests.failures.tidy import read
from tests.making import call

START = pd.Timestamp("2024-01-01")
N_NODES, WINDOW_H = 30, 2000.0


def cluster() -> pd.DataFrame:
    """Exponential up-times of 200 h and repairs of an hour, on 30 nodes."""
    rng, rows = np.random.default_rng(3), []
    for node in range(N_NODES):
        at_h = rng.exponential(200)
        while at_h < WINDOW_H:
            end_h = at_h + 0.05 + rng.exponential(0.95)
            rows.append((f"n{node:02}", at_h, end_h))
            at_h = end_h + rng.exponential(200)
    return pd.DataFrame(rows, columns=["node", "start", "end"]).sort_values("start")


KNOWN = cluster()


def stamps(form: str = "%Y-%m-%dT%H:%M:%S", zone: str = "UTC", late_s: int = 0) -> pd.DataFrame:
    """The log with instants in a form."""
    table = KNOWN.copy()
    for name in ("start", "end"):
        at = START + pd.to_timedelta(table[name] + late_s / 3600, unit="h")
        table[name] = at.dt.tz_localize("UTC").dt.tz_convert(zone).dt.strftime(form)
    return table


def numbers(unit: str) -> pd.DataFrame:
    per_h = {"s": 3600, "ms": 3_600_000}[unit]
    since_h = START.timestamp() / 3600
    return KNOWN.assign(**{c: ((KNOWN[c] + since_h) * per_h).round() for c in ("start", "end")})


def with_one(name: str, cell: str, row: int = 49) -> str:
    table = stamps()
    table.iloc[row, table.columns.get_loc(name)] = cell
    return table.to_csv(index=False)


def thousands(hours: pd.Series) -> pd.Series:
    return (hours * 3600).map(lambda s: f"{round(s):,}".replace(",", "."))


def found(folder: Path, text: str | bytes, name: str = "log.csv", **said: object) -> Outages:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path, **said)


GERMAN, WHOLE = "%d.%m.%Y %H:%M:%S", ("2024-01-01", None)
QUOTED = stamps().assign(**{"what, or why": ""}).to_csv(index=False)
READ: dict[str, tuple[str | bytes, dict[str, object]]] = {
    "as it is": (stamps().to_csv(index=False), {"period": WHOLE}),
    "semicolons, another form of dates and period": (
        stamps(GERMAN).to_csv(index=False, sep=";"),
        {"date_format": GERMAN, "period": ("01.01.2024", None)},
    ),
    "a byte-order mark": ("\ufeff" + stamps().to_csv(index=False), {"period": WHOLE}),
    "seconds since 1970": (numbers("s").to_csv(index=False), {"period": WHOLE}),
    "another zone": (
        stamps("%Y-%m-%dT%H:%M:%S%z", "Asia/Tokyo").to_csv(index=False), {"period": WHOLE}
    ),
    "local time": (
        stamps(zone="Asia/Tokyo").to_csv(index=False),
        {"tz": "Asia/Tokyo", "period": ("2024-01-01T09:00", None)},
    ),
    "a quoted comma in the header, no end of the last line": (
        QUOTED.rstrip("\n"), {"period": WHOLE}
    ),
    "maintenance that is left out": (
        pd.concat([
            stamps().assign(cause="disk"), stamps().iloc[::5].assign(node="x", cause="maintenance")
        ]).to_csv(index=False),
        {"period": WHOLE, "not_cause": "Maintenance"},
    ),
    "repeats within seconds": (
        pd.concat([stamps(), stamps(late_s=5)])[["node", "start"]].to_csv(index=False),
        {"period": WHOLE},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", READ)
def test_one_known_log_in_every_form_has_its_failures(tmp_path: Path, form: str) -> None:
    text, said = READ[form]
    log = found(tmp_path, text, **said)
    at_h = log.failed_at_h
    assert len(at_h) == len(KNOWN)
    np.testing.assert_allclose(at_h, np.sort(KNOWN["start"]), atol=2 / 3600)


def test_a_packed_log_and_one_of_local_time_say_their_zone(tmp_path: Path) -> None:
    packed = gzip.compress(stamps().to_csv(index=False).encode())
    assert found(tmp_path, packed, "log.csv.gz").n_outages == len(KNOWN)
    log = found(tmp_path, stamps().to_csv(index=False), tz="Europe/Berlin", period=WHOLE)
    assert log.origin == "2024-01-01T00:00:00+01:00"


REFUSED = {
    "one bad date": (with_one("start", "tomorrow"), {}, "log.csv:51: start: 'tomorrow' is no ISO"),
    "one date of another form": (
        stamps(GERMAN).to_csv(index=False).replace(stamps(GERMAN)["start"].iloc[49], "2024-01-09"),
        {"date_format": GERMAN}, "log.csv:51: start: '2024-01-09' is no time stamp in the form",
    ),
    "an end in the future": (
        with_one("end", "2099-01-01"), {}, "log.csv:51: end: of 'n", "in the future (2099-01-01"
    ),
    "starts in s, ends in ms": (
        numbers("s").assign(end=numbers("ms")["end"]).to_csv(index=False), {},
        "end: looks like ms since 1970, the starts like s",
    ),
    "rounded by a spreadsheet": (
        numbers("ms").assign(start=numbers("ms")["start"].map("{:.5E}".format)).to_csv(index=False),
        {}, "log.csv:2: start: '1.70", "is rounded, as spreadsheets write long numbers",
    ),
    "lengths with points between thousands": (
        stamps()[["node", "start"]].assign(duration_s=thousands(KNOWN["end"] - KNOWN["start"]))
        .to_csv(index=False), {}, "a decimal point, or one between thousands?",
    ),
    "a cause that none has": (
        stamps().assign(cause="disk").to_csv(index=False), {"not_cause": "fan"},
        "no outage has a cause with 'fan'; there are: disk",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_meant_is_refused_in_one_sentence(tmp_path: Path, what: str) -> None:
    text, said, *complaints = REFUSED[what]
    with pytest.raises(CprsimError) as caught:
        found(tmp_path, text, **said)  # type: ignore[arg-type]
    assert len(str(caught.value).splitlines()) == 1
    for complaint in complaints:
        assert complaint in str(caught.value)


def test_repeats_are_said_and_can_be_kept(tmp_path: Path) -> None:
    text, said = READ["repeats within seconds"]
    log = found(tmp_path, text, **said)
    n = len(KNOWN)
    assert f"{n} of {2 * n} begin within a minute of another on the same node: merged" in str(
        log.notes
    )
    assert found(tmp_path, text, **said, coalesce="0 s").n_outages == 2 * n


def test_an_unknown_unit_is_refused_also_where_times_are_dates(tmp_path: Path) -> None:
    (log := tmp_path / "log.csv").write_text(stamps().to_csv(index=False))
    (costs := tmp_path / "costs.csv").write_text("kind,start,end\nsave,2024-01-01,2024-01-02\n")
    for path in (log, costs):
        with pytest.raises(CprsimError, match="time_unit: 'xyz' should be 'ms', 's', 'min', 'h'"):
            cprsim.fit(path, time_unit="xyz")


# ------------------------------------------------------------------------------ tables of nodes


@pytest.mark.parametrize("column", ["exit", "removed", "Installed"])
def test_a_failure_at_the_exit_of_a_node_is_inside(tmp_path: Path, column: str) -> None:
    """Each node fails once and is taken out by that: its exit is the instant of its failure."""
    once = stamps().drop_duplicates("node")
    (nodes := tmp_path / "nodes.csv").write_text(
        pd.DataFrame({"node": once["node"], column: once["start"]}).to_csv(index=False)
    )
    said = {"nodes": nodes, "period": WHOLE}
    log = found(tmp_path, once.to_csv(index=False), **said)
    assert log.facts["n_nodes"] == ("read", f"the nodes' own dates ({nodes})")
    assert not any("no number of nodes" in note for note in log.notes)
    if column != "exit":
        note = f"column(s) of nodes.csv not read: {column} (--column exit=NAME reads one)"
        assert note in log.notes
        return
    assert log.in_window.sum() == N_NODES
    other = {"exit": "removed"}
    nodes.write_text(nodes.read_text().replace("exit", "removed"))
    renamed = found(tmp_path, once.to_csv(index=False), columns=other, **said)
    assert renamed.in_window.sum() == N_NODES


def test_an_error_that_ends_a_fit_says_what_was_left_out(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(stamps().to_csv(index=False))
    (tmp_path / "nodes.csv").write_text(
        "node,entry\n" + "".join(f"n{n:02},2025-01-01\n" for n in range(N_NODES))
    )
    shown = call("fit", tmp_path / "log.csv", "--nodes", tmp_path / "nodes.csv",
                 "--period", "2024-01-01..2026-01-01")  # fmt: skip
    assert shown.exit_code == 2
    assert (
        f"{len(KNOWN)} outage(s) left out that began while their node was not there" in shown.stderr
    )


# -------------------------------------------------------------------------- one spec, one reader


def test_options_keywords_and_the_section_are_the_fields_of_the_spec() -> None:
    names = {one.name for one in fields(LogSpec)}
    assert names <= set(TraceFailures.model_fields)
    shown = call("fit", "--help").stdout
    for one in fields(LogSpec):
        option = one.metadata["shell"]["option"] or f"--{one.name.replace('_', '-')}"
        assert option in shown
    with pytest.raises(CprsimError, match="No such file"):
        cprsim.fit("none.csv", **dict.fromkeys(names - {"columns"}))


@pytest.mark.parametrize("name", WRITERS)
def test_what_fit_reads_run_replays(tmp_path: Path, name: str) -> None:
    (log := tmp_path / "log").write_bytes(WRITERS[name](ROWS))
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "job: {useful: 50 h}\ncluster: {emb_ps: 2}\ncosts: {save: 5 min, load: 3 min}\n"
        "recovery: [full]\nsimulation: {replications: 5}\n"
        f"failures: {{kind: trace, file: log, period: {{from: {PERIOD[0]}, to: {PERIOD[1]}}}}}\n"
    )
    from cprsim.experiments.assemble import assemble
    from cprsim.scenario.reading import load_scenario

    replayed = assemble(load_scenario(scenario)).failures.outages  # type: ignore[union-attr]
    fitted = read(log, period=PERIOD)
    np.testing.assert_array_equal(replayed.start_h, fitted.start_h)


READER = '''
import pandas as pd
from collections import Counter
from cprsim.failures.traces.files import numbered_lines
from cprsim.failures.traces.log import Log
from cprsim.failures.traces.reading import FIRST_ROW
from cprsim.failures.traces.spec import LogFormat
from cprsim.failures.traces.times import read_times

def read_pager(log, spec):
    """Lines as: PAGER n01 2024-01-01T00:00:00Z 2024-01-01T01:00:00Z"""
    rows = [(line - FIRST_ROW, *text.split()[1:]) for line, text in numbered_lines(log)]
    table = pd.DataFrame(rows, columns=["row", "node", "start", "end"]).set_index("row")
    for name in ("start", "end"):
        table[name] = read_times(table[name], None, log, tz=spec.tz).hours
    return Log(table.assign(cause=""), Counter(), points=False)

FORMAT = LogFormat(
    looks_like=lambda head: "lines of a pager" if head.text.startswith("PAGER ") else "",
    read=read_pager,
    options=frozenset({"--period", "--tz"}),
)
'''


def test_a_reader_is_one_file_named_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(READER.splitlines()) <= 40
    (folder := tmp_path / "more").mkdir()
    (folder / "pager_lines.py").write_text(READER)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(folder)])
    table = stamps("%Y-%m-%dT%H:%M:%SZ")
    (log := tmp_path / "log").write_text(
        "".join(f"PAGER {' '.join(row)}\n" for row in table.itertuples(index=False))
    )
    assert formats.guess(log) == ("pager-lines", "lines of a pager")
    assert read(log).n_outages == len(KNOWN)
    fitted = cprsim.fit(log, bootstrap=0)
    assert "read as format pager-lines: lines of a pager" in str(fitted.values["warnings"])
    with pytest.raises(CprsimError, match=r"repair: belongs to format .*, not `pager-lines`"):
        cprsim.fit(log, repair="2 h")
    monkeypatch.undo()
    sys.modules.pop("cprsim.failures.traces.formats.pager_lines", None)


OPENED: list[str] = []
sys.addaudithook(lambda event, about: OPENED.append(str(about[0])) if event == "open" else None)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_fit_opens_its_log_once(tmp_path: Path, suffix: str) -> None:
    table = stamps().assign(installed="2023-12-01")
    path = tmp_path / f"log.csv{suffix}"
    text = table.to_csv(index=False).encode()
    path.write_bytes(gzip.compress(text) if suffix else text)
    OPENED.clear()
    cprsim.fit(path, nodes="dates", bootstrap=0)
    assert OPENED.count(str(path)) == 1
