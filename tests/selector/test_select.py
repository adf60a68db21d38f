"""``select``: what is wrong with a question, what the answer says, and that it can be typed."""

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cprsim
from cprsim.commands.select.evaluation import entry_at, interval_text, interval_with, strategy_entry
from cprsim.commands.select.record import Selection
from cprsim.files.units import TIME
from cprsim.job.intervals import n_saves_due
from cprsim.job.losses import TRACKERS, Metric
from cprsim.job.records import SmallTables
from cprsim.pages.answer import Answer
from cprsim.results.limit import Limit
from cprsim.scenario.assemble import assemble, policy_of
from cprsim.scenario.reading import load_scenario
from cprsim.scenario.recovery import SubSavesSection
from tests.making import call, small_scenario
from tests.selector.conftest import Job, choose, curve_of, said_of, same

CURVE = """\
strategy,pls,loss,standard_error
partial,0.1,0.001,0.0001
partial,0.4,0.004,0.0004
mfu,0.1,0.0006,0.0001
mfu,0.4,0.0024,0.0004
"""
FEW = {"replications": 100}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small scenario and a curve of the user's own."""
    monkeypatch.setattr("cprsim.commands.select.selection.N_POINTS", 3)
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(small_scenario(), "utf-8")
    Path("mine.csv").write_text(CURVE, "utf-8")
    return tmp_path


def selected(**how: object) -> Answer:
    return cprsim.select("small.yaml", **{"curve": "mine.csv", **FEW, **how})  # type: ignore[arg-type]


def test_a_selection_is_kept_and_found_again(folder: Path) -> None:
    first = selected(max_auc_loss=0.0005, folder="results")
    assert first.values["recommended"] == "cpr-mfu"
    (kept,) = (folder / "results").iterdir()
    assert sorted(path.name for path in kept.iterdir()) == [
        "candidates.csv", "manifest.json", "pareto.png", "pareto.svg", "scenario.yaml",
        "selection.json",
    ]  # fmt: skip
    again = selected(max_auc_loss=0.0005, folder="results")
    assert (first.found_again, again.found_again) == (False, True)
    stored = cprsim.read(first.folder or "")
    assert stored.to_json() == again.to_json() == first.to_json()
    page = stored.report("page.md").read_text("utf-8")
    assert "# Which strategy costs least, and how often it saves: small" in page
    assert "| cpr-mfu (recommended)" in page


def test_the_frames_hold_the_decision_and_every_candidate() -> None:
    answer = selected(max_auc_loss="0.05%")
    best = answer.frames["strategies"].set_index("strategy")
    assert list(best.index[best["recommended"]]) == ["cpr-mfu"]
    chosen = best.loc["cpr-mfu"]
    assert chosen["keeps"]
    assert 0 < chosen["upper_bound"] <= 0.0005
    assert chosen["benefit_fraction_low"] > 0
    fronts = answer.frames["candidates"].query("part == 'front' and strategy == 'partial'")
    assert fronts["interval_h"].iloc[0] == float("inf")  # never saves


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "accuracy: there is no limit; give the allowed loss with one of max_auc_loss"),
        ("--max-auc-loss 0.1 --target-pls 0.1", "there are 2 limits: keep one"),
        ("--max-auc-loss 0.1 --risk high", "`high` should be a valid number"),
        ("--max-auc-loss 0.01%%", "--max-auc-loss: '0.01%%' is no number"),
        ("--max-auc-loss 100%", "--max-auc-loss: `1.0` should be less"),
        ("--max-loss recall=0.1", "its metrics: auc"),
        ("--max-loss recall", "--max-loss: '' is no number, such as ne=0.0005"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(folder: Path, options: str, said: str) -> None:
    result = call("select", "small.yaml", "--curve", "mine.csv", *options.split())
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output
    assert "--set" not in result.output
    assert not (folder / "results").exists()


def test_what_is_lost_of_accuracy_is_in_the_bills() -> None:
    """Of a selection that is read back, too."""
    prices = ["prices={node_hour: 3, auc_loss: 40}"]
    answer = cprsim.select("small.yaml", prices, max_auc_loss=0.0005, curve="mine.csv", **FEW)
    bills = answer.frames["bills"].set_index(["strategy", "part"])["job_cost"]
    loss = answer.frames["strategies"].set_index("strategy")["loss"]
    assert bills["cpr-mfu", "accuracy"] == pytest.approx(40 * 1e4 * loss["cpr-mfu"], abs=0.01)


def test_a_limit_of_any_metric_of_the_curve_is_kept() -> None:
    rows = [line.split(",") for line in CURVE.splitlines()[1:]]
    text = "strategy,pls,loss,standard_error,metric\n" + "".join(
        f"{','.join(row)},auc\n{row[0]},{row[1]},{2 * float(row[2])},{2 * float(row[3])},ne\n"
        for row in rows
    )
    Path("mine.csv").write_text(text, "utf-8")
    curve = cprsim.read("mine.csv")
    by_auc, by_ne = selected(max_auc_loss="0.1 %"), selected(max_loss={"ne": 0.002}, curve=curve)
    assert by_ne.values["limit"].quantity == "ne"
    assert by_ne.values["recovery"] == by_auc.values["recovery"]
    assert len(by_ne.frames["strategies"]) > 2
    assert "accuracy: {curve: mine.csv, max_auc_loss: 0.001}" in by_auc.document.answer[1]


def test_no_formula_within_the_limit_costs_less_where_planned_stops_lose_work() -> None:
    stops = """\
name: stops
job: {useful: 300 h}
cluster: {trainers: 4, emb_ps: 6, shard_size: 20 GB}
failures: {kind: job, role: emb_ps, family: exponential, mtbf: 20 h}
planned: {every: 24 h, length: 1 h}
costs: {save: 2 min, load: 5 min, detect: 1 min, reschedule: 5 min, warmup: 3 min}
recovery: [full]
"""
    found = cprsim.select(stops, target_pls=0.1, **FEW)
    of_formulas = found.frames["candidates"].query("part.str.startswith('formula') and keeps")
    assert len(of_formulas) == 2
    least = of_formulas["overhead_fraction"].min()
    assert found.values["recommendation"]["overhead"]["mean"] < least


def test_what_is_pasted_gives_the_same_choice_again_and_the_same_order() -> None:
    first = cprsim.select("small.yaml", max_auc_loss="0.02%", curve="criteo-kaggle-linear", **FEW)
    pasted = f"{first.values['accuracy']}\n{first.values['recovery']}\n"
    assert "curve: criteo-kaggle-linear, max_auc_loss: 0.0002" in pasted
    kept = [one for one in small_scenario().splitlines() if not one.startswith("recovery")]
    Path("small.yaml").write_text("\n".join([*kept, pasted]), "utf-8")
    again = cprsim.select("small.yaml", **FEW)
    assert str(again) == str(first)
    ran = cprsim.run("small.yaml", **FEW).frames["strategies"].set_index("strategy")
    best = again.frames["strategies"].set_index("strategy")
    assert dict(ran["overhead_fraction"]) == pytest.approx(dict(best["overhead_fraction"]))


# ------------------------------------------------------------------------------ sentences


@pytest.fixture(scope="module")
def selection() -> Selection:
    limit = Limit(Metric.AUC, 0.06 * 0.01 * Job().pls(0))
    experiment = Job(n_replications=200).experiment()
    return choose(experiment, curve_of(0.0005), limit)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            lambda one: {
                "best": one.best
                | {"partial": replace(one.at_best["partial"], beyond_fraction=0.07)}
            },
            "Warning: at partial's interval 7.00 % of the jobs lose more than the curve was",
        ),
        (lambda one: {"best": one.best | {"cpr-ssu": None}}, "cpr-ssu no interval within"),
        (
            lambda one: {"stand_in": True},
            "The curve was measured on a small model, not on yours",
        ),
    ],
)
def test_what_is_said_of_a_selection(selection: Selection, changed: Any, said: str) -> None:
    text = said_of(replace(selection, **changed(selection)))
    assert said in " ".join(text.split())
    assert ("Warning" in text) == said.startswith("Warning")


@settings(max_examples=40)
@given(
    name=st.sampled_from(["full", "partial", *(f"cpr-{tracker}" for tracker in TRACKERS)]),
    cut=st.fixed_dictionaries(
        {
            "fraction": st.integers(1, 64).map(lambda n: 1 / n),
            "latency_h": st.floats(0, 100),
            "large_tables": st.integers(1, 10_000),
            "small_tables": st.sampled_from(SmallTables),
            "sample_period": st.integers(1, 10**6),
        }
    ),
    interval_h=st.floats(0.05, 100) | st.just(inf),
)
def test_an_entry_makes_the_policy_that_it_was_made_from(name, cut, interval_h) -> None:
    section = SubSavesSection().model_copy(update=cut) if name.startswith("cpr-") else None
    option = strategy_entry(name, section)
    policy = policy_of(option, assemble(load_scenario("x", text=small_scenario())), interval_h)
    entry = entry_at(option, interval_h, 20.0)
    (again,) = assemble(load_scenario("x", text=small_scenario(entry))).policies
    assert same(again, policy), entry
    assert n_saves_due(again.interval_h, 20.0) == n_saves_due(policy.interval_h, 20.0)
    assert ("sub_saves" in entry) == (section not in (None, SubSavesSection())), entry


@given(n_saves=st.integers(1, 20_000), useful_h=st.floats(0.01, 10_000))
def test_an_interval_can_be_typed_and_gives_the_same_saves(n_saves: int, useful_h: float) -> None:
    interval_h = interval_with(n_saves, useful_h)
    assert n_saves_due(interval_h, useful_h) == n_saves
    assert n_saves_due(TIME.parse(interval_text(interval_h)), useful_h) == n_saves
    assert interval_h == pytest.approx(useful_h / (n_saves + 1), rel=0.0021)
