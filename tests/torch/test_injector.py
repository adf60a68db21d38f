"""A planned failure in a loop of one's own does what our own measurement does."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")

from cprsim.errors import ParameterError
from cprsim.torch import FailureInjector
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.trials import Trial
from cprsim.training.measuring.design import Design
from cprsim.training.measuring.own_model import OwnModel, quality_of
from cprsim.training.measuring.runs import forked
from tests.torch.test_trainer import N, loss_of, new

DESIGN = Design(strategies=("partial", "mfu", "scar", "ssu"), n_more=1, shortest=0.1)


def loop_of_ones_own(trial: Trial) -> float:
    """As a user would write it."""
    torch.manual_seed(3)
    trainer = new("adagrad", batch=40)
    module, optimizer, batches = trainer.module, trainer.optimizers[0], trainer.batches
    failures = [(one.at_fraction, one.servers) for one in trial.failures]
    injector = FailureInjector(
        module, optimizer, 2 * N, failures, n_shards=4,
        strategy=trial.saving.strategy, interval=trial.saving.interval_fraction,
    )  # fmt: skip
    for number, n in enumerate(trainer.sizes.tolist()):
        optimizer.zero_grad()
        loss_of(module, batches[number % len(batches)]).backward()
        optimizer.step()
        injector.step(n)
    injector.close()
    assert len(injector.struck) == len(failures)
    return quality_of(trainer.evaluate()).auc


def test_the_loop_ends_where_our_fork_does() -> None:
    model = OwnModel(new("adagrad", batch=40), 1)
    trials = DESIGN.trials(1, 4)
    twin, found = forked(model, Shards(model.layout, 4), trials)
    ended = [loop_of_ones_own(trial) for trial in trials]
    assert ended == pytest.approx([found[trial].auc for trial in trials], abs=1e-9)
    assert len({*ended, twin.auc}) > len(trials) // 2


def test_what_can_not_be_planned_is_refused() -> None:
    trainer = new("sgd")
    with pytest.raises(ParameterError, match=r"servers are 0 to 7, got \[9\]"):
        FailureInjector(trainer.module, trainer.optimizers, 2 * N, [(0.5, (9,))])
    injector = FailureInjector(trainer.module, trainer.optimizers, 2 * N, [(0.5, (1,))])
    with pytest.raises(ParameterError, match="1281 samples trained of a run of 1280"):
        injector.step(1281)
