"""``cprsim select``: the decision from the command line, and what is wrong with a question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cprsim.curves import fit_curves
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
    monkeypatch.setattr("cprsim.plots.selection.pareto_figure", lambda *_, **__: None)
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


def test_an_answer_typed_back_gives_the_same_saves(select, cprsim, scenario: Path) -> None:
    said = json.loads(select("--max-auc-loss", 0.0003, "--json").stdout)["best"]["partial"]
    run = cprsim(
        "run", scenario, "--json",
        "--set", f"recovery=[{{strategy: partial, interval: {said['interval_h']!r} h}}]",
        "--replications", 100,
    )  # fmt: skip
    (partial,) = json.loads(run.stdout)["strategies"]
    assert partial["overhead_fraction"]["mean"] == pytest.approx(said["overhead"]["mean"])
    assert partial["pls"] == pytest.approx(said["pls"]["mean"])


def test_the_scenario_may_name_limit_and_curve(
    drawing_cprsim, scenario: Path, curve: Path, undrawn: None
) -> None:
    section = "accuracy: {curve: mine.csv, max_auc_loss: 0.0005, risk: 0.9, confidence: 0.8}\n"
    scenario.write_text(SCENARIO + section, "utf-8")
    result = drawing_cprsim("select", scenario, "--replications", 100)
    assert result.exit_code == 0, result.output
    assert "AUC loss of 90 % of the jobs at most 0.0005, held at its 80 % upper" in result.output


def test_free_saves_are_no_matter_of_the_scenarios_own_intervals(select) -> None:
    """Its `interval: young` would be 0 h; a selection does not ask for it."""
    called = select("--max-auc-loss", 0.0002, "--set", "costs.save=0 s")
    assert called.exit_code == 0, called.output
    assert "Recommended: " in called.stdout


def test_a_shipped_curve_of_another_model_is_warned_of(drawing_cprsim, scenario, undrawn) -> None:
    called = drawing_cprsim(
        "select", scenario, "--max-auc-loss", 0.001, "--curve", "criteo-kaggle-linear",
        "--replications", 100, "--set", "kernel={most_rows: 2000}",
    )  # fmt: skip
    assert "was measured for another model than this section `kernel`" in called.stdout
    assert "most_rows (5000, here 2000)" in called.stdout


def test_a_target_pls_needs_no_curve(drawing_cprsim, scenario: Path, undrawn: None) -> None:
    result = drawing_cprsim("select", scenario, "--target-pls", 0.1, "--replications", 100)
    assert result.exit_code == 0, result.output
    assert "Limit: expected PLS at most 0.1" in result.output


def test_an_option_takes_the_files_limit_away(select, scenario: Path) -> None:
    scenario.write_text(SCENARIO + "accuracy: {target_pls: 0.1}\n", "utf-8")
    result = select("--max-auc-loss", 0.0005)
    assert "Limit: expected AUC loss at most 0.0005" in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "accuracy: there is no limit; say what may be lost with one of --max-auc-loss"),
        (["--max-auc-loss", "0.1", "--target-pls", "0.1"], "there are 2 limits: keep one"),
        (["--max-auc-loss", "-1"], "should be"),
        (["--max-auc-loss", "0.1", "--confidence", "0.1"], "should be"),
        (["--max-auc-loss", "0.1", "--risk", "high"], "neither `mean` nor a share of jobs"),
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


def test_a_curve_that_is_not_there(drawing_cprsim, scenario: Path) -> None:
    result = drawing_cprsim("select", scenario, "--max-auc-loss", "0.001", "--curve", "nowhere.csv")
    assert result.exit_code == 2
    assert "nowhere.csv" in result.output


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


def test_a_shipped_curve_is_called_a_stand_in_with_what_the_others_say(
    drawing_cprsim, scenario: Path, undrawn: None
) -> None:
    limit = ("--max-auc-loss", 0.0005, "--curve", "criteo-kaggle-linear", "--replications", 100)
    text = drawing_cprsim("select", scenario, *limit).stdout
    said = json.loads(drawing_cprsim("select", scenario, *limit, "--json").stdout)
    own = said["best"][said["recommended"]]["interval_h"]
    assert len(said["stand_ins"]) == len(fit_curves()) - 1 > 0  # those that are fit for use
    assert min(said["stand_ins"]) < own
    assert "It stands in for your model's." in text
    assert f"the interval of {said['recommended']} is " in text


def test_it_says_which_candidates_it_knows(select) -> None:
    ended = select("--max-auc-loss", 0.0005).stdout
    assert "Compared: full, partial, cpr-mfu; of recovery systems those that the" in ended
    assert "`cprsim compare-systems` compares every system" in ended


@pytest.mark.parametrize("said", ["ne", "ne=much", "N E=0.1", "ne=-1", "recall=0.1"])
def test_a_limit_that_says_nothing_is_refused(select, said) -> None:
    done = select("--max-loss", said)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    assert not done.stdout
