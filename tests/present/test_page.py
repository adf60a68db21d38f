"""What a page says, without a browser: numbers, escaping, the same bytes again, damage refused."""

from __future__ import annotations

import html
import json
import re
import shutil

import numpy as np
import pytest

from cprsim.curves.curve_file import CurveFile, write_curve
from cprsim.files import decode
from cprsim.present.html import render, whole
from cprsim.present.kinds import answer_of, together
from cprsim.present.run_sentences import answer
from cprsim.results.metrics import PERCENT, percentiles
from cprsim.results.run import load_result
from cprsim.results.words import percent
from cprsim.staleness.names import Metric
from cprsim.staleness.response import Response
from cprsim.studies.study import Summary
from tests.present.conftest import DRAWN, REPRODUCTION


def test_the_same_result_gives_the_same_bytes_wherever_it_lies(results, pages, cprsim, tmp_path):
    moved = tmp_path / "elsewhere" / results.first.name
    shutil.copytree(results.first, moved)
    out = tmp_path / "again.html"
    done = cprsim("report", moved, "--out", out, "--title", pages.title)
    assert done.exit_code == 0
    assert out.read_bytes() == pages.one.read_bytes()


def test_the_answer_stands_before_anything_else(results, pages):
    result = load_result(results.first)
    text = pages.one.read_text("utf-8")
    spreads = result.spreads()
    best = min(spreads, key=lambda name: spreads[name]["overhead_fraction"].mean)
    overhead = spreads[best]["overhead_fraction"]
    first = answer(result)[0]
    assert f"Use {best} " in first
    assert percent(overhead.mean) in first
    assert percent(overhead.high) in first
    assert whole(first) in html.unescape(text)
    assert text.index("answer") < text.index("<main")


def test_the_scenario_the_seed_and_the_versions_are_in_it(results, pages):
    text = html.unescape(pages.one.read_text("utf-8"))
    manifest = load_result(results.first).manifest
    assert (results.first / "scenario.yaml").read_text("utf-8") in text
    for said in (
        manifest["digest"],
        manifest["cprsim"]["source"],
        manifest["python"],
        f"numpy {manifest['libraries']['numpy']}",
        manifest["files"]["replications.parquet"]["sha256"],
    ):
        assert said in text
    assert manifest["host"]["platform"] not in text
    assert manifest["started_at"] not in text


def test_the_papers_results_say_how_they_are_known_and_what_limits_a_verdict(undrawn, monkeypatch):
    monkeypatch.setattr("cprsim.present.reproduce.chart_blocks", lambda *_: [])
    kept = sorted(REPRODUCTION.glob("*/summary.json"))
    assert len(kept) > len(DRAWN)
    text = html.unescape(render(together([answer_of(summary.parent) for summary in kept]).document))
    for summary in kept:
        read = decode(Summary, json.loads(summary.read_text("utf-8")))
        assert read.title in text
        for row in read.rows:
            cells = [row.quantity, row.paper, row.mark, row.ours, str(row.verdict)]
            assert all(html.unescape(whole(cell)) in text for cell in cells)
    (tally,) = re.findall(r"Of \d+ comparisons with the paper: [^<]*", text)[:1]
    assert "by construction" in tally


# ------------------------------------------------------------------------------ refusals


def test_a_damaged_result_is_refused_and_nothing_written(results, cprsim, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(results.first, copy)
    with (copy / "summary.csv").open("a") as file:
        file.write("more\n")
    out = tmp_path / "page.html"
    done = cprsim("report", results.second, copy, "--out", out)
    assert done.exit_code == 2
    assert done.output.strip() == f"cprsim: {copy} is damaged: summary.csv differs from its digest"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "is no folder, and no file of a staleness curve"),
        ("empty", "is no finished result: it has no manifest.json"),
        ("mine.json.runs", "holds the single runs of a measurement: name its curve, mine.json"),
    ],
)
def test_what_is_no_result_is_refused(cprsim, tmp_path, name, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine.json.runs").mkdir()
    (tmp_path / "mine.json.runs" / "measurement.json").write_text("{}", "utf-8")
    done = cprsim("report", tmp_path / name, "--out", tmp_path / "page.html")
    assert done.exit_code == 2
    assert done.output == f"cprsim: {tmp_path / name} {said}\n"


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    tmp_path, monkeypatch, results, cprsim, undrawn
):
    out = tmp_path / "page.html"
    out.write_text("old", "utf-8")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cprsim.files.os.fsync", full)
    done = cprsim("report", results.alone, "--out", out)
    assert done.exit_code == 1
    assert done.output == f"cprsim: can't write {out}: No space left on device\n"
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


# ------------------------------------------------------------------------------ answers


def test_what_stale_rows_cost_in_accuracy_is_said_where_a_curve_knows_it(
    results, cprsim, tmp_path, undrawn
):
    result = load_result(results.priced)
    lost = result.spreads()["cpr"]["auc_loss"]
    assert any(f"it loses {lost.mean:.5f} (" in said for said in answer(result))
    assert any("not in these hours" in said for said in answer(load_result(results.first)))
    out = tmp_path / "priced.html"
    assert cprsim("report", results.priced, "--out", out).exit_code == 0
    text = html.unescape(out.read_text("utf-8"))
    assert "AUC loss, ×10⁻⁴" in text
    assert "AUC loss by the staleness curve mine" in text


# ------------------------------------------------------------------------------ percentiles


def test_percentile_intervals_cover_what_they_should():
    generator = np.random.default_rng(1)
    n_samples, inside = 2000, np.zeros(99)
    for _ in range(n_samples):
        found = percentiles(generator.random(40))
        truth = PERCENT / 100
        low, high = np.nan_to_num(found.low, nan=0.0), np.nan_to_num(found.high, nan=1.0)
        inside += (low <= truth) & (truth <= high)
    error = np.sqrt(0.05 * 0.95 / n_samples)
    assert (inside / n_samples >= 0.95 - 4 * error).all(), (inside.min() / n_samples, error)


def test_a_percentile_that_the_sample_cannot_bound_has_no_bound():
    found = percentiles(np.arange(10.0))
    assert np.isnan(found.at(99).high)
    assert np.isnan(found.at(1).low)
    assert found.at(50).mean == 4.5
    assert found.at(50).low == 1.0  # ranks 2 and 9 of 10: P(2 <= Binomial(10, 1/2) <= 8) = 0.978
    assert found.at(50).high == 8.0


# ------------------------------------------------------------------------------ of a curve


def test_the_page_of_a_curve_says_what_a_hundredth_of_the_samples_costs(tmp_path):
    costs = Response.linear("partial", Metric.AUC, (0.02, 0.001), 0.3, degrees=7)
    path = tmp_path / "mine.json"
    write_curve(path, CurveFile("mine", (costs,), {"samples": 300_000}, "cprsim measure mine.yaml"))
    page = answer_of(path).document
    assert page.title == "What stale shards cost in accuracy: mine"
    fit, answer = page.answer
    assert fit == "The curve is fit for use."
    half = 2.364624 * 0.001 * 0.01  # Student's t of 7 degrees, 97.5 %
    assert f"AUC loss 0.000200 ± {half:.6f}" in answer
    text = html.unescape(render(page))
    for said in ("weighted PLS", "kernel.samples", "300000", "cprsim measure mine.yaml"):
        assert said in text
