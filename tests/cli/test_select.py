"""``cprsim select``: the decision from the command line, and what is wrong with a question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cprsim.selector.choice import Flip
from tests.cli.conftest import SCENARIO

CURVE = """\
strategy,pls,loss,standard_error
partial,0.1,0.001,0.0001
partial,0.4,0.004,0.0004
mfu,0.1,0.0006,0.0001
mfu,0.4,0.0024,0.0004
"""


@pytest.fixture
def curve(scenario: Path) -> Path:
    path = scenario.with_name("mine.csv")
    path.write_text(CURVE, "utf-8")
    return path


@pytest.fixture
def quick(monkeypatch) -> None:
    """Without the seconds that it takes to look for what would flip the decision."""
    flips = (Flip("a cost of a save", "h", 0.1, 2.0),)
    monkeypatch.setattr("cprsim.selector.selecting.flips", lambda *_: flips)
    monkeypatch.setattr("cprsim.selector.selecting.N_FRONT", 3)


@pytest.fixture
def undrawn(quick: None, monkeypatch) -> None:
    """Without the second that the figure takes, too."""
    monkeypatch.setattr("cprsim.plots.selection.selection_figure", lambda *_, **__: None)
    monkeypatch.setattr("cprsim.plots.save.save_figure", lambda *_: [])


@pytest.fixture
def drawing_select(drawing_cprsim, scenario: Path, curve: Path, quick: None):
    """Select with few replications, and a curve of the user's own."""

    def run(*options: object):
        return drawing_cprsim("select", scenario, "--curve", curve, "--replications", 100, *options)

    return run


@pytest.fixture
def select(drawing_select, undrawn: None):
    """The same without a figure."""
    return drawing_select


def test_a_selection_is_explained_kept_and_found_again(drawing_select, tmp_path: Path) -> None:
    first = drawing_select("--max-auc-loss", 0.0005)
    assert first.exit_code == 0, first.output
    for said in (
        "Limit: expected AUC loss at most 0.0005, held at its 95 % upper bound.",
        "Staleness curve: mine",
        "Recommended: cpr-mfu, saving every",
        "The paper's formula for the interval",
        "The decision would be full recovery with",
    ):
        assert said in first.output
    (folder,) = (tmp_path / "results").iterdir()
    files = sorted(path.name for path in folder.iterdir())
    assert files == [
        "candidates.csv", "manifest.json", "pareto.png", "pareto.svg", "scenario.yaml",
        "selection.json",
    ]  # fmt: skip
    again = drawing_select("--max-auc-loss", 0.0005)
    assert "found again" in again.output
    assert again.output.replace(" (found again, nothing was simulated)", "") == first.output


def test_json_holds_the_decision_and_every_candidate(select) -> None:
    result = select("--max-auc-loss", 0.0005, "--json")
    said = json.loads(result.stdout)
    assert said["recommended"] == "cpr-mfu"
    best = said["best"]["cpr-mfu"]
    assert best["keeps"]
    assert best["held"] <= 0.0005
    assert best["benefit"]["low"] > 0
    assert said["front"]["partial"][0]["interval_h"] is None  # never saves
    assert said["flips"][0]["at"] == 2.0


def test_the_scenario_may_name_limit_and_curve(
    drawing_cprsim, scenario: Path, curve: Path, undrawn: None
) -> None:
    section = "accuracy: {curve: mine.csv, max_auc_loss: 0.0005, risk: 0.9, confidence: 0.8}\n"
    scenario.write_text(SCENARIO + section, "utf-8")
    result = drawing_cprsim("select", scenario, "--replications", 100)
    assert result.exit_code == 0, result.output
    assert "AUC loss of 90 % of the jobs at most 0.0005, held at its 80 % upper" in result.output


def test_a_shipped_curve_of_another_model_is_warned_of(drawing_cprsim, scenario, undrawn) -> None:
    called = drawing_cprsim(
        "select", scenario, "--max-auc-loss", 0.001, "--curve", "criteo-kaggle-linear",
        "--replications", 100, "--set", "kernel={most_rows: 2000}",
    )  # fmt: skip
    assert "was measured for another model than this section `kernel`" in called.stdout
    assert "most_rows (5000, here 2000)" in called.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "accuracy: there is no limit; say what may be lost with one of --max-auc-loss"),
        (["--max-auc-loss", "0.1", "--target-pls", "0.1"], "there are 2 limits: keep one"),
        (["--max-auc-loss", "-1"], "should be"),
        (["--max-auc-loss", "0.1", "--confidence", "0.1"], "should be"),
        (["--max-auc-loss", "0.1", "--risk", "high"], "`high` should be a valid number"),
        (["--max-auc-loss", "0.1", "--replications", "5"], "at least"),
        (["--max-auc-loss", "0.01%%"], "--max-auc-loss': '0.01%%' is no number"),
        (
            ["--max-auc-loss", "100%"],
            "--max-auc-loss: accuracy.max_auc_loss: `1.0` should be less",
        ),
        (["--max-log-loss", "0.1"], "knows none of"),
        (["--max-loss", "recall=0.1"], "it knows losses of auc"),
    ],
)
def test_what_is_wrong_is_said_in_one_message_and_nothing_is_written(
    select, tmp_path: Path, options: list[str], said: str
) -> None:
    result = select(*options)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output
    assert "--set" not in result.output
    assert not (tmp_path / "results").exists()


def test_without_a_curve_it_says_how_to_get_one(drawing_cprsim, scenario: Path) -> None:
    result = drawing_cprsim("select", scenario, "--max-auc-loss", "0.001")
    assert result.exit_code == 2
    assert "no staleness curve applies" in result.output
    assert "--curve" in result.output
    assert "cprsim measure" in result.output


def test_a_limit_of_any_metric_of_the_curve_is_kept(select, curve: Path) -> None:
    rows = [line.split(",") for line in CURVE.splitlines()[1:]]
    text = "strategy,pls,loss,standard_error,metric\n" + "".join(
        f"{','.join(row)},auc\n{row[0]},{row[1]},{2 * float(row[2])},{2 * float(row[3])},ne\n"
        for row in rows
    )
    curve.write_text(text, "utf-8")
    by_auc = json.loads(select("--max-auc-loss", "0.001", "--json").stdout)
    by_ne = json.loads(select("--max-loss", "ne=0.002", "--json").stdout)
    assert by_ne["limit"]["quantity"] == "ne"
    assert by_ne["entries"] == by_auc["entries"]
    assert len(by_ne["entries"]) > 2


def test_what_is_pasted_gives_the_same_choice_again_and_the_same_order(
    drawing_cprsim, scenario: Path, undrawn: None
) -> None:
    few = ("--replications", 100)
    limit = ("--max-auc-loss", "0.02%", "--curve", "criteo-kaggle-linear", *few)
    first = drawing_cprsim("select", scenario, *limit)
    assert first.exit_code == 0, first.output
    block = first.stdout[first.stdout.index("accuracy: {") :].split("\n\n")[0]
    assert "curve: criteo-kaggle-linear, max_auc_loss: 0.0002" in block
    kept = [one for one in SCENARIO.splitlines() if not one.startswith("recovery")]
    scenario.write_text("\n".join([*kept, block, ""]), "utf-8")
    again = drawing_cprsim("select", scenario, *few)
    assert again.stdout.partition("\nresults ")[0] == first.stdout.partition("\nresults ")[0]
    chosen = json.loads(drawing_cprsim("select", scenario, *few, "--json").stdout)
    ran = json.loads(drawing_cprsim("run", scenario, *few, "--json").stdout)
    by_run = {one["name"]: one["overhead_fraction"]["mean"] for one in ran["strategies"]}
    by_choice = {name: one["overhead"]["mean"] for name, one in chosen["best"].items()}
    assert by_run == pytest.approx(by_choice | {"full": chosen["full"]["overhead"]["mean"]})
