"""Logs that are too much, or no files at all: one clear error, soon, within the memory budget."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cprsim.errors import BudgetError, TraceError
from cprsim.failures.traces import read_infinitehbd, read_lanl
from tests.failures.tidy import read_tidy

LOG = "node,start,end\na,1,2\nb,3,4\n"


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPRSIM_MEMORY", "8 MB")


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"node,start,end\n" + b"a,1,2\n" * 100_000, "holds more than 50,000 rows"),
        (b"node,start,end\n" + b"\n" * 100_000, "holds more than 50,000 rows"),
        (b"node,start,end\n" + (b"a,1," + b" " * 9_000 + b"2\n") * 3_000, "more than 0.016 GB"),
        (
            b'node,start,end\na,1,"2\n' + (b"a,1," + b" " * 90 + b"2\n") * 30_000,
            "is a quote left open?",
        ),
    ],
)
def test_a_log_beyond_the_budget_is_refused_and_the_budget_named(
    tmp_path: Path, text: bytes, complaint: str
) -> None:
    path = tmp_path / "bomb.csv.xz"
    path.write_bytes(lzma.compress(text))
    assert path.stat().st_size < 20_000
    with pytest.raises(BudgetError) as caught:
        read_tidy(path, time_unit="h")
    assert complaint in str(caught.value)
    assert "the budget is 8 MB; CPRSIM_MEMORY=... in the environment raises it" in str(caught.value)


def test_whoever_raises_the_budget_reads_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("node,start\n" + "".join(f"a,{i}\n" for i in range(3_000)))
    monkeypatch.setenv("CPRSIM_MEMORY", "400 kB")
    with pytest.raises(BudgetError, match="holds more than 2,500 rows"):
        read_tidy(path, time_unit="h")
    monkeypatch.setenv("CPRSIM_MEMORY", "2 MB")
    assert read_tidy(path, time_unit="h").n_outages == 3_000


@pytest.mark.usefixtures("little_memory")
def test_logs_that_are_parsed_whole_are_bounded_too(tmp_path: Path) -> None:
    events = tmp_path / "events.json"
    events.write_text("[" + json.dumps({"node_id": "x" * 2_000_000}) + "]")
    with pytest.raises(BudgetError, match=r"holds more than 1 MB.*CPRSIM_MEMORY"):
        read_infinitehbd(events)
    records = tmp_path / "records.csv"
    records.write_text("System,nodes\n" + "2,49\n" * 200_000)
    with pytest.raises(BudgetError, match="CPRSIM_MEMORY"):
        read_lanl(records)


@pytest.mark.usefixtures("little_memory")
def test_more_nodes_or_causes_than_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("node,start\n" + "".join(f"{i},{i}\n" for i in range(20_000)))
    with pytest.raises(BudgetError, match=r"node: more than .* different texts"):
        read_tidy(path, time_unit="h")
    path.write_text(LOG)
    with pytest.raises(BudgetError, match="nodes: 1,000,000,000,000 nodes are more than 40,000"):
        read_tidy(path, time_unit="h", n_nodes=1_000_000_000_000)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"\0" * 3_000_000, "has a line of more than 1,000,000 bytes: is it text?"),
        (b"," * 2_000 + b"\n1\n", "has more than 1,000 columns: is it a log?"),
        (b"node, start,start\na,1,1\n", "two columns have this name"),
    ],
)
def test_text_that_is_no_log_is_said_to_be_none(
    tmp_path: Path, text: bytes, complaint: str
) -> None:
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(text))
    with pytest.raises(TraceError, match=r"log.csv.gz:1: ") as caught:
        read_tidy(path, time_unit="h")
    assert complaint in str(caught.value)


READ_THEM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4_000_000_000, 4_000_000_000))
from cprsim.errors import TraceError
sys.path.insert(0, sys.argv.pop(1))
from cprsim.failures.traces import read_infinitehbd
from tests.failures.tidy import read_tidy
for path in sys.argv[1:]:
    for read in (read_tidy, read_infinitehbd):
        try:
            read(path)
        except TraceError as error:
            print(error)
"""


def test_devices_pipes_sockets_and_folders_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.csv")  # nobody writes into it: to open it would wait for ever
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.csv")
    paths = ["/dev/zero", "pipe.csv", "socket.csv", str(tmp_path)]
    run = subprocess.run(
        [sys.executable, "-c", READ_THEM, str(Path(__file__).parents[2]), *paths],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    kinds = ["a device", "a pipe", "a socket", "a directory"]
    assert run.stdout.splitlines() == [
        f"{path}: can't be read: it is {kind}; give a regular file"
        for path, kind in zip(paths, kinds, strict=True)
        for _ in range(2)
    ]


@pytest.mark.parametrize("suffix", ["", ".xz", ".gz", ".bz2", ".zst", ".zip"])
def test_packed_logs_read_as_the_plain_one(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log.csv{suffix}"
    text = LOG.encode()
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("log.csv", text)
    elif suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(text)
    else:
        packed = {".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress}
        path.write_bytes(packed.get(suffix, bytes)(text))
    outages = read_tidy(path, time_unit="h")
    assert outages.start_h.tolist() == [0, 2]
    if suffix and suffix != ".zip":  # cut short, it is damaged
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(TraceError, match="can't be read"):
            read_tidy(path, time_unit="h")


def test_a_log_of_many_pieces_reads_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    stamps = np.datetime64("2024-01-01T00:00:00") + np.sort(rng.integers(0, 10**7, 500))
    nodes = rng.choice(["z", "b", "q", "a"], 500)
    rows = [
        f"{node},{at}Z,{at + 60}Z,{k}"
        for k, (node, at) in enumerate(zip(nodes, stamps, strict=True))
    ]
    rows[400] = rows[3]  # said twice, far apart
    path = tmp_path / "log.csv"
    path.write_text("node,start,end,number\n" + "\n".join(rows) + "\n")
    whole = read_tidy(path)
    monkeypatch.setattr("cprsim.failures.traces.reading.CELLS_AT_ONCE", 40)
    pieces = read_tidy(path)
    for name in ("node", "start_h", "end_h", "ended", "cause_code"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))
    assert whole.notes == pieces.notes
    assert (
        "1 outage(s) of nodes that were down already, merged into the outage under way"
        in whole.notes
    )
    assert whole.node_names == ("a", "b", "q", "z")
    path.write_text(path.read_text() + "a,soon,,\n")
    with pytest.raises(TraceError, match=r"log.csv:502: start: 'soon' is no ISO 8601"):
        read_tidy(path)
