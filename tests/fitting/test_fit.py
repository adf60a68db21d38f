"""`fit` of a log of failures, or of saves and loads, and a scenario that runs on it."""

from pathlib import Path

import numpy as np
import pytest

import cprsim
from cprsim.commands.fit.figures import subject_figure
from cprsim.errors import CprsimError
from cprsim.logs.fit.report import fit_failures
from cprsim.pages.figures import save_figure
from tests.fitting.logs import assembled, log_of, write_log
from tests.making import call

SAVES = Path(__file__).parents[2] / "docs" / "examples" / "saves.csv"
COLUMNS = {"start": "begin", "node": "host"}
OPTIONS = ("--column", "start=begin", "--column", "node=host", "--time-unit", "d", "--bootstrap", 3)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Six nodes, gamma gaps of the cluster with shape 0.6 and mean 20 h, in days."""
    rng = np.random.default_rng(3)
    at = np.cumsum(rng.gamma(0.6, 20 / 0.6, 200)) / 24
    rows = [f"{t:.6f},rack{rng.integers(6)},{t + 0.1:.6f},disk" for t in at]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["begin,host,end,cause", *rows]) + "\n")
    return path


def test_frames_values_and_a_fragment_that_a_scenario_takes(log: Path) -> None:
    fitted = cprsim.fit(log, columns=COLUMNS, time_unit="d", bootstrap=3, nodes=10)
    parameters = fitted.frames["parameters"].set_index(["times", "family", "parameter"])
    shape = parameters.loc["gaps", "gamma", "shape"]
    assert shape["value_low"] < 0.6 < shape["value_high"]
    times = fitted.frames["times"].set_index("times")
    assert times.loc["uptimes", "n_censored"] in (9, 10)
    assert times.loc["gaps", "mean_h"] == parameters.loc["gaps", "gamma", "mean_h"]["value"]
    assert fitted.values["failures"]["kind"] == "correlated"
    assert fitted.values["job_failures"]["kind"] == "job"
    assert fitted.values["mtbf_h"].low < 20 < fitted.values["mtbf_h"].high
    assert list(fitted.figures) == ["failures", "gaps", "uptimes", "repairs"]
    nodes = [label.get_text() for label in fitted.plot("failures").axes[0].get_yticklabels()]
    assert {*nodes} == {f"rack{number}" for number in range(6)}  # of 10: the others never failed
    experiment = assembled(fitted.values["fragment"])
    assert 26 < experiment.failures.expected(experiment.cluster, 50.0).mtbf_h < 42


def test_a_log_of_saves_and_loads_is_recognised(tmp_path: Path) -> None:
    found = cprsim.fit(SAVES, bootstrap=9)
    (saves := tmp_path / "saves.csv").write_text(SAVES.read_text().replace("start", "begin", 1))
    written = tmp_path / "costs.yaml"
    called = call("fit", saves, "--column", "start=begin", "--bootstrap", 9, "--save", written)
    assert called.exit_code == 0, called.output
    assert written.read_text() == found.values["fragment"]
    assert assembled(written.read_text()).costs.save_stall is not None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--node", "rack9"], "no node 'rack9'"),
        (["--coalesce", "soon"], "--coalesce: "),
        (["--column", "start"], "'start' is no pair"),
        (["--period", "2024-01-01"], "--period: '2024-01-01' is no FROM..TO"),
        (["--format", "infinitehbd"], "not `infinitehbd`, as which the log is read (`format` says"),
        (["--format", "lanle"], "--format: there is no 'lanle'; known are "),
        (["--nodes", "2"], "2 nodes given, but the file names 6"),
        (["--nodes", "nowhere.csv"], "is neither a whole number nor a file, nor 'dates'"),
        (["--job-nodes", "31"], "a job of 31 nodes: the log has 6"),
        (["--format", "costs", "--nodes", "4"], "--nodes: belongs to logs of failures"),
    ],
)
def test_what_is_wrong_ends_in_one_clear_message(
    log: Path, arguments: list[str], complaint: str
) -> None:
    result = call("fit", log, *OPTIONS, *arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


def test_an_unknown_unit_is_refused(log: Path) -> None:
    for path in (log, SAVES):
        with pytest.raises(
            CprsimError, match="time_unit: 'xyz' should be 'ns', 'us', 'ms', 's', 'min', 'h'"
        ):
            cprsim.fit(path, time_unit="xyz")


@pytest.mark.long
def test_figures_are_drawn_of_outages_that_all_last_as_long(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)  # their ends differ by rounding so that no time lies between
    log = log_of(np.sort(rng.random(800)) * 8760, 8760.0, rng.integers(49, size=800), 49, 1.0)
    for subject in fit_failures(log, n_bootstrap=0).subjects:
        assert save_figure(subject_figure(subject, subject.name), tmp_path / subject.name, ["png"])


@pytest.mark.long
def test_the_page_of_a_large_log_is_small(tmp_path: Path) -> None:
    rng, page = np.random.default_rng(1), tmp_path / "page.html"
    log = log_of(rng.uniform(0, 9000, 12_000), 9000.0, rng.integers(400, size=12_000), 400, 0.1)
    path = write_log(tmp_path / "log.csv", log)
    shown = call("fit", path, "--time-unit", "h", "--bootstrap", 0, "--page", page)
    assert shown.exit_code == 0, shown.output
    assert page.stat().st_size < 1.5e6
