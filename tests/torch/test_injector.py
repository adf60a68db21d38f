"""A planned failure in a loop of one's own does what our own measurement does."""

from __future__ import annotations

import csv

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")

from cprsim.errors import ParameterError
from cprsim.kernel.shards import Shards
from cprsim.measuring.array_pool import ArrayPool
from cprsim.measuring.design import Design
from cprsim.measuring.elsewhere import plan, write_plan
from cprsim.measuring.plugged import PluggedSetting, layout_of
from cprsim.measuring.runs import forked
from cprsim.torch import FailureInjector
from tests.torch.test_trainer import N, loss_of, new

DESIGN = Design(strategies=("partial", "mfu", "scar", "ssu"), n_more=1, shortest=0.1)


def loop_of_ones_own(row, path) -> float:
    """As a user would write it."""
    torch.manual_seed(3)
    trainer = new("adagrad", batch=40)
    module, optimizer, batches = trainer.module, trainer.optimizers[0], trainer.batches
    injector = FailureInjector(row, module, optimizer, 2 * N)
    for number in range(len(batches)):
        optimizer.zero_grad()
        loss_of(module, batches[number]).backward()
        optimizer.step()
        injector.step(int(batches.sizes[number]))
    found = trainer.evaluate()
    from cprsim.measuring.plugged import quality_of

    quality = quality_of(found)
    injector.finish(path, auc=quality.auc, twin_auc=0.5, log_loss=quality.log_loss, twin_log_loss=1)
    assert len(injector.struck) == len(injector.run.at)
    return quality.auc


def test_the_loop_ends_where_our_fork_does(tmp_path) -> None:
    write_plan(tmp_path / "plan.csv", plan(DESIGN, [1], 4))
    with (tmp_path / "plan.csv").open() as file:
        rows = list(csv.DictReader(file))
    own = new("adagrad", batch=40)
    setting = PluggedSetting(own, Shards(layout_of(own), 4), 1, ArrayPool(), own.get_state())
    trials = DESIGN.trials(1, 4)
    twin, found = forked(setting, trials)
    ended = [loop_of_ones_own(row, tmp_path / "runs.csv") for row in rows]
    assert ended == pytest.approx([found[trial].auc for trial in trials], abs=1e-9)
    assert len({*ended, twin.auc}) > len(trials) // 2
    with (tmp_path / "runs.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [row["failed_at"] for row in written] == [row["failed_at"] for row in rows]
    assert [float(row["auc"]) for row in written] == ended


def test_a_run_that_is_not_over_has_no_result(tmp_path) -> None:
    trainer = new("sgd")
    row = plan(DESIGN, [1], 4)[0].cells()
    injector = FailureInjector(row, trainer.module, trainer.optimizers, 2 * N)
    with pytest.raises(ParameterError, match="stands at sample 0 of 1280"):
        injector.finish(tmp_path / "runs.csv", auc=0.7, twin_auc=0.7)
    with pytest.raises(ParameterError, match="1281 samples trained of a run of 1280"):
        injector.step(1281)
    with pytest.raises(ParameterError, match="shards: `9` is no whole number from 0 to 3"):
        FailureInjector(row | {"shards": "9"}, trainer.module, trainer.optimizers, 2 * N)
    assert not list(tmp_path.iterdir())
