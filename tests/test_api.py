"""``import cprsim``: names and signatures are held, each function does what its command does."""

import doctest
import gc
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cprsim
from cprsim.cli.app import docstring_of
from cprsim.commands import NAMES
from cprsim.errors import ParameterError, ResultError, TraceError
from tests.making import call, small_scenario, undrawing
from tests.measuring.conftest import SCENARIO as MEASURED

COMMAND_NAMES = sorted(name for name in cprsim.__all__ if name.islower())
WITHOUT_EXAMPLES = ("calibrate", "explore", "measure", "rehearse", "train")  # pages have theirs


# --------------------------------------------------------------------------- what there is


def test_importing_is_light() -> None:
    code = (
        "import sys; before = set(sys.modules); import cprsim, cprsim.events; dir(cprsim); "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names) - {'cprsim'}))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_a_run_loads_no_system_and_no_source_of_failures_that_it_does_not_have() -> None:
    code = (
        "import sys, cprsim; cprsim.run('quickstart', replications=1); print(*sys.modules); "
        "cprsim.load('llm', ['recovery=[gemini]']); print(*sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, with_gemini = said.stdout.splitlines()
    assert "cprsim.failures.clocks" in loaded
    unneeded = ("cprsim.recovery.systems.", "cprsim.failures.replay", "cprsim.failures.injected")
    assert not [name for name in unneeded if name in loaded]
    assert "cprsim.recovery.systems.memory" in with_gemini


def test_the_public_names_are_there() -> None:  # which they are, the golden `numbers` holds
    assert set(cprsim.__all__) == set(dir(cprsim))
    assert len(NAMES) == 18
    assert all(getattr(cprsim, name) for name in cprsim.__all__)
    with pytest.raises(AttributeError, match="no attribute 'predict'"):
        _ = cprsim.predict  # type: ignore[attr-defined]
    without = [name for name in NAMES if "--page" not in call(name, "--help").output]
    assert without == ["report"]  # whose '--out' is the page


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_the_examples_of_a_function_run(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = doctest.DocTestFinder(recurse=False).find(
        inspect.unwrap(getattr(cprsim, name)), name, globs={"cprsim": cprsim, "Path": Path}
    )
    result = doctest.DocTestRunner().run(found, out=(said := []).append)
    assert result.failed == 0, "".join(said)
    assert result.attempted > 0 or name in WITHOUT_EXAMPLES


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_a_function_says_what_it_takes_returns_and_raises(name: str) -> None:
    function = getattr(cprsim, name)
    summary, *_ = docstring_of(function)
    text, signature = inspect.getdoc(function), inspect.signature(function)
    assert all(f"\n\n{part}\n---" in text for part in ("Returns", "Raises"))
    assert "CliOption" not in str(signature)  # types are those that a person knows
    documented = text.partition("Parameters")[2].partition("Returns")[0]
    assert [one for one in signature.parameters if one not in documented] == []
    assert len(summary) <= 66  # a line of 80 columns beside its name


# --------------------------------------------------------------------------- scenarios


def test_a_scenario_is_a_name_a_path_text_or_a_mapping(tmp_path: Path) -> None:
    text = small_scenario()
    (tmp_path / "small.yaml").write_text(text, "utf-8")
    by_path = cprsim.load(tmp_path / "small.yaml")
    assert by_path.strategies == ("full", "partial", "cpr")
    again = (cprsim.load(text), cprsim.load(by_path.settings), cprsim.load(by_path))
    assert {one.text for one in again} == {by_path.text}
    assert cprsim.load("quickstart").name == "quickstart"


def test_overrides_are_a_mapping_or_texts() -> None:
    scenario = cprsim.load(small_scenario())
    listed = scenario.changed(["costs.save=90 s", "simulation.seed=4"])
    given = {
        "costs": {**scenario.settings["costs"], "save": "90 s"},
        "simulation.seed": np.int64(4),
    }
    assert scenario.changed(given).text == listed.text != scenario.text
    with pytest.raises(ParameterError, match=r"overrides: .* should be a valid dictionary"):
        scenario.changed("costs.save=90 s")
    with pytest.raises(ParameterError, match=r"costs\.save: can't stand in a scenario"):
        scenario.changed({"costs.save": object()})


def test_a_key_with_a_unit_of_time_takes_numbers_and_arrays() -> None:
    changed = cprsim.load("quickstart", {"costs.save_s": np.float64(90), "failures.mtbf_h": 20})
    assert changed.text == cprsim.load("quickstart", ["costs.save=90 s", "failures.mtbf=20 h"]).text
    over = {
        "failures.mtbf_h": np.array([4.0, 16.0]),
        "recovery.full.interval_min": range(30, 91, 30),
    }
    few = {"replications": 50, "workers": 1}
    points = cprsim.sweep("quickstart", over, {"recovery": ["full"]}, **few).frames["points"]
    assert sorted({*points["failures.mtbf_h"]}) == [4, 16]
    assert sorted({*points["recovery.full.interval_min"]}) == [30, 60, 90]
    with pytest.raises(ParameterError, match=r"failures\.mtbf_h: can't stand in a scenario"):
        cprsim.load("quickstart", {"failures.mtbf_h": [object()]})
    with pytest.raises(cprsim.CprsimError, match=r"failures\.speed: .*unknown key"):
        cprsim.load("quickstart", {"failures.speed_h": 3})


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("load", {"scenario": None}, "scenario: None should be an instance of Scenario or a valid"),
    ("load", {}, "scenario: Missing required argument"),
    ("load", {"scenario": "name: small\njob:\n  useful: soon\n"}, r"scenario\.yaml:3: .*useful"),
    ("load", {"scenario": "quickstart", "overrides": {"costs.save": "soon"}},
     r"^overrides costs\.save: "),
    ("load", {"scenario": {"name": "small", "job": {"useful": "soon"}}},
     r"(?m)^scenario: job\.useful: `soon` "),
    ("run", {"scenario": "quickstrat"}, "lists the names of those that come with cprsim"),
    ("run", {"scenario": "quickstart", "replay": "best"}, "replay: 'best' is neither"),
    ("sweep", {"scenario": "quickstart", "over": {"costs.save": 5}}, "over costs.save: .*bare"),
    ("sweep", {"scenario": "quickstart", "over": {}, "precision": 5}, "precision: `500 %` is out"),
    ("sweep", {"scenario": "quickstart", "replications": 3, "precision": 0.1}, "one of the two"),
    ("select", {"scenario": "quickstart"}, "with one of max_auc_loss, max_log_loss, max_loss"),
    ("select", {"scenario": "quickstart", "max_loss": {"auc": 0.1, "ne": 0.1}}, "at most 1 item"),
    ("report", {}, "results: name at least one"),
    ("read", {"result": object()}, "result: .* should be a valid string"),
    ("systems", {"scenario": "quickstart", "only": "full"}, "only: 'str' instances are not"),
    ("fit", {"log": "x", "repair": "soon"}, "repair: 'soon' is not a time: write"),
    ("measure", {"scenario": "quickstart", "budget": "600"}, "^budget: '600' has no unit"),
    ("ledger", {}, "at least one"),
    ("validate", {}, "schema"),
    ("init", {}, "^name a kind and nodes, or a scenario to copy"),
    ("fleet", {"workers": 0}, "workers: 0 should be greater than"),
    ("measure", {"workers": 10**6}, "workers: 1000000 should be less than"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "asked", "message"), REFUSED)
def test_an_argument_that_can_t_be_is_refused_by_its_name(
    name: str, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(cprsim.CprsimError, match=message):
        getattr(cprsim, name)(**asked)


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_what_no_argument_can_be_is_refused_by_its_name(name: str) -> None:
    function = getattr(cprsim, name)
    for one in inspect.signature(function).parameters.values():
        if one.kind is not one.VAR_POSITIONAL and one.name != "curve":
            with pytest.raises(cprsim.CprsimError, match=rf"(?m)^{one.name}.*<object object"):
                function(**{one.name: object()})


# --------------------------------------------------------------------------- what is kept


FILES = {
    "job.json", "losses.parquet", "overhead.png", "overhead.svg", "percentiles.png",
    "percentiles.svg", "replications.parquet", "scenario.yaml", "summary.csv", "timeline.parquet",
    "timeline.png", "timeline.svg",
}  # fmt: skip


def test_a_run_is_what_the_command_makes(scenario: Path, tmp_path: Path) -> None:
    made = cprsim.run(small_scenario(), folder=tmp_path / "ours")
    called = call("run", scenario, "--out", tmp_path / "theirs", "--json")
    theirs, ours = Path(json.loads(called.stdout)["folder"]), made.folder
    assert ours.name == theirs.name
    files = [json.loads((one / "manifest.json").read_text())["files"] for one in (ours, theirs)]
    assert files[0] == files[1]
    assert files[0].keys() == FILES
    found = cprsim.read(ours)
    pd.testing.assert_frame_equal(found.frames["strategies"], made.frames["strategies"])
    assert cprsim.read(tmp_path / "ours").folder == ours
    with undrawing():
        replayed = cprsim.run(small_scenario(), replay=3, folder=tmp_path / "ours").folder
    with pytest.raises(ResultError, match=f"name one in it, such as .*{replayed.name}"):
        cprsim.read(tmp_path / "ours")


def test_figures_are_found_by_name() -> None:
    made = cprsim.run(small_scenario())
    assert list(made.figures) == ["overhead", "percentiles", "timeline"]
    assert made.plot("timeline")._repr_png_()[:4] == b"\x89PNG"  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match="there are: overhead, percentiles, timeline"):
        made.plot("overheads")


def test_nothing_is_kept_unless_a_folder_is_named(tmp_path: Path) -> None:
    run = cprsim.run(small_scenario(), replay=3)
    lies = run.stored.path
    assert run.folder is None
    assert lies.is_dir()
    del run
    gc.collect()
    assert not lies.exists()
    with pytest.raises(ParameterError, match="neither a number from 0 to"):
        cprsim.run(small_scenario(), replay="best", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*(are few|hardly learned)")
def test_a_measurement_gives_a_curve(tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    named = {"file": file, "seeds": 3, "workers": 1, "strategies": ["partial", "mfu"]}
    curve = cprsim.measure(MEASURED, {"kernel.samples": 2000}, **named)
    assert "partial" in set(curve.frames["strategies"]["strategy"])
    assert not curve.values["fit_for_use"]
    assert cprsim.read(file).to_json() == curve.to_json()


# --------------------------------------------------------------------------- logs


def test_a_fit_has_intervals_and_a_section_that_runs(tmp_path: Path) -> None:
    at_h = np.cumsum(np.random.default_rng(5).exponential(40.0, 30))
    rows = [f"n{1 + (i % 3 == 0)},{at:.3f},{at + 0.5:.3f}" for i, at in enumerate(at_h)]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["node,start,end", *rows]) + "\n", "utf-8")
    fitted = cprsim.fit(log, time_unit="h", nodes=4, bootstrap=0)
    assert fitted.values["mtbf_h"].low < 40 < fitted.values["mtbf_h"].high
    assert {"gaps", "repairs"} <= set(fitted.frames["families"]["times"])
    assert fitted.values["job_failures"]["kind"] == "job"
    said = {"failures": fitted.values["failures"], "cluster.emb_ps": 2}
    run = cprsim.run(small_scenario("full"), said, replications=3)
    assert run.frames["strategies"]["replications"].eq(3).all()
    with pytest.raises(TraceError):
        cprsim.fit(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (cprsim.validate, {"scenario": 300 * "x"}),
        (cprsim.read, {"result": 300 * "x"}),
        (cprsim.fit, {"log": "a\0b"}),
        (cprsim.run, {"scenario": "quickstart", "folder": "a\0b"}),
        (cprsim.run, {"scenario": "quickstart", "folder": "\udcff"}),
        (cprsim.report, {"result": "x", "out": "\ud800"}),
    ],
)
def test_text_that_names_no_file_is_an_error_of_ours(function, arguments) -> None:
    with pytest.raises(cprsim.CprsimError):
        function(**arguments)
