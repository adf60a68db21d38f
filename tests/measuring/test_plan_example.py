"""What examples/plan_a_measurement.py says and writes."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import cprsim
from cprsim.accuracy.curve_file import read_curve

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    import plan_a_measurement

    yield plan_a_measurement
    del sys.modules["plan_a_measurement"]


def test_seeds_are_counted_by_a_pilot(example, capsys) -> None:
    example.seeds(EXAMPLES / "two_tower.json", 2e-4)
    assert "27 seeds find 0.0002 in 80% of cases" in capsys.readouterr().out
    assert example.power(17, 2e-4, 3.1e-4) > 0.8 > example.power(14, 2e-4, 3.1e-4)


def test_a_power_law_of_length_is_followed_where_it_predicts(example, capsys, monkeypatch) -> None:
    rng = np.random.default_rng(1)

    def read(path: str) -> SimpleNamespace:
        n, slope = (float(part) for part in path.split(":"))
        by_seed = {"by_seed": slope * (1 + 0.02 * rng.normal(size=8))}
        checks = {"auc": {"slopes": {"partial": by_seed}}}
        return SimpleNamespace(values={"manifest": {"n_samples": n}, "checks": checks})

    monkeypatch.setattr(cprsim, "read", read)
    example.length(["1e4:1", "2e4:2", "4e4:4"], 8e4)
    assert "are 2.0" in capsys.readouterr().out
    example.length(["1e4:1", "2e4:2", "4e4:2.5"], 8e4)
    assert "is not confirmed" in capsys.readouterr().out


def test_runs_of_a_plan_become_a_curve(example, tmp_path: Path) -> None:
    example.plan(tmp_path / "plan.csv", 8, 4)
    runs = pd.read_csv(tmp_path / "plan.csv")
    assert len(runs) == 48
    runs["twin_auc"] = 0.7
    runs["auc"] = 0.7 - 0.05 * runs["pls"] * (1 + 0.01 * runs["seed"])
    runs.to_csv(tmp_path / "plan.csv", index=False)
    example.curve(tmp_path / "plan.csv", tmp_path / "curve.csv")
    (response,) = read_curve(tmp_path / "curve.csv").responses
    assert response.loss[-1] / response.most_pls == pytest.approx(0.05 * 1.045)
