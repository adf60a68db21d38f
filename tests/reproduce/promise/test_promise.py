"""The promise: histories become the trials that they are, and means come out unbiased."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import assemble
from cprsim.experiments.proxy_model import proxy_model
from cprsim.kernel.replay import TracedTraining
from cprsim.kernel.replay import replay as replay_log
from cprsim.kernel.saving import Saver
from cprsim.kernel.shared_run import Setting
from cprsim.records import OnFailure, RecoveryPolicy, SubSaves
from cprsim.reproduce.promise.cells import PromiseCell, limits
from cprsim.reproduce.promise.histories import FRESH_SEED, N_STRATA, Histories, histories_of
from cprsim.reproduce.promise.losses import estimate
from cprsim.reproduce.promise.study import STUDY, print_summary
from cprsim.scenario import load_scenario
from cprsim.staleness import Metric, Response, StalenessCurve
from tests.kernel.scratch import run_trial
from tests.making import SCENARIOS, call

ROOT = Path(__file__).parents[3]

SCENARIO = """
job: {useful: 50 h}
cluster: {emb_ps: 4}
failures: {kind: job, family: gamma, shape: 0.7, mtbf: 12 h, together: 2}
costs: {save: 20 min, load: 5 min, detect: 0 s, reschedule: 10 min}
recovery: [full, partial]
kernel: {samples: 3000, most_rows: 30, dimension: 4, bottom: [8], top: [8], batch: 20}
simulation: {seed: 1, replications: 300}
"""
CURVE = StalenessCurve(
    "made",
    "by hand",
    tuple(Response.linear(key, Metric.AUC, (0.03, 0.001), 1.0) for key in ("partial", "mfu")),
)
INTERVAL_H = 5.0


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory):
    path: Path = tmp_path_factory.mktemp("promise") / "small.yaml"
    path.write_text(SCENARIO)
    return load_scenario(path)


def cell(strategy: str) -> PromiseCell:
    sub_saves = SubSaves("mfu") if strategy == "cpr-mfu" else None
    policy = RecoveryPolicy(strategy, OnFailure.RELOAD, INTERVAL_H, "given", sub_saves=sub_saves)
    return PromiseCell("small", 0.001, strategy, policy, 0.0009, 0.001)


@pytest.fixture(scope="module")
def histories(loaded) -> dict[str, Histories]:
    both = [cell("partial"), cell("cpr-mfu")]
    return {h.cell.strategy: h for h in histories_of(both, assemble(loaded), CURVE, n=200)}


@pytest.mark.parametrize("strategy", ["partial", "cpr-mfu"])
def test_a_history_trains_as_the_log_of_its_job_does(loaded, histories, strategy: str) -> None:
    """Also where saves are struck: saves cost a fifteenth of the interval here."""
    what = proxy_model(loaded)
    setting = Setting(what.shape, what.train, what.test, what.plan, what.shards)
    experiment = assemble(loaded)
    ours = histories[strategy]
    policy = replace(ours.cell.policy, name=ours.cell.name)
    fresh = replace(experiment, seed=FRESH_SEED, policies=(policy,))
    n_lost = 0
    for number in range(10):
        log = pipeline.replay(fresh, number)[policy.name]
        trainer = setting.trainer()
        saver = Saver(trainer, setting.shards, policy.sub_saves)
        cluster, course = experiment.cluster, TracedTraining(trainer)
        replay_log(
            log, experiment.useful_h, cluster.shard_slots, cluster.replica_slots, course, saver
        )
        trial = ours.trial(number)
        n_lost += trial is not None
        if trial is None:
            assert not (ours.losses.replication == number).any()
        else:
            assert run_trial(setting, trial) == trainer.evaluate(setting.test), number
    assert n_lost >= 7


def test_histories_are_drawn_one_from_each_stratum(histories) -> None:
    ours = histories["partial"]
    chosen = ours.chosen(2 * N_STRATA, seed=3)
    rank = np.argsort(np.argsort(ours.predicted, kind="stable"))
    stratum = rank[chosen] * N_STRATA // len(rank)
    assert sorted(stratum[:N_STRATA]) == list(range(N_STRATA))
    assert sorted(stratum[N_STRATA:]) == list(range(N_STRATA))
    assert not np.array_equal(chosen, ours.chosen(2 * N_STRATA, seed=4))


def test_the_control_variate_leaves_the_mean_unbiased() -> None:
    rng = np.random.default_rng(3)
    predicted = rng.gamma(1.0, 1e-3, 4000)
    truth = 0.8 * predicted  # the curve is off by a quarter
    means, errors = [], []
    for _ in range(300):
        some = rng.integers(0, len(predicted), 10)
        off = truth[some] + 1e-4 * rng.standard_normal(10) - predicted[some]
        kept = estimate(cell("partial"), off, float(predicted.mean()), 0.0)
        means.append(kept.mean)
        errors.append(kept.standard_error)
    standard_error = np.std(means) / np.sqrt(len(means))
    assert abs(np.mean(means) - truth.mean()) <= 4 * standard_error
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.15)
    assert np.std(means) < 0.5 * np.std(truth) / np.sqrt(10)  # and spares most of the runs


def test_one_run_is_no_measurement() -> None:
    kept = estimate(cell("partial"), np.array([1e-4]), 1e-3, 0.0)
    assert not kept.is_below
    assert not kept.known


def test_limits_lie_where_partial_recovery_pays(loaded) -> None:
    found = limits(assemble(loaded), CURVE)
    assert len(found) == 5
    assert (np.diff(found) < 0).all()
    assert np.diff(np.log(found)) == pytest.approx(np.full(4, np.log(found[1] / found[0])))


def test_a_strategy_that_never_saves_is_printed_too() -> None:
    cell = {
        "scenario": "made-up", "strategy": "partial", "limit": 0.001, "interval_h": None,
        "predicted": 0.0004, "measured": 0.0005, "standard_error": 0.0001, "runs": 8,
        "measured_over_limit": 0.5,
    }  # fmt: skip
    verdict = {"below_limit": 1, "cells": 1, "mean_measured_over_limit": 0.5, "kept": True}
    console = Console(file=StringIO(), width=124)
    print_summary(console, {"cells": [cell], "verdict": verdict})
    assert isinstance(console.file, StringIO)
    row = next(line for line in console.file.getvalue().splitlines() if "made-up" in line)
    shown = ["0.00100", "–", "0.00040", "0.00050", "±", "0.00010", "8", "0.50"]
    assert row.split() == ["made-up", "partial", *shown]


def test_the_study_tells_the_document_that_is_kept() -> None:
    document = json.loads((ROOT / "results" / "promise" / "summary.json").read_text("utf-8"))
    told = STUDY.summary(document)
    assert [(row.ours, str(row.verdict)) for row in told.rows] == [
        ("27 of 30", "consistent"), ("0.82", "consistent"),
    ]  # fmt: skip
    assert document["verdict"]["kept"] is True
    for listing in told.listings:
        assert len(listing.rows) == 30
        assert not any("\n" in heading or "\\" in heading for heading in listing.headings)
    few = document["verdict"] | {"below_limit": 26, "mean_measured_over_limit": 0.59}
    missed = STUDY.summary(document | {"verdict": few}).rows
    assert {str(row.verdict) for row in missed} == {"not consistent"}


def test_it_is_made_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("cprsim.reproduce.STUDIES", {"promise": STUDY})
    asked = call("reproduce", "--scenarios", str(SCENARIOS), "--out", str(tmp_path))
    assert (asked.exit_code, asked.stdout.strip()) == (0, "")
    assert not list(tmp_path.iterdir())
