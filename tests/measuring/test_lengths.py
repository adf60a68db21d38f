"""A curve says what it was measured on: how long, on which data; and is refused beyond."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cprsim
from cprsim.api.measure import prepared
from cprsim.curves.choosing import chosen_curve
from cprsim.curves.curve_file import CurveFile, read_curve, write_curve
from cprsim.errors import ParameterError
from cprsim.measuring.curve import curve_file
from cprsim.measuring.lengths import read_shorter, sentences_of_lengths, with_lengths
from cprsim.measuring.measure import measure
from cprsim.results.identity import identity_of
from cprsim.scenario.reading import load_scenario
from cprsim.staleness.length import LengthLaw
from cprsim.staleness.names import Metric
from cprsim.staleness.response import Response
from tests.making import call
from tests.measuring.conftest import SCENARIO, request_in

FEW = pytest.mark.filterwarnings("ignore:.* clicks in the test are few")
LENGTHS = np.array([10_000.0, 20_000.0, 40_000.0])
JOB = """
job: {samples: SAMPLES, throughput: 800 samples/h}
cluster: {trainers: 4, emb_ps: 4}
failures: {kind: job, family: exponential, mtbf: 14 h}
costs: {save: 5 min, load: 5 min, detect: 0 s, reschedule: 1 min}
recovery: [full, partial]
accuracy: {curve: mine.json, max_auc_loss: 0.01}
simulation: {seed: 1, replications: 100}
"""


def law(exponent: float = 0.5, last: float = 1.0, noise: float = 0.02) -> LengthLaw:
    """Slopes of a power law, the last one off it by a factor; seeds scatter about all alike."""
    slopes = 0.02 * (LENGTHS / LENGTHS[0]) ** exponent * [1, 1, last]
    seeds = 1 + noise * np.random.default_rng(1).normal(size=(3, 8))
    return LengthLaw(LENGTHS, slopes[:, None] * seeds)


# --------------------------------------------------------------------------- the law


def test_a_law_that_predicts_the_longest_is_followed_beyond() -> None:
    found = law()
    ratio, low, high = found.measured_over_predicted()
    assert low < 1 < high
    assert ratio == pytest.approx(1, abs=0.05)
    assert found.why_not(80_000) == ""
    factor, without_each = found.factors(80_000)
    assert factor == pytest.approx(2**0.5, rel=0.02)
    assert without_each.shape == (8,)
    assert found.factors(40_000)[0] == pytest.approx(1)
    assert found.factors(20_000)[0] == pytest.approx(2**-0.5, rel=0.02)
    assert "not followed beyond 160,000" in found.why_not(161_000)
    assert "the shortest run" in found.why_not(9_000)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (law(last=0.7), "does not predict the longest (measured over predicted is 0.7"),
        (law(noise=0.6), "can't be told"),
        (law(exponent=1, last=-1), "can't be told"),
    ],
)
def test_a_law_that_fails_or_can_not_be_told_is_not_followed(found, why) -> None:
    assert why in found.why_not(41_000)


def test_the_interval_of_a_law_that_holds_has_the_longest_in_it_as_often_as_it_says() -> None:
    rng, held = np.random.default_rng(5), 0
    slopes = 0.02 * (LENGTHS / LENGTHS[0]) ** 0.7
    for _ in range(400):
        by_seed = slopes[:, None] * (1 + 0.15 * rng.normal(size=(3, 8)))
        _, low, high = LengthLaw(LENGTHS, by_seed).measured_over_predicted()
        held += low <= 1 <= high
    share, error = held / 400, (0.95 * 0.05 / 400) ** 0.5
    assert abs(share - 0.95) <= 4 * error, (share, error)


# --------------------------------------------------------------------------- what applies it


def curve_with(found: LengthLaw | None) -> CurveFile:
    lines = tuple(
        Response.linear("partial", metric, (0.05, 0.005), 0.4, degrees=7.0)
        for metric in (Metric.AUC, Metric.LOG_LOSS)
    )
    checks = {}
    if found is not None:
        by_seed = {one.metric.value: found.by_seed.tolist() for one in lines}
        checks = {"lengths": {"n_samples": found.n_samples.tolist(), "by_seed": by_seed}}
    manifest = {"n_samples": 40_000, "seeds": list(range(8))}
    return CurveFile("mine", lines, {"samples": 1}, "cprsim measure", manifest, checks)


@pytest.fixture
def job(tmp_path: Path):
    def make(n_samples: int, found: LengthLaw | None) -> Path:
        write_curve(tmp_path / "mine.json", curve_with(found))
        path = tmp_path / "job.yaml"
        path.write_text(JOB.replace("SAMPLES", str(n_samples)))
        return path

    return make


def test_a_job_of_another_length_is_warned_of_where_one_length_was_measured(job) -> None:
    (note,) = chosen_curve(load_scenario(job(80_000, None))).notes
    assert "was measured on runs of 40,000 samples, and this job trains on 80,000" in note
    assert chosen_curve(load_scenario(job(40_000, None))).notes == ()


def test_losses_follow_the_law_where_it_holds(job) -> None:
    curve = chosen_curve(load_scenario(job(80_000, law())))
    line = curve.of("partial", Metric.AUC)
    assert line.loss[-1] == pytest.approx(2**0.5 * 0.05 * 0.4, rel=0.02)
    assert line.standard_error[-1] > law().factors(80_000)[0] * 0.005 * 0.4
    assert "1.4" in curve.notes[0]
    assert curve.why_unfit(Metric.AUC) == ()


def test_select_refuses_beyond_what_was_measured(job, tmp_path: Path) -> None:
    path = job(80_000, law(last=0.7))
    few = ("--replications", 200, "--out", tmp_path / "out")
    done = call("select", path, *few)
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "this job trains on 80,000 samples, and losses of AUC were measured on up to" in said
    assert "measure longer runs, or give the job's length as `useful` alone" in said
    assert not (tmp_path / "out").exists()
    within = call("select", job(30_000, law(last=0.7)), *few)
    assert within.exit_code == 0, within.output
    going_on = path.read_text().replace("samples: 30000, throughput: 800 samples/h", "useful: 90 h")
    path.write_text(going_on)
    assert call("select", path, *few).exit_code == 0


# --------------------------------------------------------------------------- measured


def measured_at(folder: Path, n_samples: int, *shorter: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "small.yaml").write_text(SCENARIO.replace("samples: 6000", f"samples: {n_samples}"))
    request = request_in(folder / f"runs-{n_samples}", folder / "small.yaml")
    request, _ = prepared(request)
    others = read_shorter(shorter, request)
    curve = curve_file(measure(request), request, str(n_samples), "cprsim measure")
    path = folder / f"{n_samples}.json"
    write_curve(path, with_lengths(curve, others))
    return path


@pytest.mark.long
@FEW
def test_the_built_in_model_at_three_lengths(tmp_path: Path) -> None:
    short, middle = measured_at(tmp_path, 3000), measured_at(tmp_path, 4500)
    curve = read_curve(measured_at(tmp_path, 6000, middle, short))
    assert curve.manifest["n_samples"] == curve.n_samples == 6000 * 6 // 7
    found = curve.lengths[Metric.AUC]
    assert found.n_samples.tolist() == [read_curve(one).n_samples for one in (short, middle)] + [
        curve.n_samples
    ]
    of_short = read_curve(short).checks["auc"]["slopes"]["partial"]["by_seed"]
    assert found.by_seed[0].tolist() == of_short
    assert "AUC" in sentences_of_lengths(curve)[0]  # three seeds may be too few for a law


@FEW
def test_curves_that_are_not_shorter_runs_of_the_model_are_refused(scenario, tmp_path) -> None:
    one = curve_with(None)
    loaded = load_scenario(scenario)
    request = replace(request_in(tmp_path / "runs", scenario), loaded=loaded, n_samples=40_000)
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, n_samples in zip(paths, (10_000, 20_000), strict=True):
        manifest = {"n_samples": n_samples, "seeds": [1, 2, 3]}
        write_curve(path, replace(one, name=path.stem, manifest=manifest, kernel={"samples": 5}))
    with pytest.raises(ParameterError, match=r"a is not of this model at another length: .* batch"):
        read_shorter(paths, request)
    with pytest.raises(ParameterError, match="name the curves of two shorter lengths"):
        read_shorter(paths[:1], request)
    with pytest.raises(ParameterError, match="shorter: name the curves of two shorter lengths"):
        cprsim.measure(scenario, seeds=3, shorter=paths[:1], file=tmp_path / "mine.json")
    assert not (tmp_path / "mine.json").exists()
    with pytest.raises(ParameterError, match="have to ascend"):
        read_shorter(paths, replace(request, n_samples=20_000))
    with pytest.raises(ParameterError, match=r"was measured on seeds \[1, 2, 3\], and this is on"):
        read_shorter(paths, replace(request, n_seeds=4))


# --------------------------------------------------------------------------- data


def test_other_data_is_told_of_and_makes_another_result(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text("as it was measured")
    digest = "8f1b"  # of another file
    kernel = {"trainer": "mine:make", "options": {"file": "train.tsv"}, "shard_by": "rows"}
    manifest = {"trainer": {"files": {"options.file": digest}}}
    curve = replace(curve_with(None), kernel=kernel, manifest=manifest)
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
