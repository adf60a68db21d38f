"""Small runs that the kernel's tests share."""

from collections.abc import Callable

import pytest

from cprsim.job.model_shape import ModelShape, TableLayout
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.clicks.records import Clicks
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan

TABLES = TableLayout((40, 3, 900, 7, 250, 60))


@pytest.fixture(scope="session")
def shape() -> ModelShape:
    return ModelShape(TABLES, dimension=8, bottom=(12,), top=(16,))


@pytest.fixture(scope="session")
def clicks() -> Clicks:
    return generate(TABLES, 3000, seed=5)[0]


@pytest.fixture
def new_trainer(shape: ModelShape, clicks: Clicks) -> Callable[..., ProxyTrainer]:
    """Makes trainers of one plan, at the start of their run."""

    def new(
        optimizer: str = "adagrad", batch: int = 50, n_parts: int = 1, **plan: object
    ) -> ProxyTrainer:
        how = TrainingPlan(batch, optimizer=optimizer, **plan)
        return ProxyTrainer(shape, clicks, how, n_parts=n_parts)

    return new
