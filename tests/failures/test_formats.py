"""A format of one's own."""

from pathlib import Path

import pytest

from cprsim.logs import formats
from tests.failures.tidy import read
from tests.making import call

PAGER = '''
from collections import Counter

import pandas as pd

from cprsim.logs.files import numbered_lines
from cprsim.logs.log import Log, LogFormat
from cprsim.logs.reading import FIRST_ROW
from cprsim.logs.times import read_times


def read_pager(log, spec):
    """Pages such as `2024-05-01T10:00Z gpu001 is down`."""
    lines = {line - FIRST_ROW: text.split() for line, text in numbered_lines(log)}
    rows = pd.DataFrame.from_dict(lines, "index").iloc[:, :2].set_axis(["start", "node"], axis=1)
    rows["start"] = read_times(rows["start"], None, log).hours
    return Log(rows.assign(end=float("nan"), cause=""), Counter(), points=True)


FORMAT = LogFormat(lambda head: "pages" if "is down" in head else "", read_pager)
'''


def test_a_format_is_one_file_that_is_named_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pager.py").write_text(PAGER)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    (log := tmp_path / "log").write_text(
        "2024-05-01T10:00Z a is down\n2024-05-02T10:00Z b is down\n"
    )
    assert "Read as format pager: pages" in call("fit", log, "--bootstrap", 0, "-v").stdout
    assert read(log).start_h.tolist() == [0, 24]
    log.write_text("2024-05-01T10:00Z a is down\nsoon b is down\n")
    assert ":2: start: 'soon' is no ISO 8601 time stamp" in call("fit", log).stderr
