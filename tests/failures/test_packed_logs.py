"""Logs as files: packed, read in pieces, or no files at all."""

import bz2
import gzip
import lzma
import os
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import cprsim
from cprsim.errors import TraceError
from tests.failures.test_forms import OUTAGES, table, utc
from tests.failures.tidy import read_tidy

LOG = "node,start,end\na,1,2\nb,3,4\n"


def test_pipes_and_folders_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")  # nobody writes into it: to open it would wait for ever
    for path in (tmp_path / "pipe.csv", tmp_path):
        with pytest.raises(TraceError, match="can't be read: it is no regular file"):
            read_tidy(path)
    with pytest.raises(TraceError, match="can't be read: No such file"):
        read_tidy(tmp_path / "missing.csv")


def test_a_packed_file_of_several_logs_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("a.csv", LOG)
        archive.writestr("b.csv", LOG)
    with pytest.raises(TraceError, match="pack the log alone"):
        read_tidy(tmp_path / "log.zip")


@pytest.mark.parametrize("suffix", ["", ".xz", ".gz", ".bz2", ".zst", ".zip"])
def test_packed_logs_read_as_the_plain_one(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log.csv{suffix}"
    text = b"\xef\xbb\xbf" + LOG.encode()
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
    rows = table(utc, of=OUTAGES[::2] + OUTAGES)  # some are said twice, far apart
    (path := tmp_path / "log.csv").write_text(rows)
    whole = read_tidy(path)
    monkeypatch.setattr("cprsim.logs.reading.ROWS_AT_ONCE", 10)
    pieces = read_tidy(path)
    for name in ("node", "start_h", "end_h", "ended", "cause_code"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))
    assert (whole.notes, whole.node_names) == (pieces.notes, pieces.node_names)
    assert whole.n_outages == len(OUTAGES)
    path.write_text(rows + "a,soon,\n")
    with pytest.raises(TraceError, match=r"log.csv:92: start: 'soon' is no ISO 8601"):
        read_tidy(path)


def test_lines_documents_and_packed_logs_have_a_bound(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "log.csv.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(b"node,start,end\n" + 17_000_000 * b"x")
    with pytest.raises(TraceError, match=r"log.csv.gz:2: the line has more than 16,777,216 bytes"):
        read_tidy(path, time_unit="h")
    path.write_bytes(gzip.compress(LOG.encode()))
    monkeypatch.setattr("cprsim.logs.files.MOST_UNPACKED", 20)
    with pytest.raises(TraceError, match=r"unpacked it has more than 20 bytes: split it"):
        read_tidy(path, time_unit="h")
    monkeypatch.setattr("cprsim.logs.files.MOST_TEXT", 20)
    path = tmp_path / "log.json"
    path.write_text('[{"node": "a", "start": 1, "end": 2}]')
    with pytest.raises(TraceError, match="more than 20 bytes"):
        cprsim.fit(path, time_unit="h", bootstrap=0)
