"""Predictions of published runs: what is committed is what the scenarios give, and stays."""

import json
import re
from math import log
from pathlib import Path

import numpy as np
import pytest

from cprsim.commands.reproduce.published_runs import (
    RUNS,
    drawn_inputs,
    estimate,
    outcomes,
    prediction,
    run_of,
    scenario_of,
)
from cprsim.commands.reproduce.study import STUDIES, Work
from cprsim.files import SHIPPED

ROOT = Path(__file__).parents[2]
PREDICTED = json.loads((ROOT / "results/published-runs/predictions.json").read_text("utf-8"))
MARKS = re.compile(r"#.*\b(published|derived|assumed|fitted)\b")


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(STUDIES["published-runs"], "full", SHIPPED, tmp_path)


def test_each_number_of_a_published_run_has_its_mark() -> None:
    lines = (
        f"{path.name}: {line}"
        for path in sorted((SHIPPED / "published-runs").glob("*.yaml"))
        for line in path.read_text("utf-8").splitlines()
        if re.search(r":.*\d", line) and not re.match(r"#|name:|simulation:", line)
    )
    assert [line for line in lines if not MARKS.search(line)] == []


def test_the_committed_predictions_are_of_these_scenarios(work: Work) -> None:
    claims = work.study.claims
    predicted = [case for case in work.study.cases if case not in claims]
    assert list(PREDICTED) == predicted
    assert {row["outcome"] for row in PREDICTED.values()} == {"withheld"}
    none = {"outcomes": [[1.0]], "shares": [1.0], "inputs": {}}
    for case, row in PREDICTED.items():
        now = prediction(work, case, none)
        assert (now["scenario"], now["free"]) == (row["scenario"], row["free"]), case


@pytest.mark.parametrize("case", ["P3 async", "P5 jit", "P12 steps of 5 s"])
def test_a_prediction_is_made_again(work: Work, case: str) -> None:
    made = estimate(outcomes(scenario_of(work, case), run_of(case), 100)["outcomes"])
    row = PREDICTED[case]
    assert (made.mean, made.low, made.high) == pytest.approx(
        (row["median"], row["low"], row["high"]), rel=1e-4
    )


def test_an_async_arm_follows_by_arithmetic(work: Work) -> None:
    """P3: useful work, 20 saves, 19 steps made again, and per failure a restart and a relaunch."""
    loaded = scenario_of(work, "P3 async")
    (minutes,) = {x for row in outcomes(loaded, RUNS["P3"], 0)["outcomes"] for x in row}
    by_hand_s = 941.3 + 20 * 1.041 + (6 + 11 + 9) * 0.47065 + 3 * (42.24 + 37.3)
    assert minutes == pytest.approx(by_hand_s / 60, rel=2e-3)


def test_unknown_inputs_are_drawn_evenly_by_factors(work: Work) -> None:
    values = [
        float(str(one["failures.mtbf"]).split()[0])
        for one in drawn_inputs(scenario_of(work, "P10"), 50)
    ]
    assert np.sort(np.log(values)) == pytest.approx(np.linspace(log(4), log(24), 50), abs=1e-5)
