"""A curve says what it was measured on: how long, and on which data."""

from __future__ import annotations

from pathlib import Path

from cprsim.curves.choosing import chosen_curve
from cprsim.curves.curve_file import CurveFile, write_curve
from cprsim.recovery.losses import Metric
from cprsim.results.identity import identity_of
from cprsim.scenario.reading import load_scenario
from cprsim.staleness.response import Response

JOB = """
job: {samples: SAMPLES, throughput: 800 samples/h}
cluster: {trainers: 4, emb_ps: 4}
failures: {kind: job, family: exponential, mtbf: 14 h}
costs: {save: 5 min, load: 5 min, detect: 0 s, reschedule: 1 min}
recovery: [full, partial]
accuracy: {curve: mine.json, max_auc_loss: 0.01}
simulation: {seed: 1, replications: 100}
"""
LINES = tuple(
    Response.linear("partial", metric, (0.05, 0.005), 0.4, degrees=7.0)
    for metric in (Metric.AUC, Metric.LOG_LOSS)
)


def test_a_job_of_another_length_is_warned_of(tmp_path: Path) -> None:
    manifest = {"n_samples": 40_000, "seeds": list(range(8))}
    curve = CurveFile("mine", LINES, {"samples": 1}, "cprsim measure", manifest)
    write_curve(tmp_path / "mine.json", curve)
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("SAMPLES", "80000"))
    (note,) = chosen_curve(load_scenario(path)).notes
    assert "was measured on runs of 40,000 samples, and this job trains on 80,000" in note
    path.write_text(JOB.replace("SAMPLES", "40000"))
    assert chosen_curve(load_scenario(path)).notes == ()


def test_other_data_is_told_of_and_makes_another_result(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text("as it was measured")
    digest = "8f1b"  # of another file
    kernel = {"trainer": "mine:make", "options": {"file": "train.tsv"}, "shard_by": "rows"}
    manifest = {"trainer": {"files": {"options.file": digest}}}
    curve = CurveFile("mine", LINES, kernel, "cprsim measure", manifest)
    write_curve(tmp_path / "mine.json", curve)
    path = tmp_path / "job.yaml"
    own = "kernel: {trainer: 'mine:make', options: {file: train.tsv}}\n"
    path.write_text(JOB.replace("SAMPLES", "40000") + own)
    (note,) = chosen_curve(load_scenario(path)).notes
    assert note == (
        "The curve mine was measured on other data than kernel.options.file holds: digests differ."
    )
    before = identity_of(load_scenario(path)).digest
    (tmp_path / "train.tsv").unlink()  # on another machine nothing is known
    assert chosen_curve(load_scenario(path)).notes == ()
    assert identity_of(load_scenario(path)).digest != before
