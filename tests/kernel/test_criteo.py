"""Reading click logs: what is in them comes out, and what is wrong is named by file and line."""

import gzip
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.errors import ClickError
from cprsim.training.kernel.clicks.criteo import read_log
from cprsim.training.kernel.clicks.records import MISSING_CATEGORY

INTEGERS = [str(i) for i in range(13)]
CATEGORIES = [f"{i:08x}" for i in range(26)]


def line(label: str = "1", integers: list | None = None, categories: list | None = None) -> str:
    return "\t".join([label, *(integers or INTEGERS), *(categories or CATEGORIES)])


def changed(values: list[str], at: int, value: str) -> list[str]:
    return [*values[:at], value, *values[at + 1 :]]


def write(path, *lines: str) -> None:
    path.write_text("".join(f"{text}\n" for text in lines))


def test_numbers_come_out_as_written_and_gaps_as_missing(tmp_path):
    log = tmp_path / "log.tsv"
    integers = changed(changed(INTEGERS, 1, "-2"), 4, "2071071")
    write(log, line("0", changed(integers, 0, ""), changed(CATEGORIES, 25, "")), line())
    raw, skipped = read_log(log)
    assert raw.label.tolist() == [0, 1]
    assert np.isnan(raw.integers[0, 0])
    assert raw.integers[0, 1:5].tolist() == [-2, 2, 3, 2071071]
    assert raw.categories[0].tolist() == [*range(25), MISSING_CATEGORY]
    assert skipped == 0


def test_blocks_join_to_the_whole_wherever_they_are_cut(tmp_path, monkeypatch):
    log = tmp_path / "log.tsv"
    write(log, *(line(str(i % 2), changed(INTEGERS, 0, str(i))) for i in range(50)))
    monkeypatch.setattr("cprsim.training.kernel.clicks.criteo.READ_BYTES", 333)
    monkeypatch.setattr("cprsim.training.kernel.clicks.criteo.BLOCK_LINES", 7)
    assert read_log(log)[0].integers[:, 0].tolist() == list(range(50))
    assert read_log(log, most=20)[0].integers[:, 0].tolist() == list(range(20))


BAD = {
    "39 fields": (line().rsplit("\t", 1)[0], "39 fields between tabs, not 40"),
    "blank": ("", "1 fields"),
    "label": (line("2"), r"\(label\): `2` is no label"),
    "real": (line(integers=changed(INTEGERS, 0, "1.5")), r"\(I1\): `1.5` is no integer"),
    "endless": (line(integers=changed(INTEGERS, 0, "9" * 60)), r"`9{40}\.\.\.` is no integer"),
    "short hex": (line(categories=changed(CATEGORIES, 25, "00ff")), r"\(C26\): `00ff` is not"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_one_error_with_file_and_line_or_skipped_and_counted(tmp_path, name):
    bad, message = BAD[name]
    log = tmp_path / "log.tsv"
    write(log, line(), line("0"), bad, line())
    raw, skipped = read_log(log, skip_bad=True)
    assert (raw.label.tolist(), skipped) == ([1, 0, 1], 1)
    with pytest.raises(ClickError, match=message) as caught:
        read_log(log)
    assert str(caught.value).startswith(f"{log}:3: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_compressed_log_reads_like_a_plain_one_and_its_end_is_missed(tmp_path, suffix, compress):
    rng = np.random.default_rng(0)
    lines = [line(categories=[f"{v:08x}" for v in rng.integers(0, 2**32, 26)]) for _ in range(300)]
    whole = compress("".join(f"{text}\n" for text in lines).encode())
    log = tmp_path / f"log.tsv{suffix}"
    log.write_bytes(whole)
    assert len(read_log(log)[0]) == 300
    log.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ClickError, match=r"log\.tsv\.(gz|xz):\d+: the file is cut short"):
        read_log(log)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.tsv", None, "unreadable"),
        ("log.tsv", b"", "holds no click"),
        ("log.tsv", b"\0" * 10_000_000, "a line without end"),
    ],
    ids=["missing", "empty", "no lines"],
)
def test_what_is_no_log_is_an_error_even_when_skipping(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ClickError, match=message):
        read_log(tmp_path / name, skip_bad=True)


@given(st.binary(max_size=300))
def test_no_bytes_whatever_end_in_anything_but_clicks_or_one_error(tmp_path_factory, content):
    log = tmp_path_factory.mktemp("logs") / "log.tsv"
    log.write_bytes(f"{line()}\n".encode() + content + f"\n{line('0')}\n".encode())
    raw, skipped = read_log(log, skip_bad=True)
    assert len(raw) + skipped == 3 + content.count(b"\n")
    assert raw.label[0] == 1
    assert raw.label[-1] == 0
