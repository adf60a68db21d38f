"""The grid beside the choice: it finds one that saves too often, and prices doubt."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
import pytest

from cprsim.experiments.assemble import assemble
from cprsim.reproduce.promise import exhaustive
from cprsim.reproduce.promise.cells import cells_of, limits
from cprsim.reproduce.promise.exhaustive import NEAR_ENOUGH, ChoiceOnGrid, Ratio, search
from cprsim.reproduce.promise.losses import CellLoss, PromisedJob
from cprsim.scenario import load_scenario
from tests.reproduce.promise.test_promise import CURVE, SCENARIO


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> PromisedJob:
    path: Path = tmp_path_factory.mktemp("exhaustive") / "small.yaml"
    path.write_text(SCENARIO)
    loaded = load_scenario(path)
    experiment = assemble(loaded)
    cells = [
        cell
        for cell in cells_of("small", experiment, CURVE)
        if cell.limit == limits(experiment, CURVE)[2]
    ]
    return PromisedJob(loaded, CURVE, experiment, tuple(cells), ())


@pytest.fixture(autouse=True)
def few_replications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "N_REPLICATIONS", 300)


def searched(job: PromisedJob, ratio: float = 1.0) -> list[ChoiceOnGrid]:
    """With losses measured as so many times the predicted ones, to 2 % of them."""
    kept = [CellLoss(cell, ratio * 1e-3, 2e-5, 40, 1e-3) for cell in job.cells]
    return search(job, kept)


def test_the_choice_is_near_the_best_of_the_grid(job: PromisedJob) -> None:
    found = searched(job)
    assert [one.cell.strategy for one in found] == ["partial", "cpr-mfu"]
    for one in found:
        assert one.over_best <= NEAR_ENOUGH
        assert 0 <= one.price_of_uncertainty < 0.3


def test_a_choice_that_saves_twice_as_often_is_found_out(job: PromisedJob) -> None:
    often = [
        replace(one, policy=replace(one.policy, save_interval_h=one.policy.save_interval_h / 2))
        for one in job.cells
        if one.policy is not None
    ]
    assert all(one.over_best > NEAR_ENOUGH for one in searched(replace(job, cells=tuple(often))))


def test_doubt_is_dear_where_the_measured_losses_are_small(job: PromisedJob) -> None:
    as_predicted, half = searched(job), searched(job, ratio=0.5)
    for one, other in zip(as_predicted, half, strict=True):
        assert other.price_of_uncertainty > one.price_of_uncertainty + 0.1


def test_a_ratio_is_pooled_by_what_is_known_and_widened_where_cells_differ(
    job: PromisedJob,
) -> None:
    cell = job.cells[0]
    alike = [CellLoss(cell, 0.8e-3, 1e-5, 40, 1e-3), CellLoss(cell, 0.8e-3, 1e-4, 40, 1e-3)]
    pooled = Ratio.of(alike)
    assert pooled.mean == pytest.approx(0.8)
    assert pooled.standard_error == pytest.approx(1 / np.hypot(100, 10))
    apart = Ratio.of([*alike, CellLoss(cell, 1.2e-3, 1e-5, 40, 1e-3)])
    assert apart.mean == pytest.approx(1.0, abs=0.01)
    assert apart.standard_error > 0.1
    assert isnan(Ratio.of([]).mean)
