"""A finished point in its store, and an axis in a sweep's folder: read back as written."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from math import isfinite
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cprsim.errors import ResultError
from cprsim.estimate import Estimate
from cprsim.records import OnFailure, RecoveryPolicy, SubSaves
from cprsim.results.folder import write_parquet
from cprsim.results.store import PointsTask, PointStore, finish_points
from cprsim.staleness import Metric, Response, StalenessCurve
from cprsim.sweeps.folder import ABOUT, SHOWN, TABLE, AxisColumn, _accuracy, _read, load_sweep
from cprsim.sweeps.running import _numbers
from cprsim.workers import Workers
from tests.generated import anything, comparable, names

numbers = st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=6)
bodies = st.fixed_dictionaries(
    {"reference": names, "quantities": st.dictionaries(names, numbers, max_size=3)}
)


@settings(max_examples=25)
@given(bodies)
def test_a_point_is_read_back_as_it_was_written(tmp_path_factory, body):
    store = PointStore(tmp_path_factory.mktemp("points"))
    with store.writing():
        store.write("00ff", body)
    assert comparable(dict(PointStore(store.root).read("00ff"))) == comparable(body)


def test_what_is_missing_is_computed_once_and_told_of_as_it_is_done(tmp_path):
    store, told, asked = PointStore(tmp_path), [], []
    with store.writing():
        store.write("01", {"value": 1})
    points = [SimpleNamespace(digest=digest) for digest in ("03", "01", "02", "03")]

    def tasks_of(missing):
        asked.append([point.digest for point in missing])
        return [PointsTask("a point", (one,), values, int(one)) for one in asked[-1]]

    def values(number):
        return [{"value": number}]

    def tell(*numbers):
        told.append(numbers)

    def finished():
        bodies, n_computed = finish_points(points, store, Workers(1), tasks_of, tell)
        return [dict(body) for body in bodies], n_computed

    wanted = [{"value": value} for value in (3, 1, 2, 3)]
    assert finished() == (wanted, 2)
    assert (asked, told) == ([["03", "02"]], [(1, 2), (2, 2)])
    assert finished() == (wanted, 0)
    assert (asked[1:], told[2:]) == ([[]], [])


axes = st.builds(AxisColumn, names, names, names, st.booleans(), st.booleans())
said = st.fixed_dictionaries(
    {
        "name": names,
        "mode": st.sampled_from(["grid", "one-at-a-time"]),
        "axes": st.lists(axes, max_size=3),
        "reference": names,
        "useful_h": st.floats(0.01, 1e5),
        "accuracy": st.lists(names, max_size=2),
    }
)


@settings(max_examples=25)
@given(said, st.lists(anything, max_size=4))
def test_what_a_sweep_says_of_itself_is_read_back(tmp_path_factory, said, means):
    folder = tmp_path_factory.mktemp("sweep")
    plain = said | {"axes": [asdict(axis) for axis in said["axes"]]}
    (folder / ABOUT).write_text(json.dumps(plain, allow_nan=False))
    table = pd.DataFrame({"mean": np.array(means, float)})
    write_parquet(table, folder / TABLE)
    found = _read(folder)
    again = {key: getattr(found, key) for key in said}
    expected = {key: tuple(of) if isinstance(of, list) else of for key, of in said.items()}
    assert comparable(again) == comparable(expected)
    assert comparable(found.table["mean"].tolist()) == comparable(table["mean"].tolist())


@given(st.builds(Estimate, anything, anything, anything, st.just(3)))
def test_a_point_keeps_finite_numbers_and_leaves_the_others_out(spread):
    for kept, value in zip(_numbers(spread), (spread.mean, spread.low, spread.high), strict=True):
        assert kept == (value if isfinite(value) else None)


def test_a_sweep_does_not_claim_an_interval_for_losses_that_its_curve_does_not_price():
    curve = StalenessCurve(
        "lines", "by hand", (Response.linear("mfu", Metric.AUC, (0.02, 0.002), 0.1),)
    )
    whole = RecoveryPolicy("partial", OnFailure.RELOAD, 2.0, "given")
    first = replace(whole, name="cpr-mfu", sub_saves=SubSaves("mfu"))

    def accuracy(*policies):
        return _accuracy([SimpleNamespace(curve=curve, policies=policies)])

    none = accuracy(whole)
    assert none[0].startswith("There is no AUC loss to show")
    assert "it has no response of `partial` in AUC" in none[1]
    assert accuracy(first) == [
        "AUC loss by the staleness curve lines (by hand); its error is in the interval."
    ]
    assert accuracy(first, whole)[1].startswith("partial: lines does not say what it loses")


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
