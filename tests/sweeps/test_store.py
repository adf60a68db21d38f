"""A finished point in its store, and an axis in a sweep's folder: read back as written."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cprsim.errors import ResultError
from cprsim.results.folder import write_parquet
from cprsim.results.store import PointStore, Task
from cprsim.sweeps.folder import ABOUT, SHOWN, TABLE, AxisColumn, load_sweep
from cprsim.workers import Workers
from tests.generated import comparable, names

numbers = st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=6)
bodies = st.fixed_dictionaries(
    {"reference": names, "quantities": st.dictionaries(names, numbers, max_size=3)}
)


@settings(max_examples=25)
@given(bodies)
def test_a_point_is_read_back_as_it_was_written(tmp_path_factory, body):
    store = PointStore(tmp_path_factory.mktemp("points"))
    store.folder.mkdir()
    store.put("00ff", body, store.root)
    assert comparable(dict(PointStore(store.root).get("00ff"))) == comparable(body)


def test_what_is_missing_is_computed_once_and_told_of_as_it_is_done(tmp_path):
    store, told, asked = PointStore(tmp_path), [], []
    store.folder.mkdir()
    store.put("01", {"value": 1}, tmp_path)
    points = [SimpleNamespace(digest=digest) for digest in ("03", "01", "02", "03")]

    def tasks_of(missing):
        asked.append([point.digest for point in missing])
        return [Task("a point", [one], int(one)) for one in asked[-1]]

    def values(number):
        return [{"value": number}]

    def tell(*numbers):
        told.append(numbers)

    def finished():
        bodies, n_computed = store.each(points, values, tasks_of, Workers(1), tell)
        return [dict(body) for body in bodies], n_computed

    wanted = [{"value": value} for value in (3, 1, 2, 3)]
    assert finished() == (wanted, 2)
    assert (asked, told) == ([["03", "02"]], [(0, 2), (1, 2), (2, 2)])
    assert finished() == (wanted, 0)
    assert (asked[1:], told[3:]) == ([], [])


def test_a_table_without_the_column_of_an_axis_is_damaged(tmp_path, monkeypatch):
    row = dict.fromkeys(SHOWN, 1.0)
    write_parquet(pd.DataFrame([{**row, "save_h": 1.0}]), tmp_path / TABLE)
    monkeypatch.setattr("cprsim.sweeps.folder.read_manifest", lambda folder: {})
    about = {"name": "a", "mode": "grid", "reference": "full", "useful_h": 1.0}

    def load(column: str):
        axis = AxisColumn("costs.save", column, "h", True, False)
        (tmp_path / ABOUT).write_text(json.dumps({**about, "axes": [asdict(axis)]}), "utf-8")
        return load_sweep(tmp_path)

    assert load("save_h").axes[0].column == "save_h"
    with pytest.raises(ResultError, match=r"its table has no column -\.inf"):
        load("-.inf")
