"""A whole number of 401 digits in a file of JSON is an error of the input, wherever it stands."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import cprsim
from cprsim.codec import canonical_digest
from cprsim.curves.curve_file import read_curve
from cprsim.errors import CurveError, ResultError, TraceError
from cprsim.failures.traces import read_infinitehbd
from cprsim.results.journal import read_journal
from cprsim.results.run import read_folder
from cprsim.results.store import PointStore
from cprsim.selector.folder import read_selection
from cprsim.sweeps.folder import _read as read_sweep

ENDLESS = 10**400
LONGER = 5_000 * "9"  # Python itself reads no number as long
SHIPPED = sorted((Path(cprsim.__file__).parent / "curves" / "shipped").glob("*.json"))[0]


@pytest.mark.parametrize("key", ["loss", "interval_share", "degrees", "weight"])
def test_in_a_curve(tmp_path, key) -> None:
    plain = json.loads(SHIPPED.read_text("utf-8"))
    del plain["digest"]
    response = plain["responses"][0]
    if key == "weight":
        response["weight"]["weight"][0] = ENDLESS
    else:
        response[key] = [ENDLESS] * len(response["pls"]) if key == "loss" else ENDLESS
    path = tmp_path / "curve.json"
    path.write_text(json.dumps({**plain, "digest": canonical_digest(plain)}), "utf-8")
    with pytest.raises(CurveError, match="a whole number of 401 digits"):
        read_curve(path)


def test_in_a_curve_that_python_itself_would_not_read(tmp_path) -> None:
    path = tmp_path / "curve.json"
    path.write_text(f'{{"kind": {LONGER}}}', "utf-8")
    with pytest.raises(CurveError, match="a whole number of 5000 digits"):
        read_curve(path)


@pytest.mark.parametrize("key", ["useful_h", "n_nodes", "timeline_replication", "replay"])
def test_in_a_result(write, key) -> None:
    folder = write().path
    job = json.loads((folder / "job.json").read_text("utf-8"))
    (folder / "job.json").write_text(json.dumps({**job, key: ENDLESS}), "utf-8")
    with pytest.raises(ResultError, match="a whole number of 401 digits"):
        read_folder(folder, {})


@pytest.mark.parametrize("number", [str(ENDLESS), LONGER])
def test_in_a_journal(tmp_path, number) -> None:
    path = tmp_path / "runs.journal"
    path.write_text(f'{{"loss": 1}}\n{{"loss": {number}}}\n', "utf-8")
    with pytest.raises(ResultError, match=r"runs\.journal:2: is damaged"):
        read_journal(path)


@pytest.mark.parametrize("number", [str(ENDLESS), LONGER])
def test_in_a_log_of_faults(tmp_path, number) -> None:
    path = tmp_path / "log.json"
    event = (
        f'{{"node_id": 1, "event_time": {number}, "event_type": "fault_start", "fault_type": 1}}'
    )
    path.write_text(f"[\n{event}]", "utf-8")
    with pytest.raises(TraceError, match=r"log\.json:2: .*a whole number of"):
        read_infinitehbd(path)


def test_in_a_selection_and_in_a_sweep(tmp_path) -> None:
    (tmp_path / "selection.json").write_text(f'{{"limit": {{"most": {ENDLESS}}}}}', "utf-8")
    with pytest.raises(ResultError, match="a whole number of 401 digits"):
        read_selection(tmp_path)
    said = {"name": "a", "mode": "grid", "axes": [], "reference": "a", "useful_h": ENDLESS}
    (tmp_path / "sweep.json").write_text(json.dumps(said), "utf-8")
    with pytest.raises(ResultError, match="a whole number of 401 digits"):
        read_sweep(tmp_path)


def test_in_a_finished_point_of_a_sweep(tmp_path) -> None:
    store, body = PointStore(tmp_path), json.dumps({"n": ENDLESS})
    path = store.path("ab" * 32)
    path.parent.mkdir(parents=True)
    digest = hashlib.sha256(body.encode()).hexdigest()
    path.write_text(json.dumps({"sha256": digest, "body": body}), "utf-8")
    assert store.read("ab" * 32) is None  # it counts as damaged: the point is computed anew
    assert store.damaged == [path]
