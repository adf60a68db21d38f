"""Which curve applies to a scenario, and what happens to those that do not."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from cprsim.curves import choosing
from cprsim.curves.choosing import chosen_curve
from cprsim.curves.curve_file import CurveFile, write_curve
from cprsim.curves.trained_on import kernel_block
from cprsim.errors import ScenarioError
from cprsim.experiments.assemble import assemble
from cprsim.recovery.losses import Metric
from cprsim.results.identity import failures_digest, identity_of
from cprsim.scenario.reading import load_scenario
from cprsim.staleness.response import Response
from tests.making import small_scenario

SCENARIO = small_scenario("full, {strategy: cpr, target_pls: 0.1}")
CSV = "strategy,pls,loss,standard_error\npartial,0.3,0.003,0.0003\n"
LINE = Response.linear("partial", Metric.AUC, (0.02, 0.002), 0.1)


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load the scenario with more lines at its end; no curve is shipped but those of the test."""
    monkeypatch.setattr(choosing, "FOLDER", tmp_path / "shipped")
    choosing.shipped.cache_clear()
    (tmp_path / "mine.csv").write_text(CSV)
    path = tmp_path / "small.yaml"

    def _load(more=""):
        path.write_text(SCENARIO + more)
        return load_scenario(path)

    yield _load
    choosing.shipped.cache_clear()


@pytest.fixture
def ship(load, tmp_path):
    """Ship a curve of the kernel of a scenario."""

    def _ship(name, loaded):
        kernel = kernel_block(loaded.scenario.kernel)
        write_curve(tmp_path / "shipped" / f"{name}.json", CurveFile(name, (LINE,), kernel))

    return _ship


KERNEL = "kernel: {samples: 20000, seed: 7}\n"


def test_a_file_stands_relative_to_the_scenario(load):
    curve = assemble(load("accuracy: {curve: mine.csv}\n")).curve
    assert curve is not None
    assert curve.of("partial", Metric.AUC).loss.tolist() == [0, 0.003]
    assert curve.origin == "your own, mine.csv"


def test_the_shipped_curve_of_the_kernel_applies_whatever_the_seed(load, ship):
    ship("small-linear", load(KERNEL))
    curve = chosen_curve(load("kernel: {seed: 8, samples: 20000}\n"))
    assert curve is not None
    assert curve.name == "small-linear"
    assert "measured on this section `kernel`" in curve.origin
    assert chosen_curve(load("kernel: {samples: 20001}\n")) is None
    assert chosen_curve(load()) is None  # no word of what is trained


def test_a_curve_of_another_model_is_named_with_a_warning(load, ship):
    ship("small-linear", load(KERNEL))
    named = "accuracy: {curve: small-linear}\n"
    assert chosen_curve(load(named)).notes == ()
    assert chosen_curve(load(KERNEL + named)).notes == ()
    (note,) = chosen_curve(load("kernel: {samples: 30000, rate: 0.5}\n" + named)).notes
    assert "another model" in note
    assert "rate (0.15, here 0.5), samples (20000, here 30000)" in note


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"framework": "numpy", "numpy": "0.1+cpu"}, "was measured with numpy 0.1; here is "),
        ({"framework": "numpy", "numpy": version("numpy") + "+cpu"}, ""),
        ({"framework": "not-installed-here", "not-installed-here": "1.0"}, ""),
        ({"framework": "numpy"}, ""),
        ({"framework": ["numpy"]}, ""),
        ({}, ""),
    ],
)
def test_another_version_of_the_framework_is_said(load, tmp_path, versions, said):
    own = load("kernel: {trainer: 'some:make'}\naccuracy: {curve: mine.json}\n")
    kernel = kernel_block(own.scenario.kernel)
    write_curve(
        tmp_path / "mine.json", CurveFile("mine", (LINE,), kernel, manifest={"trainer": versions})
    )
    notes = chosen_curve(own).notes
    assert [said in note for note in notes] == [True] * bool(said)


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


def test_a_curve_that_is_not_fit_for_use_is_said_to_be_so(load, tmp_path):
    unfit = CurveFile("bad", (LINE,), {"samples": 1}, unfit=("3 seeds are too few",))
    write_curve(tmp_path / "bad.json", unfit)
    curve = chosen_curve(load("accuracy: {curve: bad.json}\n"))
    assert curve.unfit == ("3 seeds are too few",)
    assert "The curve bad is NOT FIT FOR USE: 3 seeds are too few." in curve.notes
