"""Staleness curves: fitted to trials, as shipped; what the kernel loses on fixed batches."""

from itertools import pairwise
from typing import Any

import numpy as np

import cprsim
from cprsim.job.losses import Metric
from cprsim.job.model_shape import ModelShape, TableLayout
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.model import Dlrm, Workspace
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan
from cprsim.training.measuring.fit import fit
from cprsim.training.measuring.observed import observed
from tests.golden.plain import Golden, table
from tests.making import SCENARIOS
from tests.measuring.test_fit import N_SERVERS, made

WHOLE = ""
PORTIONS = (0.02, 0.05, 0.1, 0.2, 0.3)
TABLES = TableLayout((40, 3, 900, 7, 250, 60))
SHAPE = ModelShape(TABLES, dimension=8, bottom=(12,), top=(16,))
SHIPPED = ("cprsim/accuracy/shipped", "examples")
CLOSE = {"training": 1e-4, "fit": 1e-5}  # in single precision; by iteration


def curve(metric: str, **how: Any) -> Any:
    """Fitted to trials made by a formula, with noise: slopes and what the strategies have."""
    found = fit(observed(made(5, **how), N_SERVERS), Metric(metric))
    slopes = [[one.mean, one.standard_error] for one in map(found.slope, found.strategies)]
    parts = [found.parts[key] for key in found.strategies]
    return {"slopes": slopes, "parts": [[one.interval_share, one.intercept] for one in parts]}


def losses_in_double(n: int = 40) -> list[float]:
    """Of batches of random clicks, by a model as it begins."""
    model, dice = Dlrm(SHAPE, np.float64), np.random.default_rng(0)
    model.initialise(seed=3)
    found, first = [], np.cumsum([0, *TABLES.rows])
    for _ in range(5):
        integers = dice.standard_normal((n, SHAPE.n_integers))
        rows = [dice.integers(a, b, n) for a, b in pairwise(first)]
        work = Workspace(model, n)
        model.forward(integers, np.stack(rows, axis=1).astype(np.int32), work)
        found.append(model.backward(integers, (dice.random(n) < 0.4).astype(np.float64), work))
    return [float(one) for one in found]


def losses_of_training(optimizer: str) -> list[float]:
    """Mean loss up to some samples of a run."""
    how = TrainingPlan(50, optimizer=optimizer)
    trainer = ProxyTrainer(SHAPE, generate(TABLES, 3000, seed=5)[0], how)
    return [float(trainer.run(until)) for until in (500, 1500, 3000)]


def quick() -> Golden:
    for folder in SHIPPED:
        for path in sorted((SCENARIOS.parent / folder).glob("*.json")):
            if path.stem != "summary":
                losses = cprsim.read(path).frames["losses"]
                for (name, metric), mine in losses.groupby(["strategy", "metric"]):
                    some = mine[mine["pls"].isin(PORTIONS)][["loss", "loss_low", "loss_high"]]
                    yield (
                        f"{folder} {path.stem} {name} {metric}",
                        table(some.set_axis(["loss", "low", "high"], axis=1)),
                    )
    yield "batches", losses_in_double()
    for optimizer in ("sgd", "adagrad"):
        yield f"training {optimizer}", losses_of_training(optimizer)
    yield "fit auc", curve("auc", noise=1e-5)
    yield "fit log_loss, spread", curve("log_loss", noise=1e-4, spread=0.2)
