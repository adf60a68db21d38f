"""A CSV of the user's own: what it means, and what is wrong with it to the cell."""

import re
from pathlib import Path

import numpy as np
import pytest

from cprsim.accuracy.curve_file import read_curve
from cprsim.errors import CurveError
from cprsim.job.losses import Metric

HEADER = "strategy,pls,loss,standard_error\n"
DOCS = Path(__file__).parents[2] / "docs" / "staleness.md"


def read(tmp_path, text, name="mine.csv"):
    path = tmp_path / name
    path.write_text(text)
    return read_curve(path)


def test_points_in_any_order_make_a_response_that_begins_at_nothing(tmp_path):
    found = read(tmp_path, HEADER + "partial,0.4,0.005,1e-4\npartial, 0.1,0.001,5e-5\n")
    (response,) = found.responses
    assert (response.strategy, response.metric) == ("partial", Metric.AUC)
    assert response.pls.tolist() == [0.0, 0.1, 0.4]
    assert response.loss.tolist() == [0.0, 0.001, 0.005]
    assert response.standard_error.tolist() == [0.0, 5e-5, 1e-4]
    assert response.weight.of(np.array([0.3])) == pytest.approx([1.0])
    assert found.identity is None
    assert found.name == "mine"


def test_a_system_loses_by_what_its_rows_say(tmp_path):
    rows = "hsdp,.02,1e-4,0,degraded\nmoc,12,2e-4,0,failures\npartial,.1,1e-3,0,\n"
    found = read(tmp_path, HEADER.replace("\n", ",by\n") + rows)
    by = {one.strategy: (one.by, one.most_pls) for one in found.responses}
    assert by == {"hsdp": ("degraded", 0.02), "moc": ("failures", 12.0), "partial": ("pls", 0.1)}


BY = HEADER.replace("\n", ",by\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.csv: is empty"),
        (HEADER, "mine.csv: holds no row below the header"),
        ("strategy,pls,loss\npartial,.1,1\n", "mine.csv:1: standard_error: there is no column"),
        (HEADER.replace(",", ";"), "separate columns by commas|holds no row"),
        (HEADER + "mfu ,.1,.1,0\ncpr-mfu,.1,.1,0\n", "csv:3: strategy: .*did you mean `mfu`"),
        (HEADER + "partial,.1,nan,0\n", "mine.csv:2: loss: `nan` is not a finite number"),
        (HEADER + "partial,.1,.1,\n", "mine.csv:2: standard_error: `` is not a finite number"),
        (HEADER + "partial,10,.1,0\n", "mine.csv:2: pls: `10` is out of range: a portion lies"),
        (HEADER + "partial,.1,-.1,1\n", "mine.csv:2: loss: `-.1` is out of range: a loss is not"),
        (HEADER + "partial,.1,0,0\n", "mine.csv:2: standard_error: `0` is 0 with a loss"),
        (HEADER + "partial,.2,.1,1\nmfu,.1,.3,1\npartial,.1,.2,1\n",
         "mine.csv:2: loss: `0.1` at PLS 0.2 is less than `0.2` at PLS 0.1 in line 4"),
        (HEADER + "partial,0,.1,0\n", "mine.csv:2: loss: `.1` is not 0 at PLS 0"),
        (HEADER + "partial,0,0,0\n", "mine.csv: pls: partial has no point beyond 0 in auc"),
        (HEADER + "partial,.1,.1,0\n\npartial,0.1,.2,0\n", "csv:4: pls: `0.1` stands in line 2"),
        (HEADER + "hsdp,.1,.1,0\n", "csv:2: by: `pls` does not say what hsdp loses by: .*failures"),
        (BY + "hsdp,.1,.1,0,failure\n", "did you mean `failures`"),
        (BY + "partial,.1,.1,0,saves\n", "csv:2: by: `saves` goes with recovery systems"),
        (BY + "gemini,.1,.1,0,saves\n", "csv:2: strategy: `gemini` is not known"),
        (BY + "hsdp,2,.1,0,degraded\n", "csv:2: pls: `2` is out of range"),
        (BY + "moc,2,.1,0,saves\nmoc,3,.1,0,failures\n", "moc loses by saves and by failures"),
        (HEADER + "partial,.1,.1,0,7\n", "mine.csv:1: rows have more cells than this header"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_to_the_cell(tmp_path, text, message):
    with pytest.raises(CurveError) as caught:
        read(tmp_path, text)
    assert re.search(message, str(caught.value))


def test_the_example_of_the_documentation_is_a_curve(tmp_path):
    example = re.search(r"```csv\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    found = read(tmp_path, example[1])
    assert found.of("partial", Metric.AUC).most_pls == 0.4
    assert found.of("mfu", Metric.AUC).loss.tolist() == [0.0, 0.0017]
    assert found.of("partial", Metric.LOG_LOSS) is not None
