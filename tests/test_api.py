"""``import cprsim``: names and signatures are held, each function does what its command does."""

from __future__ import annotations

import gc
import inspect
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import cprsim
from cprsim import events
from cprsim.curves import read_curve
from cprsim.errors import ParameterError, ResultError, ScenarioError, TraceError
from tests.history.exporting import write_events
from tests.history.making import told
from tests.making import call, small_scenario
from tests.measuring.conftest import SCENARIO as MEASURED

ROOT = Path(__file__).parents[1]
EVIL = "<script>alert(1)</script>"

SIGNATURES = {  # what may be left out ends in =
    "load": "scenario overrides=",
    "run": "scenario overrides= * seed= replications= replay= folder=",
    "sweep": "scenario over= overrides= * mode= seed= replications= precision= workers= folder=",
    "select": "scenario overrides= * max_auc_loss= max_log_loss= target_pls= max_loss= "
    "confidence= risk= curve= seed= replications= folder=",
    "fit": "log * format= nodes= node_dates= system= period= columns= time_unit= "
    "date_format= tz= repair= coalesce= together= by= reach= cause= node= age= "
    "job_nodes= bootstrap= seed= circle=",
    "measure": "scenario overrides= * file= seeds= precision= budget= strategies= metrics= "
    "shorter= plan= runs= limit= pilot= workers= dask= allow_code=",
    "train": "scenario overrides= * replay= allow_code=",
    "fleet": "scenario over= overrides= * seed= histories= workers= folder=",
    "compare": "a b",
    "systems": "scenario= overrides= * explain= listing= only= available= fixed= seed= "
    "replications= folder=",
    "backtest": "*logs recovery nodes= overrides= draws= time_unit= saves_every= seed=",
    "calibrate": "*logs nodes= save= bootstrap= time_unit= saves_every= seed=",
    "init": "file= * kind= nodes= failures= saves= state= storage= length= copy= listed= force=",
    "validate": "scenario= overrides= * schema=",
    "ledger": "*logs time_unit= seed=",
    "read": "result",
}
SHOWN = {"name", "document", "report"}
ANSWER = SHOWN | {"table", "figure", "figures"}
KEPT = ANSWER | {"folder", "save"}
MEMBERS = {
    "Scenario": SHOWN | {"changed", "curve", "settings", "strategies", "text"},
    "Run": KEPT | {"events", "means", "rows", "strategies", "warnings"},
    "Sweep": KEPT | {"axes", "cheapest", "of", "strategies"},
    "Fleet": KEPT | {"best", "currency", "saves"},
    "Selection": KEPT | {"interval_h", "recommended", "recovery"},
    "Fit": ANSWER
    | {"apart", "circle", "failures", "fragment", "job_failures", "mtbf_h", "scopes", "simpler"}
    | {"warnings"},
    "Difference": ANSWER | {"is_paired"},
    "SystemsComparison": KEPT | {"best", "cant_be_told", "left_out", "recovery"},
    "Systems": ANSWER | {"explain", "names"},
    "Ledger": ANSWER | {"hours", "incidents", "inferred", "jobs"},
    "Reproduction": ANSWER,
}


# --------------------------------------------------------------------------- what there is


def test_importing_takes_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import cprsim, cprsim.events; dir(cprsim); "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names) - {'cprsim'}))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_the_public_names_are_held() -> None:
    assert set(cprsim.__all__) == {*SIGNATURES, *MEMBERS, "CprsimError"}
    assert set(cprsim.__all__) <= set(dir(cprsim))
    with pytest.raises(AttributeError, match="no attribute 'predict'"):
        _ = cprsim.predict  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_signature_is_held(name: str) -> None:
    assert _plain_signature(name) == SIGNATURES[name]


def _plain_signature(name: str) -> str:
    """The names of its parameters, in order."""
    words: list[str] = []
    for one in inspect.signature(getattr(cprsim, name)).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not any(word[0] == "*" for word in words):
            words.append("*")
        starred = "*" * (one.kind is one.VAR_POSITIONAL)
        words.append(starred + one.name + "=" * (one.default is not one.empty))
    return " ".join(words)


@pytest.mark.parametrize("name", MEMBERS)
def test_the_members_of_an_answer_are_held_and_documented(name: str) -> None:
    kind = getattr(cprsim, name)
    public = {member for member in dir(kind) if not member.startswith("_")} - {"n_sections"}
    assert public == MEMBERS[name]
    assert all(inspect.getdoc(getattr(kind, member)) for member in public)


def test_every_function_says_what_it_takes_and_raises() -> None:
    for name in SIGNATURES:
        function = getattr(cprsim, name)
        said = inspect.getdoc(function) or ""
        assert "Raises" in said
        assert [one for one in inspect.signature(function).parameters if one not in said] == []


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


def test_what_is_wrong_is_raised_with_its_place() -> None:
    with pytest.raises(ScenarioError, match=r"scenario\.yaml:3: .*useful"):
        cprsim.load("name: small\njob:\n  useful: soon\n")
    with pytest.raises(ScenarioError, match=r"^override costs\.save: "):
        cprsim.load("quickstart", {"costs.save": "soon"})
    with pytest.raises(ScenarioError, match="lists the names of those that come with cprsim"):
        cprsim.run("quickstrat")
    with pytest.raises(cprsim.CprsimError, match="one of them"):
        cprsim.sweep("quickstart", {}, replications=3, precision=0.1)
    with pytest.raises(ScenarioError, match=r"(?m)^scenario: job\.useful: `soon` "):
        cprsim.load({"name": "small", "job": {"useful": "soon"}})


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("load", {"scenario": None}, "scenario: None should be an instance of Scenario or a valid"),
    ("load", {"scenario": "quickstart", "overrides": [1]}, "overrides: 1 should be a valid string"),
    ("load", {}, "scenario: Missing required argument"),
    ("run", {"scenario": -1}, "scenario: -1 should be an instance of Scenario"),
    ("run", {"scenario": "quickstart", "seed": "x"}, "seed: 'x' should be a valid integer"),
    ("run", {"scenario": "quickstart", "replay": "best"}, "replay: 'best' is neither"),
    ("sweep", {"scenario": "quickstart", "over": {"costs.save": 5}}, "over: 5 should be a valid"),
    ("sweep", {"scenario": "quickstart", "mode": "x"}, "mode: 'x' should be 'grid' or"),
    ("sweep", {"scenario": "quickstart", "over": {}, "precision": 5}, "precision: `500 %` is out"),
    ("select", {"scenario": "quickstart"}, "with one of max_auc_loss, max_log_loss, max_loss"),
    (
        "select",
        {"scenario": "quickstart", "max_loss": {"auc": 0.1, "ne": 0.1}},
        "max_loss: .* should have at most 1 item",
    ),
    ("fleet", {"scenario": "planning", "workers": 0}, "workers: 0 should be greater than or"),
    (
        "compare",
        {"a": None, "b": []},
        r"a: None should be .*\nb: \[\] should be an instance of Run",
    ),
    ("systems", {"scenario": "quickstart", "only": "full"}, "only: 'str' instances are not"),
    ("systems", {"overrides": {"job.useful": "3 h"}}, "name a scenario"),
    ("systems", {"scenario": float("nan")}, "scenario: nan should be an instance of Scenario"),
    ("fit", {"log": "x", "bootstrap": -1}, "bootstrap: -1 should be greater than or equal to 0"),
    ("fit", {"log": "x", "age": "old"}, "age: 'old' should be 'new' or 'unknown'"),
    ("fit", {"log": "x", "coalesce": 10}, "coalesce: 10 should be a valid string"),
    ("fit", {"log": "x", "repair": "soon"}, "repair: 'soon' is not a time: write"),
    ("measure", {"scenario": "quickstart", "budget": 600}, "budget: 600 should be a valid string"),
    ("measure", {"scenario": "quickstart", "budget": "600"}, "^budget: '600' has no unit"),
    ("measure", {"scenario": "quickstart", "precision": -0.2}, "^precision: must be positive"),
    ("measure", {"scenario": "quickstart", "seeds": 2}, "seeds: 2 should be greater than or equal"),
    ("train", {"scenario": "quickstart", "replay": -1}, "replay: -1 should be greater than or eq"),
    ("measure", {"scenario": "quickstart", "workers": 10**6}, "workers: 1000000 should be less"),
    ("backtest", {"recovery": "full", "draws": 0}, "draws: 0 should be greater than or equal to 2"),
    ("backtest", {"recovery": "full", "seed": None}, "seed: None should be a valid integer"),
    ("calibrate", {"nodes": 0}, "nodes: 0 should be greater than or equal to 1"),
    ("ledger", {"time_unit": []}, r"time_unit: \[\] should be a valid string"),
    ("read", {"result": 3}, "result: 3 should be a valid string"),
]


@pytest.mark.parametrize(("name", "asked", "message"), REFUSED)
def test_an_argument_that_can_t_be_is_refused_by_its_name(
    name: str, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(cprsim.CprsimError, match=message):
        getattr(cprsim, name)(**asked)


def test_a_bound_stands_once_for_python_and_the_shell() -> None:
    with pytest.raises(ParameterError, match="equal to 400"):
        cprsim.backtest("x", recovery="full", draws=401)
    said = call("backtest", "x", "--recovery", "full", "--draws", "401")
    assert said.exit_code == 2
    assert "equal to 400" in said.output


# --------------------------------------------------------------------------- run, compare, sweep


@pytest.fixture(scope="module")
def made() -> cprsim.Run:
    return cprsim.run(small_scenario())


def test_a_run_is_a_table_rows_figures_and_text(made: cprsim.Run) -> None:
    assert list(made.table) == ["strategy", "quantity", "mean", "low", "high", "n"]
    assert made.rows.groupby("strategy").size().eq(20).all()
    assert list(made.means("pls", "overhead_h").index) == ["full", "partial", "cpr"]
    assert isinstance(made.figure(), Figure)
    assert list(made.figures) == ["overhead", "timeline"]
    assert made.figure("timeline")._repr_png_()[:4] == b"\x89PNG"  # type: ignore[attr-defined]
    assert repr(made) == "<cprsim.Run small>"
    assert "What failures cost: small" in str(made)
    with pytest.raises(ParameterError, match="there are: overhead, timeline"):
        made.figure("overheads")
    with pytest.raises(ParameterError, match=r"no quantity 'nope'; there are: .*overhead_h"):
        made.means("pls", "nope")


def test_a_run_is_what_the_command_makes(made: cprsim.Run, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(small_scenario(), "utf-8")
    called = call("run", path, "--out", tmp_path / "theirs", "--json")
    theirs = Path(json.loads(called.stdout)["results"])
    ours = made.save(tmp_path / "ours")
    assert ours.name == theirs.name
    files = [json.loads((one / "manifest.json").read_text())["files"] for one in (ours, theirs)]
    assert files[0] == files[1]
    assert "overhead.png" in files[0]
    found = cprsim.read(ours)
    assert isinstance(found, cprsim.Run)
    pd.testing.assert_frame_equal(found.table, made.table)
    assert cprsim.read(tmp_path / "ours").folder == ours  # type: ignore[union-attr]
    replayed = cprsim.run(small_scenario(), replay=3).save(tmp_path / "ours")
    with pytest.raises(ResultError, match=f"name one in it, such as .*{replayed.name}"):
        cprsim.read(tmp_path / "ours")


def test_nothing_is_kept_unless_a_folder_is_named(tmp_path: Path) -> None:
    run = cprsim.run(small_scenario(), replay=3)
    lies = run._made.path
    assert run.folder is None
    assert lies.is_dir()
    del run
    gc.collect()
    assert not lies.exists()
    with pytest.raises(ParameterError, match="neither a number nor one of"):
        cprsim.run(small_scenario(), replay="best", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_two_runs_are_compared(made: cprsim.Run, tmp_path: Path) -> None:
    dearer = cprsim.run(small_scenario(), {"costs.save": "10 min"})
    found = cprsim.compare(made, dearer)
    assert found.is_paired
    overhead = found.table[found.table["quantity"] == "overhead_fraction"]
    assert overhead[overhead["strategy"] == "full"]["low"].item() > 0
    assert "Both met the same failures" in str(found)
    with pytest.raises(ResultError):
        cprsim.compare(made, tmp_path)


def test_a_sweep_has_a_row_per_point(tmp_path: Path) -> None:
    over = {"failures.mtbf": ["5 h", "10 h"], "costs.save": "1 min:4 min:log2"}
    swept = cprsim.sweep(small_scenario(), over, replications=4, workers=1)
    assert swept.axes == ("failures.mtbf [h]", "costs.save [min]")
    of = swept.of("overhead_fraction")
    assert len(of) == 2 * 2 * 3
    assert (of["low"] <= of["mean"]).all()
    with pytest.raises(ParameterError, match=r"no quantity 'nope'; there are: .*overhead_frac"):
        swept.of("nope")
    assert swept.folder is None
    assert "curves" in swept.figures or "map" in swept.figures
    assert "What becomes of the overhead" in swept._repr_html_()


@pytest.mark.long
def test_a_fleet_is_that_of_the_command(tmp_path: Path) -> None:
    small = {"fleet.jobs": 4, "fleet.kinds": 2, "unknown": None}
    planned = cprsim.fleet("planning", {"spares": [0, 2]}, small, workers=1)
    assert planned.folder is None
    kept = cprsim.read(planned.save(tmp_path))
    assert isinstance(kept, cprsim.Fleet)
    assert kept.table["option"].tolist() == [
        f"{name} at spares {n}" for n in (2, 0) for name in ("full", "cpr")
    ]
    said = [f"--set={key}={json.dumps(value)}" for key, value in small.items()]
    shown = call("fleet", "planning", *said, "--over", "spares=0,2", "--json", "--out", tmp_path)
    assert Path(json.loads(shown.stdout)["results"]) == kept.folder
    assert kept.best == kept.table.set_index("option")["cost_per_month"].idxmin()
    assert kept.currency == "USD"
    assert "Recommendation" in kept._repr_html_()
    assert set(kept.figures) == {"fleet", "curve"}
    with pytest.raises(ParameterError, match=r"over fleet\.spares: is there twice"):
        cprsim.fleet("planning", {"spares": [0], "fleet.spares": [2]})


def test_a_curve_and_a_limit_make_a_selection(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("strategy,pls,loss,standard_error\npartial,0.3,0.03,0.003\n")
    curve = cprsim.read(path)
    losses = curve.frames["losses"].set_index("pls")["loss"]
    assert losses[0.1] == pytest.approx(0.01)
    assert losses.index.max() == 0.3
    assert curve.frames["weights"]["weight"].tolist() == [1.0]
    chosen = cprsim.select(small_scenario(), max_auc_loss=0.002, curve=path, replications=100)
    best = chosen.table[chosen.table["part"] == "best"].set_index("strategy")
    assert best.loc["partial", "held"] <= 0.002
    assert chosen.recommended in ("full", "partial")
    assert chosen.interval_h > 0
    assert isinstance(chosen.figure("pareto"), Figure)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.* clicks in the test are few")
def test_a_measurement_gives_a_curve(tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    measured = partial(cprsim.measure, MEASURED, seeds=3, workers=1, strategies=["partial", "mfu"])
    paths = [tmp_path / f"{n}.json" for n in (1000, 1500)]
    for path in paths:
        measured({"kernel.samples": int(path.stem)}, file=path)
    curve = measured({"kernel.samples": 2000}, shorter=paths, file=file)
    assert [law.longest for law in read_curve(file).lengths.values()] == [1714, 1714]
    assert "partial" in set(curve.frames["strategies"]["strategy"])
    assert not curve.values["fit_for_use"]
    assert cprsim.read(file).to_json() == curve.to_json()


# --------------------------------------------------------------------------- logs


def log_of_failures(folder: Path, node: str = "n1") -> Path:
    rng = np.random.default_rng(5)
    at_h = np.cumsum(rng.exponential(40.0, 30))
    rows = [f"{node if i % 3 else 'n2'},{at:.3f},{at + 0.5:.3f}" for i, at in enumerate(at_h)]
    path = folder / "log.csv"
    path.write_text("\n".join(["node,start,end", *rows]) + "\n", "utf-8")
    return path


def test_a_fit_has_intervals_and_a_section_that_runs(tmp_path: Path) -> None:
    fitted = cprsim.fit(log_of_failures(tmp_path), time_unit="h", nodes=4, bootstrap=0)
    assert fitted.values["mtbf_h"].low < 40 < fitted.values["mtbf_h"].high
    assert {"gaps", "repairs"} <= set(fitted.frames["families"]["times"])
    assert fitted.values["job_failures"]["kind"] == "job"
    said = {"failures": fitted.values["failures"], "cluster.emb_ps": 2}
    run = cprsim.run(small_scenario("full"), said, replications=3)
    assert run.frames["strategies"]["replications"].eq(3).all()
    with pytest.raises(TraceError):
        cprsim.fit(tmp_path / "none.csv")


def test_a_ledger_books_the_hours_of_a_job(tmp_path: Path) -> None:
    log = events.JobLog(tmp_path / "log.jsonl", job=EVIL)
    for step in range(40):
        log.progress(step + 1)
    log.end(40)
    booked = cprsim.ledger(tmp_path / "log.jsonl")
    assert booked.jobs["job"].tolist() == [EVIL]
    assert "useful" in set(booked.hours["part"])
    assert booked.table["low"].le(booked.table["high"]).all()
    assert EVIL not in booked._repr_html_()
    with pytest.raises(ParameterError, match="at least one log"):
        cprsim.ledger()


def test_a_scenario_is_made_of_the_logs_of_jobs(tmp_path: Path) -> None:
    all_of: list[Any] = [(0, "job.start"), (0, "train.resume", {"step": 0})]
    at_s = 0
    for number in range(12):
        saved, failed_s = 5_000 * (number + 1), at_s + 5_200 + 350 * (37 * number % 11)
        all_of += [
            (at_s + 5_000, "save.start", {"step": saved}),
            (at_s + 5_100, "save.commit", {"step": saved}),
            (failed_s, "failure", {"step": saved + failed_s - at_s - 5_100}),
            (failed_s + 50 + 10 * (number % 3), "failure.detected"),
            (failed_s + 300, "load.start"),
            (failed_s + 400, "rollback", {"step": saved}),
            (failed_s + 400, "train.resume", {"step": saved}),
        ]
        at_s = failed_s + 400
    write_events(tmp_path / "log.jsonl", told(*all_of))
    found = cprsim.calibrate(tmp_path / "log.jsonl", nodes=16)
    assert {"MTBF", "save", "load", "interval"} <= set(found.frames["origins"]["number"])
    assert cprsim.load(found.values["text"]).strategies == ("as it ran",)
    assert found.frames["prediction"]["later_half"].tolist() == ["predicted", "observed"]
    assert found.frames["prediction"]["ettr"].between(0.5, 1).all()
    assert "calibrated" in repr(found)
    assert "Numbers of the scenario" in found._repr_html_()


def test_systems_are_mapped_over_two_inputs(tmp_path: Path) -> None:
    over = {"failures.mtbf": ["2 h", "50 h"], "costs.save": ["1 min", "9 min"]}
    sets = {"recovery": "[full, partial]"}
    found = cprsim.sweep(small_scenario(), over, sets, replications=100, workers=1, folder=tmp_path)
    assert found.axes == ("failures.mtbf [h]", "costs.save [min]")
    of_each = found.of("overhead_fraction").groupby(list(found.axes), sort=False)["mean"]
    assert found.cheapest["mean"].tolist() == of_each.min().tolist()
    assert set(found.cheapest["strategy"]) <= {"full", "partial"}
    assert (found.folder / "map.png").is_file()
    assert cprsim.read(found.folder).cheapest.equals(found.cheapest)


# --------------------------------------------------------------------------- shown


def test_what_a_notebook_shows_has_no_script_and_no_markup_of_others(tmp_path: Path) -> None:
    path = log_of_failures(tmp_path).rename(tmp_path / "<script>.csv")
    shown = cprsim.fit(path, time_unit="h", bootstrap=0)._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown
    assert "<style" not in shown


def test_a_page_is_written(tmp_path: Path) -> None:
    scenario = cprsim.load(small_scenario())
    page = scenario.report(tmp_path / "page.md", title="Mine")
    assert page.read_text("utf-8").startswith("# Mine\n")
    with pytest.raises(ParameterError, match="file: None should be a valid string"):
        scenario.report(None)  # type: ignore[arg-type]
    with pytest.raises(ResultError, match="there is no folder"):
        scenario.report(tmp_path / "nowhere" / "page.html")


def test_a_kept_reproduction_is_read() -> None:
    found = cprsim.read(ROOT / "results" / "reproduction" / "fig-overheads")
    assert isinstance(found, cprsim.Reproduction)
    assert list(found.table) == ["quantity", "paper", "provenance", "ours", "verdict"]
    assert "<img" in found._repr_html_()
