"""Which curve applies to a scenario, and what happens to those that do not."""

import pytest

from cprsim.accuracy.curve import Response, StalenessCurve
from cprsim.accuracy.curve_file import write_curve
from cprsim.errors import ScenarioError
from cprsim.job.losses import Metric
from cprsim.results.identity import failures_digest, identity_of
from cprsim.scenario import curves as choosing
from cprsim.scenario.assemble import assemble
from cprsim.scenario.curves import chosen_curve, kernel_block
from cprsim.scenario.reading import load_scenario
from tests.making import SCENARIOS, small_scenario

SCENARIO = small_scenario("full, {strategy: cpr, target_pls: 0.1}")
CSV = "strategy,pls,loss,standard_error\npartial,0.3,0.003,0.0003\n"
LINE = Response.linear("partial", Metric.AUC, (0.02, 0.002), 0.1)


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load the scenario with more lines at its end; no curve is shipped but those of the test."""
    monkeypatch.setattr(choosing, "SHIPPED_CURVES", tmp_path / "shipped")
    choosing.shipped.cache_clear()
    (tmp_path / "mine.csv").write_text(CSV)
    path = tmp_path / "small.yaml"

    def _load(more="", *overrides):
        path.write_text(SCENARIO + more)
        return load_scenario(path, overrides)

    yield _load
    choosing.shipped.cache_clear()


@pytest.fixture
def ship(load, tmp_path):
    """Ship a curve of the kernel of a scenario."""

    def _ship(name, loaded):
        kernel = kernel_block(loaded.scenario.kernel)
        write_curve(tmp_path / "shipped" / f"{name}.json", StalenessCurve(name, (LINE,), kernel))

    return _ship


KERNEL = "kernel: {samples: 20000, seed: 7}\n"


def test_a_file_stands_relative_to_the_scenario(load):
    curve = assemble(load("accuracy: {curve: mine.csv}\n")).curve
    assert curve.of("partial", Metric.AUC).loss.tolist() == [0, 0.003]
    assert curve.origin == "your own, mine.csv"


def test_the_shipped_curve_of_the_kernel_applies_whatever_the_seed(load, ship):
    ship("small-linear", load(KERNEL))
    curve = chosen_curve(load("kernel: {seed: 8, samples: 20000}\n"))
    assert curve.name == "small-linear"
    assert curve.notes == ()
    assert "measured on this section `kernel`" in curve.origin
    assert chosen_curve(load("kernel: {samples: 20001}\n")) is None
    assert chosen_curve(load()) is None  # no word of what is trained
    named = "accuracy: {curve: small-linear}\n"
    assert chosen_curve(load(named)).notes == ()
    (note,) = chosen_curve(load("kernel: {samples: 30000, rate: 0.5}\n" + named)).notes
    assert "another model" in note
    assert "rate (0.15, here 0.5), samples (20000, here 30000)" in note


def test_a_curve_that_is_not_there_is_said_with_its_line(load, ship):
    ship("small-linear", load(KERNEL))
    with pytest.raises(ScenarioError) as caught:
        chosen_curve(load("accuracy:\n  curve: small-liner\n"))
    assert "small.yaml:9: accuracy.curve: `small-liner` is neither a shipped" in str(caught.value)
    assert "did you mean `small-linear`" in str(caught.value)
    with pytest.raises(ScenarioError, match=r"accuracy.curve: `none.csv` is not there"):
        chosen_curve(load("accuracy: {curve: none.csv}\n"))


def test_a_result_is_of_its_curve_and_its_failures_are_not(load, tmp_path):
    def of(csv):
        (tmp_path / "mine.csv").write_text(csv)
        loaded = load("accuracy: {curve: mine.csv}\n")
        return identity_of(loaded), failures_digest(loaded)

    (one, met), (other, met_too) = of(CSV), of(CSV.replace("0.003,", "0.004,"))
    assert one.digest != other.digest
    assert list(one.inputs) == ["curve mine.csv"]
    assert met == met_too


def test_an_unfit_curve_and_a_job_of_another_length_are_warned_of(load, tmp_path):
    named, job = "accuracy: {curve: bad.json}\n", "job={{samples: {}, throughput: 800 samples/h}}"
    unfit, manifest = ("3 seeds are too few",), {"n_samples": 40_000}
    curve = StalenessCurve("bad", (LINE,), {"samples": 1}, manifest=manifest, unfit=unfit)
    write_curve(tmp_path / "bad.json", curve)
    notes = chosen_curve(load(named, job.format(80_000))).notes
    assert notes[0] == "The curve bad is NOT FIT FOR USE: 3 seeds are too few."
    assert "was measured on runs of 40,000 samples, and this job trains on 80,000" in notes[1]
    assert chosen_curve(load(named, job.format(40_000))).notes == notes[:1]


def test_other_data_is_told_of_and_makes_another_result(load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text("as it was measured")
    manifest = {"trainer": {"files": {"options.file": "8f1b"}}}  # the digest of another file
    kernel = {"trainer": "mine:make", "options": {"file": "train.tsv"}, "shard_by": "rows"}
    curve = StalenessCurve("mine", (LINE,), kernel, manifest=manifest)
    write_curve(tmp_path / "mine.json", curve)
    own = "kernel: {trainer: 'mine:make', options: {file: train.tsv}}\n"
    own += "accuracy: {curve: mine.json}\n"
    (note,) = chosen_curve(load(own)).notes
    assert note == (
        "The curve mine was measured on other data than kernel.options.file holds: digests differ."
    )
    before = identity_of(load(own)).digest
    (tmp_path / "train.tsv").unlink()  # on another machine nothing is known
    assert chosen_curve(load(own)).notes == ()
    assert identity_of(load(own)).digest != before


@pytest.mark.parametrize("name", ["criteo-kaggle", "criteo-terabyte"])
@pytest.mark.parametrize(
    ("schedule", "overrides"),
    [("linear", []), ("constant", ["kernel.schedule=constant", "kernel.rate=0.1"])],
)
def test_the_scenarios_of_the_paper_have_their_curves(
    name: str, schedule: str, overrides: list[str]
) -> None:
    """At a rate that falls to 0, and at the paper's constant one."""
    curve = chosen_curve(load_scenario(SCENARIOS / f"{name}.yaml", overrides))
    assert curve.name == f"{name}-{schedule}"
    assert curve.notes == ()
